//! Columns of sub-queries, views and WITH queries that nothing around them uses. The planner leaves these out
//! (`pull_up_subqueries` in prepjointree.c, `remove_unused_subquery_outputs` in allpaths.c), unless they call volatile
//! functions or return sets: no value of theirs is ever computed. Reads trees, and of catalogs which functions are
//! volatile; keeps nothing.

use std::ffi::c_void;

use pgrx::pg_sys::{self, RTEKind};

use super::enclosing::{Enclosing, joined};
use crate::pg::compat::tree::walkers;
use crate::pg::tree::{Tree, child_text, children, match_node};

/// Most columns that one question leads to: those made of the column, those made of these, and so on.
const MOST_COLUMNS: u32 = 64;

/// Deepest nesting of nodes that is searched. The search begins wherever the walk of the whole has come to, so it must
/// take little of the stack.
const DEEPEST: u32 = 200;

/// Returns true if nothing uses a column of a query, so that the planner leaves it out. One that calls a volatile
/// function counts as used; so does one in doubt. `queries` are the query of the column, and those around.
pub fn is_unused<'t>(column: Tree<'t, pg_sys::TargetEntry>, queries: Enclosing<'t>) -> bool {
    let Some(own) = queries.innermost() else { return false };
    // The arguments of an aggregate are such entries as well.
    let is_column = children!(own.targetList as TargetEntry).any(|other| other.as_ptr() == column.as_ptr());
    is_column && !is_used(column, queries, &mut Effort { columns: 0, depth: 0 })
}

/// How much has been done for one question, and how deep it has come.
struct Effort {
    columns: u32,
    depth: u32,
}

/// Returns true if something may use a column of the innermost query.
fn is_used<'t>(column: Tree<'t, pg_sys::TargetEntry>, queries: Enclosing<'t>, effort: &mut Effort) -> bool {
    let around = queries.above(1);
    let (Some(query), Some(holder)) = (queries.innermost(), around.innermost()) else { return true };
    // Of DISTINCT and of GROUP BY, too, columns have a number.
    let is_needed_inside = column.resjunk
        || column.ressortgroupref != 0
        || query.hasTargetSRFs
        || !query.setOperations.is_null()
        || (!holder.setOperations.is_null() && is_in_from(query, holder));
    effort.columns += 1;
    let is_kept = || column_is_volatile(column) || !may_be_left_out(query, holder);
    if is_needed_inside || effort.columns > MOST_COLUMNS || is_kept() {
        return true;
    }
    let mut search = Search { query, holder, number: column.resno, queries: around, effort };
    search.query_uses(holder)
}

fn column_is_volatile(column: Tree<'_, pg_sys::TargetEntry>) -> bool {
    // SAFETY: an expression of a valid query.
    unsafe { kept!(pg_sys::contain_volatile_functions(column.expr.cast())) }
}

/// Returns true if a query is a sub-query in FROM of the one around it, or a WITH query of that which the planner puts
/// into FROM (`SS_process_ctes` in subselect.c) or drops.
fn may_be_left_out(query: Tree<'_, pg_sys::Query>, holder: Tree<'_, pg_sys::Query>) -> bool {
    use pg_sys::CTEMaterialize::{CTEMaterializeDefault, CTEMaterializeNever};
    is_in_from(query, holder)
        || children!(holder.cteList as CommonTableExpr).any(|with| {
            let is_inlined = with.ctematerialized == CTEMaterializeNever
                || (with.ctematerialized == CTEMaterializeDefault && with.cterefcount <= 1);
            // SAFETY: a valid query.
            let is_volatile = || unsafe { kept!(pg_sys::contain_volatile_functions(with.ctequery)) };
            with.ctequery.cast() == query.as_ptr() && is_inlined && !with.cterecursive && !is_volatile()
        })
}

fn is_in_from(query: Tree<'_, pg_sys::Query>, holder: Tree<'_, pg_sys::Query>) -> bool {
    children!(holder.rtable as RangeTblEntry).any(|entry| is_sub_query(entry, query))
}

fn is_sub_query(entry: Tree<'_, pg_sys::RangeTblEntry>, query: Tree<'_, pg_sys::Query>) -> bool {
    entry.rtekind == RTEKind::RTE_SUBQUERY && entry.subquery == query.as_ptr()
}

