//! The part: the site's question asked of one leaf.

use std::ffi::CStr;

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, NodeTag};

use super::columns::Columns;
use super::conditions::Conditions;
use super::constants::Values;
use super::filters::{Filter, filters};
use super::leaf;
use super::merge::merging;
use super::obstacle::{Obstacle, PARAMETER, SUB_QUERY, SYSTEM_COLUMN};
use super::site::Site;
use super::zone;
use crate::pg::compat::tree::ask_no_permissions;
use crate::pg::given_values::given;
use crate::pg::lists::nodes;
use crate::pg::server;
use crate::pg::tree::{Tree, child, children, match_node};
use crate::pg::tree_making::{copy, list_of, new_node, replaced_in_query};
use crate::pg::tree_search::{entry_at, sorted_target};
use crate::pg::type_catalog::form_of;
use crate::query::failures::{query_may_fail, query_of_states_may_fail};
use crate::query::partitions::{Leaves, leaves};

/// The site's question asked of one leaf.
pub struct Part {
    /// SELECT keys…, states of aggregates… FROM … WHERE … GROUP BY keys, as the statement asks it. It reads the parent,
    /// with all leaves. No permissions are asked.
    pub query: *mut pg_sys::Query,
    /// The parent.
    pub relation: pg_sys::Oid,
    /// The relations that it is joined with: plain tables and materialized views without children.
    pub dimensions: Vec<pg_sys::Oid>,
    /// The parent is a plain table: there is a part for each of its zones.
    pub is_zoned: bool,
}

impl Part {
    /// The part of a site.
    ///
    /// # Errors
    /// What a part cannot ask.
    ///
    /// # Safety
    /// The expressions must be valid, and of the site's level.
    pub(super) unsafe fn of(site: &Site<'_>, columns: &Columns) -> Result<Self, Obstacle> {
        if columns.expressions().len() > pg_sys::MaxTupleAttributeNumber as usize {
            return Err("Its parts would have more columns than a row may have.");
        }
        // SAFETY: nodes of a valid query, and new ones made of copies of them.
        let query = unsafe { asked(site, columns) };
        // SAFETY: as above.
        unsafe {
            // Constants are computed as the planner does it, so that bounds are found.
            for Filter { condition, .. } in filters(query) {
                *condition = kept!(pg_sys::eval_const_expressions(std::ptr::null_mut(), *condition));
            }
            check_nodes(query)?;
        }
        let Site { relation, is_zoned, .. } = *site;
        Ok(Self { query, relation, dimensions: site.dimensions.clone(), is_zoned })
    }

    /// What the part asks with these values: `params` are those of parameters, as far as they are known.
    ///
    /// # Errors
    /// The value of a parameter is to be known, and is not.
    pub fn asked(
        &self,
        params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
        values: Values,
    ) -> Result<AskedPart, Obstacle> {
        let mut obstacle = None;
        // SAFETY: a valid query, of which a copy is changed.
        unsafe {
            let known = replaced_in_query(self.query, &mut |node, _depth| {
                let param = node.as_a::<pg_sys::Param>()?;
                let constant = as_constant(param, params);
                if constant.is_none() && values == Values::Present {
                    obstacle = Some(PARAMETER);
                }
                Some(constant.unwrap_or(node.as_ptr()))
            });
            if let Some(obstacle) = obstacle {
                return Err(obstacle);
            }
            let conditions = Conditions::take(known, self.relation, values);
            Ok(AskedPart { query: known, conditions })
        }
    }

    /// The names of the columns among its keys, in the current memory context.
    pub fn key_names<'m>(&self) -> Vec<&'m CStr> {
        // SAFETY: the query of a part is valid.
        let Some(query) = (unsafe { Tree::enter(self.query) }) else { return Vec::new() };
        let name = |clause| {
            let target = sorted_target(query, clause)?;
            let column = child!(target.expr)?.as_node().as_a::<pg_sys::Var>()?;
            let entry = entry_at(child!(query.rtable), column.varno)?;
            // SAFETY: a column of that entry; a name ends with NUL.
            Some(unsafe { CStr::from_ptr(kept!(pg_sys::get_rte_attribute_name(entry.as_ptr(), column.varattno))) })
        };
        children!(query.groupClause as SortGroupClause).filter_map(name).collect()
    }

