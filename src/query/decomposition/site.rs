//! The site: the query level that aggregates the table. Reads trees and catalogs; changes nothing.
//!
//! FROM may have sub-queries that select, join and filter, and do nothing else: views. The table may lie in such a one,
//! whose rows then come each of one row of the table.

use pgrx::pg_sys::{self, RTEKind};

use super::obstacle::{GROUPING_SETS, NO_TABLE, OTHER_RELATION, Obstacle};
use crate::pg::catalog_row::CatalogRow;
use crate::pg::compat;
use crate::pg::inheritance::may_have_children;
use crate::pg::tree::{Tree, child, children, match_node};
use crate::pg::tree_search::{column_at, entry_at};

const OUTER_JOIN: Obstacle = "An outer join adds rows for which the table has none.";

/// The query level that aggregates the table.
pub(super) struct Site<'t> {
    pub query: Tree<'t, pg_sys::Query>,
    /// The table.
    pub relation: pg_sys::Oid,
    /// The relations that it is joined with.
    pub dimensions: Vec<pg_sys::Oid>,
    /// The table has no partitions.
    pub is_zoned: bool,
}

/// The outermost query level that may be a site: it aggregates, and names a table with partitions. If there is none,
/// the one that names a table of `least` blocks.
pub(super) fn candidate(query: Tree<'_, pg_sys::Query>, least: u32) -> Option<Tree<'_, pg_sys::Query>> {
    let find = |is_site: &dyn Fn(Tree<'_, pg_sys::Query>) -> bool| outermost(query, is_site);
    find(&names_table).or_else(|| find(&|query| large_table(query, least).is_some()))
}

fn outermost<'t>(
    query: Tree<'t, pg_sys::Query>,
    is_site: &dyn Fn(Tree<'_, pg_sys::Query>) -> bool,
) -> Option<Tree<'t, pg_sys::Query>> {
    if query.commandType != pg_sys::CmdType::CMD_SELECT {
        return None;
    }
    if (query.hasAggs || !query.groupClause.is_null()) && is_site(query) {
        return Some(query);
    }
    let sub_queries = children!(query.rtable as RangeTblEntry)
        .filter(|entry| entry.rtekind == RTEKind::RTE_SUBQUERY && !entry.lateral)
        .filter_map(|entry| child!(entry.subquery));
    let commons = children!(query.cteList as CommonTableExpr)
        .filter(|common| common.cterefcount == 1 && !common.cterecursive)
        .filter_map(|common| child!(common.ctequery).and_then(Tree::as_a::<pg_sys::Query>));
    sub_queries.chain(commons).find_map(|query| outermost(query, is_site))
}

/// Returns true if FROM names a table with partitions, perhaps in a sub-query that does nothing but select.
fn names_table(query: Tree<'_, pg_sys::Query>) -> bool {
    children!(query.rtable as RangeTblEntry).any(|entry| is_table(&entry) || selection(entry).is_some_and(names_table))
}

/// The plain table without children with the most blocks that FROM names, if it has `least`, as far as the server
/// knows: it is told by VACUUM and ANALYZE.
fn large_table(query: Tree<'_, pg_sys::Query>, least: u32) -> Option<pg_sys::Oid> {
    let mut largest = None;
    add_larger(query, least, &mut largest);
    largest.map(|(_, relation)| relation)
}

fn add_larger(query: Tree<'_, pg_sys::Query>, least: u32, largest: &mut Option<(u32, pg_sys::Oid)>) {
    for entry in children!(query.rtable as RangeTblEntry) {
        if entry.rtekind == RTEKind::RTE_RELATION && entry.inh && entry.relkind as u8 == pg_sys::RELKIND_RELATION {
            let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, entry.relid);
            let blocks = row.as_ref().and_then(CatalogRow::relation).map_or(0, |class| class.relpages.max(0) as u32);
            let is_larger = blocks >= least && largest.is_none_or(|(most, _)| blocks > most);
            if is_larger && !may_have_children(entry.relid) {
                *largest = Some((blocks, entry.relid));
            }
        } else if let Some(below) = selection(entry) {
            add_larger(below, least, largest);
        }
    }
}

