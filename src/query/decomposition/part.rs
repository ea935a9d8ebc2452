//! The part: the site's question asked of one leaf.

use pgrx::pg_sys::{self, NodeTag};

use super::columns::Columns;
use super::conditions::{Conditions, all_of, conjuncts};
use super::constants::Values;
use super::leaf;
use super::obstacle::Obstacle;
use super::site::Site;
use crate::pg::compat::tree::ask_no_permissions;
use crate::pg::lists::nodes;
use crate::pg::tree::{Tree, child, match_node};
use crate::pg::tree_making::{copy, list_of, new_node, replaced_in_query};
use crate::query::failures::{expression_may_fail, query_may_fail};
use crate::query::parameters::as_constant;
use crate::query::partitions::Bound;

/// The site's question asked of one leaf.
pub struct Part {
    /// SELECT keys…, part aggregates… FROM … WHERE … GROUP BY keys, as the statement asks it. It reads the parent, with
    /// all leaves. No permissions are asked.
    pub query: *mut pg_sys::Query,
    /// The parent.
    pub relation: pg_sys::Oid,
    /// The relations that it is joined with: plain tables and materialized views without children.
    pub dimensions: Vec<pg_sys::Oid>,
}

impl Part {
    /// The part of a site. `moved` are the conditions of HAVING that WHERE asks.
    ///
    /// # Errors
    /// What a part cannot ask.
    ///
    /// # Safety
    /// The expressions must be valid, and of the site's level.
    pub(super) unsafe fn of(site: &Site<'_>, columns: &Columns, moved: &[*mut pg_sys::Node]) -> Result<Self, Obstacle> {
        if columns.expressions().len() > pg_sys::MaxTupleAttributeNumber as usize {
            return Err(Obstacle::ManyColumns);
        }
        // SAFETY: nodes of a valid query, and new ones made of copies of them.
        let query = unsafe { asked(site, columns, moved) };
        // SAFETY: as above.
        unsafe { check_nodes(query) }?;
        Ok(Self { query, relation: site.relation, dimensions: site.dimensions.clone() })
    }

    /// What the part asks with these values: `params` are those of parameters, as far as they are known.
    ///
    /// # Errors
    /// `Parameter` if the value of one is to be known, and is not.
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
                    obstacle = Some(Obstacle::Parameter);
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

    /// Returns true if computing the part may raise an error. What columns are compared with does not count: any plan
    /// of the statement computes it, too.
    pub(super) fn may_fail(&self) -> bool {
        let Ok(asked) = self.asked(None, Values::Lasting) else { return true };
        // SAFETY: the query of a part is valid.
        unsafe { Tree::enter(asked.query) }.is_none_or(query_may_fail)
            || asked.bounds().iter().any(|bound| expression_may_fail(bound.with_null()))
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
}

/// What a part asks with certain values.
pub struct AskedPart {
    /// The query of the part without the bounds.
    pub query: *mut pg_sys::Query,
    conditions: Conditions,
}

impl AskedPart {
    /// The conjuncts that compare a column of the table with a constant: the definition of a leaf may say that all of
    /// its rows fulfil them, or none.
    pub fn bounds(&self) -> &[Bound] {
        &self.conditions.bounds
    }

    /// A number for the place of each bound: the same condition means something else in another place.
    pub fn places_of_bounds(&self) -> impl Iterator<Item = usize> {
        self.conditions.filters_of_bounds.iter().copied()
    }

    /// What the part asks with all bounds: a fresh copy.
    pub fn with_bounds(&self) -> *mut pg_sys::Query {
        // SAFETY: a valid query, of which a copy is changed.
        unsafe {
            let query = copy(self.query);
            self.conditions.put_back(query);
            query
        }
    }
}

/// The site's question as a part asks it, of all leaves, with parameters.
///
/// # Safety
/// As `Part::of`.
unsafe fn asked(site: &Site<'_>, columns: &Columns, moved: &[*mut pg_sys::Node]) -> *mut pg_sys::Query {
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
        let from: *mut pg_sys::FromExpr = copy(site_query.jointree);
        let conditions = conjuncts(Tree::enter((*from).quals)).into_iter().map(Tree::as_ptr);
        let all: Vec<_> = conditions.chain(moved.iter().map(|one| copy(*one))).collect();
        (*from).quals = all_of(all.into_iter());
        (*query).jointree = from;
        let targets = columns.expressions().iter().zip(1..).map(|(expression, number)| {
            let target = kept!(pg_sys::makeTargetEntry(
                copy(*expression).cast(),
                number,
                kept!(pg_sys::pstrdup(c"value".as_ptr())),
                false
            ));
            let is_key = usize::from(number as u16) <= site.keys().count();
            (*target).ressortgroupref = if is_key { number as pg_sys::Index } else { 0 };
            (*query).hasAggs |= (**expression).type_ == NodeTag::T_Aggref;
            target
        });
        (*query).targetList = list_of(targets);
        (*query).groupClause = list_of(site.keys().zip(1..).map(|(clause, number)| {
            let clause = copy(clause.as_ptr());
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
/// `SubLink`, `SystemColumn`, or `Parameter` for one that is not of the statement.
///
/// # Safety
/// A valid query.
unsafe fn check_nodes(query: *mut pg_sys::Query) -> Result<(), Obstacle> {
    let mut obstacle = None;
    let mut examine = |node: Tree<'_, pg_sys::Node>, _depth: u32| {
        let found = match_node! { node;
            Param(param) => (param.paramkind != pg_sys::ParamKind::PARAM_EXTERN).then_some(Obstacle::Parameter),
            Var(column) => (column.varattno <= 0).then_some(Obstacle::SystemColumn),
            _ => (node.tag() == NodeTag::T_SubLink).then_some(Obstacle::SubLink),
        };
        let found = found?;
        obstacle.get_or_insert(found);
        Some(node.as_ptr())
    };
    // SAFETY: the caller's promise. Nothing is replaced.
    unsafe { replaced_in_query(query, &mut examine) };
    obstacle.map_or(Ok(()), Err)
}

/// The conditions of HAVING: those that WHERE can ask as well, as the planner does it, and those that remain. Without
/// GROUP BY the former remain, too.
pub(super) fn split_having(site: &Site<'_>) -> (Vec<*mut pg_sys::Node>, *mut pg_sys::Node) {
    let query = site.query;
    let (mut moved, mut kept) = (Vec::new(), Vec::new());
    for conjunct in conjuncts(child!(query.havingQual)) {
        let conjunct = conjunct.as_ptr();
        // SAFETY: an expression of a valid query.
        let stays = unsafe { kept!(pg_sys::contain_subplans(conjunct)) || kept!(pg_sys::contain_agg_clause(conjunct)) };
        if !stays {
            moved.push(conjunct);
        }
        if stays || site.is_grand() {
            kept.push(conjunct);
        }
    }
    (moved, all_of(kept.into_iter()))
}