    /// Returns true if computing the part may raise an error. Bounds do not: they compare values in their order, and
    /// any plan of the statement computes what columns are compared with, too.
    pub(super) fn may_fail(&self) -> bool {
        let Ok(asked) = self.asked(None, Values::Lasting) else { return true };
        // SAFETY: the query of a part is valid.
        unsafe { Tree::enter(asked.query) }.is_none_or(query_may_fail)
    }

    /// Returns true if computing the part may raise an error, as `may_fail`. The results of its aggregates are not
    /// computed: it gives their states.
    pub(super) fn states_may_fail(&self) -> bool {
        let Ok(asked) = self.asked(None, Values::Lasting) else { return true };
        // SAFETY: the query of a part is valid.
        unsafe { Tree::enter(asked.query) }.is_none_or(query_of_states_may_fail)
    }

    /// The query of one leaf, which the caller has locked: a fresh copy, ready for the planner.
    ///
    /// # Errors
    /// What the leaf cannot be asked.
    pub fn of_leaf(&self, leaf: pg_sys::Oid) -> Result<*mut pg_sys::Query, Obstacle> {
        // SAFETY: a valid query, of which a copy is changed.
        unsafe {
            let query = leaf::read_instead(copy(self.query), self.relation, leaf)?;
            // It has another relation now.
            ask_no_permissions_below(query);
            Ok(query)
        }
    }

    /// The query of some blocks of the table, as `of_leaf`.
    ///
    /// # Errors
    /// As `of_leaf`.
    pub fn of_blocks(&self, blocks: std::ops::Range<u32>) -> Result<*mut pg_sys::Query, Obstacle> {
        let query = self.of_leaf(self.relation)?;
        // SAFETY: a copy that nobody else knows; a part reads the table once.
        unsafe { zone::read_blocks(query, self.relation, blocks) }.map(|()| query)
    }

    /// The query that makes one part of several, whose rows lie in a named tuplestore, ready for the planner.
    pub fn merging(&self, name: &CStr) -> *mut pg_sys::Query {
        // SAFETY: the query of a part.
        unsafe { merging(self.query, name) }
    }

    /// The query of all zones of the table, as `of_leaf`: the number of the zone is its last column, by which its rows
    /// are sorted. `function` gives it for a `ctid` and the size of zones, which stands beside it.
    ///
    /// # Errors
    /// As `of_leaf`.
    pub fn of_all_zones(&self, function: (pg_sys::Oid, u32)) -> Result<*mut pg_sys::Query, Obstacle> {
        let query = self.of_leaf(self.relation)?;
        // SAFETY: as above.
        unsafe { zone::group_by_zone(query, self.relation, function) }.map(|()| query)
    }
}

/// What a part asks with certain values.
pub struct AskedPart {
    /// The query of the part without the bounds.
    pub query: *mut pg_sys::Query,
    conditions: Conditions,
}

impl AskedPart {
    /// Those that have rows for it of the leaves of the table, which are locked.
    ///
    /// # Errors
    /// Why nothing can be said.
    pub fn leaves(&self, table: pg_sys::Oid) -> Result<Leaves, Reason> {
        // SAFETY: the conditions were taken from a valid query about the table.
        unsafe { leaves(table, &self.conditions.bounds, self.conditions.others) }
    }

    /// What the part asks with some bounds, as bits: a fresh copy.
    pub fn with_bounds(&self, asked: u64) -> *mut pg_sys::Query {
        // SAFETY: a valid query, of which a copy is changed.
        unsafe {
            let query = copy(self.query);
            self.conditions.put_back(query, asked);
            query
        }
    }
}