/// A search for what uses the column with this number of a query. Each function returns true if something is found, or
/// if the search has to end.
struct Search<'t, 'e> {
    query: Tree<'t, pg_sys::Query>,
    /// The query around it.
    holder: Tree<'t, pg_sys::Query>,
    number: i16,
    /// Where the search is.
    queries: Enclosing<'t>,
    effort: &'e mut Effort,
}

/// Called by the server's walkers for each part of a node; true stops the walk.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, search: *mut c_void) -> bool {
    // SAFETY: the context is the search that `below` or `query_uses` passed, lent to nobody else while the walker
    // calls; the node is null or part of the tree that is searched.
    unsafe { Tree::enter(node).is_some_and(|node| (*search.cast::<Search<'_, '_>>()).uses(node)) }
}

impl<'t> Search<'t, '_> {
    fn uses(&mut self, node: Tree<'t, pg_sys::Node>) -> bool {
        if self.effort.depth >= DEEPEST {
            return true;
        }
        self.effort.depth += 1;
        let found = match_node! { node;
            Var(column) => self.column_uses(column),
            Query(query) => query.as_ptr() != self.query.as_ptr() && self.inner_query_uses(query),
            _ => self.below(node),
        };
        self.effort.depth -= 1;
        found
    }

    fn below(&mut self, node: Tree<'t, pg_sys::Node>) -> bool {
        let context = (&raw mut *self).cast();
        // SAFETY: a valid node that the server's walker knows; what it calls gets this search back.
        unsafe { direct!(walkers::expression_tree_walker(node.as_ptr(), Some(visit), context)) }
    }

    fn inner_query_uses(&mut self, query: Tree<'t, pg_sys::Query>) -> bool {
        let around = self.queries;
        self.queries = around.within(query);
        let found = self.query_uses(query);
        self.queries = around;
        found
    }

    /// The innermost query uses the column where it names it; in a column of its own, if that is used.
    #[inline(never)]
    fn query_uses(&mut self, query: Tree<'t, pg_sys::Query>) -> bool {
        for column in children!(query.targetList as TargetEntry) {
            if self.uses(column.as_node()) && is_used(column, self.queries, self.effort) {
                return true;
            }
        }
        let rest = pg_sys::Query { targetList: std::ptr::null_mut(), ..*query };
        let context = (&raw mut *self).cast();
        // What a join lists counts where it is referred to.
        let flags = pg_sys::QTW_IGNORE_JOINALIASES as i32;
        // SAFETY: a query like the one that it was copied from, but for its columns, which the walker only reads; what
        // it calls gets this search back.
        unsafe { direct!(walkers::query_tree_walker((&raw const rest).cast_mut(), Some(visit), context, flags)) }
    }

    fn column_uses(&mut self, column: Tree<'t, pg_sys::Var>) -> bool {
        let Some(entry) = self.queries.entry(&column) else { return true };
        if entry.rtekind == RTEKind::RTE_JOIN {
            return self.join_uses(column, entry);
        }
        self.stands_for_query(&column, entry) && (column.varattno == 0 || column.varattno == self.number)
    }

    /// What a column of a join stands for belongs to the query of the join.
    fn join_uses(&mut self, column: Tree<'t, pg_sys::Var>, join: Tree<'t, pg_sys::RangeTblEntry>) -> bool {
        let Some(mut listed) = joined(&column, join) else { return true };
        let from = self.queries;
        self.queries = from.above(column.varlevelsup);
        let found = listed.any(|one| self.uses(one));
        self.queries = from;
        found
    }

    /// Returns true if a part of FROM, which a column belongs to, stands for the query whose column is sought.
    fn stands_for_query(&self, column: &pg_sys::Var, entry: Tree<'t, pg_sys::RangeTblEntry>) -> bool {
        if entry.rtekind != RTEKind::RTE_CTE {
            return is_sub_query(entry, self.query);
        }
        let holder = self.queries.above(column.varlevelsup).holder(entry).innermost();
        let is_of_holder = holder.is_none_or(|holder| holder.as_ptr() == self.holder.as_ptr());
        let holder = self.holder;
        is_of_holder
            && children!(holder.cteList as CommonTableExpr).any(|with| {
                with.ctequery.cast() == self.query.as_ptr() && child_text!(with.ctename) == child_text!(entry.ctename)
            })
    }
}
