//! The site: the query level that aggregates the table. Reads trees and catalogs; changes nothing.

use pgrx::pg_sys::{self, RTEKind};

use super::obstacle::Obstacle;
use crate::pg::compat;
use crate::pg::inheritance::may_have_children;
use crate::pg::tree::{Tree, child, children, match_node};

/// The query level that aggregates the table.
pub(super) struct Site<'t> {
    pub query: Tree<'t, pg_sys::Query>,
    /// The number of the table in the range table.
    pub table: pg_sys::Index,
    /// The table.
    pub relation: pg_sys::Oid,
    /// The relations that it is joined with.
    pub dimensions: Vec<pg_sys::Oid>,
}

/// The query levels that may be sites: they aggregate, and name a table with partitions or children. The outermost comes first.
pub(super) fn candidates(query: Tree<'_, pg_sys::Query>) -> Vec<Tree<'_, pg_sys::Query>> {
    let mut found = Vec::new();
    find_candidates(query, &mut found);
    found
}

fn find_candidates<'t>(query: Tree<'t, pg_sys::Query>, found: &mut Vec<Tree<'t, pg_sys::Query>>) {
    if query.commandType != pg_sys::CmdType::CMD_SELECT {
        return;
    }
    if (query.hasAggs || !query.groupClause.is_null())
        && children!(query.rtable as RangeTblEntry).any(|entry| is_table(&entry))
    {
        found.push(query);
        return;
    }
    for entry in children!(query.rtable as RangeTblEntry) {
        if entry.rtekind == RTEKind::RTE_SUBQUERY
            && !entry.lateral
            && let Some(below) = child!(entry.subquery)
        {
            find_candidates(below, found);
        }
    }
    for common in children!(query.cteList as CommonTableExpr) {
        if common.cterefcount == 1
            && !common.cterecursive
            && let Some(below) = child!(common.ctequery).and_then(Tree::as_a::<pg_sys::Query>)
        {
            find_candidates(below, found);
        }
    }
}

/// Is this a table with partitions or children, all of whose rows are read?
fn is_table(entry: &pg_sys::RangeTblEntry) -> bool {
    entry.rtekind == RTEKind::RTE_RELATION
        && entry.inh
        && match entry.relkind as u8 {
            pg_sys::RELKIND_PARTITIONED_TABLE => true,
            pg_sys::RELKIND_RELATION => may_have_children(entry.relid),
            _ => false,
        }
}

impl<'t> Site<'t> {
    /// The site that a query level is.
    ///
    /// # Errors
    /// Why its answer is not made of parts.
    pub fn of(query: Tree<'t, pg_sys::Query>) -> Result<Self, Obstacle> {
        check_clauses(&query)?;
        let (mut table, mut dimensions) = (None, Vec::new());
        for (entry, number) in children!(query.rtable as RangeTblEntry).zip(1..) {
            match entry.rtekind {
                RTEKind::RTE_JOIN => {}
                RTEKind::RTE_RELATION if !entry.tablesample.is_null() => return Err(Obstacle::Sample),
                RTEKind::RTE_RELATION if is_table(&entry) => {
                    if let Some((_, other)) = table.replace((number, entry.relid)) {
                        return Err(Obstacle::TwoTables(other, entry.relid));
                    }
                }
                RTEKind::RTE_RELATION => match entry.relkind as u8 {
                    pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW => dimensions.push(entry.relid),
                    _ => return Err(Obstacle::Relation(entry.relid)),
                },
                _ => return Err(Obstacle::FromItem),
            }
        }
        let (table, relation) = table.ok_or(Obstacle::NoTable)?;
        if compat::has_virtual_columns(relation) {
            return Err(Obstacle::VirtualColumn);
        }
        let from = child!(query.jointree).ok_or(Obstacle::NoTable)?;
        match holds(from.as_node(), table)? {
            true => Ok(Self { query, table, relation, dimensions }),
            false => Err(Obstacle::NoTable),
        }
    }

    /// Is there one row whatever the table holds?
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
        return Err(Obstacle::GroupingSets);
    }
    if query.hasTargetSRFs {
        return Err(Obstacle::SetReturning);
    }
    if !query.rowMarks.is_null() {
        return Err(Obstacle::RowLocks);
    }
    if !query.setOperations.is_null() {
        return Err(Obstacle::NoTable);
    }
    Ok(())
}

/// Does a part of FROM hold the table? Each of its rows then comes of one row of the table.
///
/// # Errors
/// `OuterJoin` if some of its rows come of none.
fn holds(node: Tree<'_, pg_sys::Node>, table: pg_sys::Index) -> Result<bool, Obstacle> {
    match_node! { node;
        RangeTblRef(reference) => Ok(reference.rtindex as pg_sys::Index == table),
        FromExpr(from) => {
            let mut found = false;
            for item in children!(from.fromlist as Node) {
                found |= holds(item, table)?;
            }
            Ok(found)
        },
        JoinExpr(join) => {
            let side = |side: Option<Tree<'_, pg_sys::Node>>| side.map_or(Ok(false), |side| holds(side, table));
            let (left, right) = (side(child!(join.larg))?, side(child!(join.rarg))?);
            let adds_rows = match join.jointype {
                pg_sys::JoinType::JOIN_INNER => false,
                pg_sys::JoinType::JOIN_LEFT => right,
                pg_sys::JoinType::JOIN_RIGHT => left,
                _ => left || right,
            };
            if adds_rows { Err(Obstacle::OuterJoin) } else { Ok(left || right) }
        },
        _ => Err(Obstacle::FromItem),
    }
}