/// The site's question as a part asks it, of all leaves, with parameters.
///
/// # Safety
/// As `Part::of`.
unsafe fn asked(site: &Site<'_>, columns: &Columns) -> *mut pg_sys::Query {
    let query = new_node::<pg_sys::Query>();
    let site_query = site.query;
    // SAFETY: nodes of a valid query, of which copies are taken; new nodes.
    unsafe {
        (*query).commandType = pg_sys::CmdType::CMD_SELECT;
        (*query).canSetTag = true;
        (*query).hasRowSecurity = site_query.hasRowSecurity;
        (*query).stmt_location = -1;
        (*query).rtable = copy(site_query.rtable);
        ask_no_permissions_below(query);
        (*query).jointree = copy(site_query.jointree);
        let targets = columns.expressions().iter().zip(1..).map(|(expression, number)| {
            let target = kept!(pg_sys::makeTargetEntry(
                copy(*expression).cast(),
                number,
                kept!(pg_sys::pstrdup(c"value".as_ptr())),
                false
            ));
            let is_key = usize::from(number as u16) <= columns.clauses().len();
            (*target).ressortgroupref = if is_key { number as pg_sys::Index } else { 0 };
            (*query).hasAggs |= (**expression).type_ == NodeTag::T_Aggref;
            target
        });
        (*query).targetList = list_of(targets);
        (*query).groupClause = list_of(columns.clauses().zip(1..).map(|(clause, number)| {
            let clause = copy(clause);
            (*clause).tleSortGroupRef = number;
            clause
        }));
    }
    query
}

/// Takes the permissions out of a query and out of what FROM selects of.
///
/// # Safety
/// A valid query that the caller may change.
unsafe fn ask_no_permissions_below(query: *mut pg_sys::Query) {
    // SAFETY: the caller's promise.
    unsafe {
        ask_no_permissions(query);
        for entry in nodes::<pg_sys::RangeTblEntry>((*query).rtable) {
            if !(*entry).subquery.is_null() {
                ask_no_permissions_below((*entry).subquery);
            }
        }
    }
}

/// Checks that a query has nothing that a part must not have.
///
/// # Errors
/// A sub-query, a system column, or a parameter that is not of the statement.
///
/// # Safety
/// A valid query.
unsafe fn check_nodes(query: *mut pg_sys::Query) -> Result<(), Obstacle> {
    let mut obstacle = None;
    let mut examine = |node: Tree<'_, pg_sys::Node>, _depth: u32| {
        let found = match_node! { node;
            Param(param) => (param.paramkind != pg_sys::ParamKind::PARAM_EXTERN).then_some(PARAMETER),
            Var(column) => (column.varattno <= 0).then_some(SYSTEM_COLUMN),
            _ => (node.tag() == NodeTag::T_SubLink).then_some(SUB_QUERY),
        };
        let found = found?;
        obstacle.get_or_insert(found);
        Some(node.as_ptr())
    };
    // SAFETY: the caller's promise. Nothing is replaced.
    unsafe { replaced_in_query(query, &mut examine) };
    obstacle.map_or(Ok(()), Err)
}

/// The value that is given for a parameter as a constant, in the current memory context, as the planner takes it.
fn as_constant(
    param: Tree<'_, pg_sys::Param>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> Option<*mut pg_sys::Node> {
    let value = given(&param, params)?;
    let (length, by_value) = form_of(param.paramtype);
    // SAFETY: the value has the type that stands beside it.
    unsafe {
        let datum = if value.isnull || by_value {
            value.value
        } else {
            kept!(server::datumCopy(value.value, by_value, length.into()))
        };
        let (kind, modifier, collation) = (param.paramtype, param.paramtypmod, param.paramcollid);
        Some(kept!(pg_sys::makeConst(kind, modifier, collation, length.into(), datum, value.isnull, by_value)).cast())
    }
}