/// The sub-query of an entry of the range table, if it selects, joins and filters, and does nothing else.
pub(super) fn selection(entry: Tree<'_, pg_sys::RangeTblEntry>) -> Option<Tree<'_, pg_sys::Query>> {
    if entry.rtekind != RTEKind::RTE_SUBQUERY || entry.lateral {
        return None;
    }
    let query = child!(entry.subquery)?;
    let is_plain = query.commandType == pg_sys::CmdType::CMD_SELECT
        && !(query.hasAggs || query.hasWindowFuncs || query.hasTargetSRFs || query.hasSubLinks || query.hasForUpdate)
        && [
            query.groupClause,
            query.groupingSets,
            query.distinctClause,
            query.sortClause,
            query.cteList,
            query.rowMarks,
        ]
        .into_iter()
        .all(|list| list.is_null())
        && [query.havingQual, query.limitCount, query.limitOffset, query.setOperations]
            .into_iter()
            .all(|node| node.is_null());
    is_plain.then_some(query)
}

/// Returns true if this is a table with partitions, all of whose rows are read.
fn is_table(entry: &pg_sys::RangeTblEntry) -> bool {
    entry.rtekind == RTEKind::RTE_RELATION && entry.inh && entry.relkind as u8 == pg_sys::RELKIND_PARTITIONED_TABLE
}

impl<'t> Site<'t> {
    /// The site that a query level is.
    ///
    /// # Errors
    /// Why its answer is not made of parts.
    pub fn of(query: Tree<'t, pg_sys::Query>, least: u32) -> Result<Self, Obstacle> {
        check_clauses(&query)?;
        let zoned = if names_table(query) { None } else { large_table(query, least) };
        let mut relations = Relations { zoned, table: None, dimensions: Vec::new() };
        let is_held = relations.are_joined(query)?;
        let relation = relations.table.filter(|_| is_held).ok_or(NO_TABLE)?;
        if compat::has_virtual_columns(relation) {
            return Err("The table has virtual columns.");
        }
        Ok(Self { query, relation, dimensions: relations.dimensions, is_zoned: zoned.is_some() })
    }

    /// Returns true if there is one row whatever the table holds.
    pub fn is_grand(&self) -> bool {
        self.query.groupClause.is_null()
    }

    /// The target that a clause of GROUP BY names.
    pub fn keys(&self) -> impl Iterator<Item = Tree<'t, pg_sys::SortGroupClause>> + use<'t> {
        let query = self.query;
        children!(query.groupClause as SortGroupClause)
    }
}

/// Checks what stands beside FROM, WHERE and the columns.
fn check_clauses(query: &pg_sys::Query) -> Result<(), Obstacle> {
    if !query.groupingSets.is_null() {
        return Err(GROUPING_SETS);
    }
    if query.hasTargetSRFs {
        return Err("It calls a function that returns a set.");
    }
    if !query.rowMarks.is_null() {
        return Err("It locks rows.");
    }
    if !query.setOperations.is_null() {
        return Err(NO_TABLE);
    }
    Ok(())
}

/// The relations of FROM.
struct Relations {
    /// The table, if it has no partitions.
    zoned: Option<pg_sys::Oid>,
    table: Option<pg_sys::Oid>,
    dimensions: Vec<pg_sys::Oid>,
}

impl Relations {
    /// Adds those of a query's FROM. Does it hold the table? Each of its rows then comes of one row of the table.
    ///
    /// # Errors
    /// What stands in the way. `OuterJoin` if some of the rows come of no row of the table.
    fn are_joined(&mut self, query: Tree<'_, pg_sys::Query>) -> Result<bool, Obstacle> {
        let from = child!(query.jointree).ok_or(NO_TABLE)?;
        self.are_in(from.as_node(), query)
    }

    /// As `are_joined`, for a part of FROM.
    fn are_in(&mut self, node: Tree<'_, pg_sys::Node>, query: Tree<'_, pg_sys::Query>) -> Result<bool, Obstacle> {
        match_node! { node;
            RangeTblRef(reference) => {
                let entry = entry_at(child!(query.rtable), reference.rtindex).ok_or("FROM has something other than tables.")?;
                self.is_table(entry)
            },
            FromExpr(from) => {
                let mut found = false;
                for item in children!(from.fromlist as Node) {
                    found |= self.are_in(item, query)?;
                }
                Ok(found)
            },
            JoinExpr(join) => {
                let mut side = |side: Option<Tree<'_, pg_sys::Node>>| side.map_or(Ok(false), |side| self.are_in(side, query));
                let (left, right) = (side(child!(join.larg))?, side(child!(join.rarg))?);
                let adds_rows = match join.jointype {
                    pg_sys::JoinType::JOIN_INNER => false,
                    pg_sys::JoinType::JOIN_LEFT => right,
                    pg_sys::JoinType::JOIN_RIGHT => left,
                    _ => left || right,
                };
                if adds_rows { Err(OUTER_JOIN) } else { Ok(left || right) }
            },
            _ => Err("FROM has something other than tables."),
        }
    }

    /// Adds what an item of FROM reads. Returns true if it is the table, or holds it.
    fn is_table(&mut self, entry: Tree<'_, pg_sys::RangeTblEntry>) -> Result<bool, Obstacle> {
        if let Some(query) = selection(entry) {
            return self.are_joined(query);
        }
        if entry.rtekind != RTEKind::RTE_RELATION {
            return Err("FROM has something other than tables.");
        }
        if !entry.tablesample.is_null() {
            return Err("It has TABLESAMPLE.");
        }
        if is_table(&entry) || self.zoned == Some(entry.relid) {
            return match self.table.replace(entry.relid) {
                Some(_) => Err("It joins two tables that have parts, or one with itself."),
                None => Ok(true),
            };
        }
        let is_plain = [pg_sys::RELKIND_RELATION, pg_sys::RELKIND_MATVIEW].contains(&(entry.relkind as u8));
        if !is_plain || may_have_children(entry.relid) {
            return Err(OTHER_RELATION);
        }
        self.dimensions.push(entry.relid);
        Ok(false)
    }
}

/// The relation, and the number of its column, whose values a column has that a query reads, perhaps through
/// sub-queries.
pub(super) fn origin<'t>(
    query: Tree<'t, pg_sys::Query>,
    column: Tree<'t, pg_sys::Var>,
) -> Option<(Tree<'t, pg_sys::RangeTblEntry>, Tree<'t, pg_sys::Var>)> {
    let entry =
        entry_at(child!(query.rtable), column.varno).filter(|_| column.varlevelsup == 0 && column.varattno > 0)?;
    if entry.rtekind == RTEKind::RTE_RELATION {
        return Some((entry, column));
    }
    let below = selection(entry)?;
    origin(below, column_at(below, column.varattno)?.as_a::<pg_sys::Var>()?)
}
