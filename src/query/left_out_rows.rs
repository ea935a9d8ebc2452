//! What a plan reads beside the rows of the answer, which may depend on the time. When it starts, or when a sub-query
//! has given the time, it computes which partitions it needs, and reads no row of the others. An index that names pages
//! (BRIN, or a bitmap that has become too large) has it read rows that are rejected, or not, if they were deleted
//! beside them. Nobody can tell whether rejected rows were read, unless rejecting one raises an error; nor whether a
//! partition was, unless the role may not execute what is computed of its rows: the server asks for that when it starts
//! to scan. Reads plans and catalogs; keeps nothing.

use std::ffi::c_void;

use arrow_cache_core::RoomyVec;
use pgrx::pg_sys::{self, NodeTag, Oid};

use super::clock::{Clock, closed, computes_now};
use super::eligibility::node_may_fail;
use super::opened_relations::{may_vary, opened_by, plans_of};
use crate::pg::catalog_row::CatalogRow;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::tree::{Tree, child, match_node};
use crate::pg::{compat, privileges};

/// What is known of a node of an expression.
enum Verdict {
    CannotFail,
    MayFail,
    /// It can fail if a part of it can.
    OfParts,
}

/// What is known of the conditions of a plan so far. Those of one partition are much like those of another.
struct Judge<'q> {
    clock: Clock<'q>,
    /// What the plan computes for a parameter is there: an index was asked with it before.
    knows_params: bool,
    /// Parts that ask for the time, and that can be computed.
    computed: Vec<*mut pg_sys::Node>,
    /// Operators that do not fail, and the collation of their arguments.
    safe_operators: Vec<(Oid, Oid)>,
    /// Functions that the role may execute.
    permitted: Vec<Oid>,
}

/// May it show what the plan reads beside the rows of the answer? `may_fail`: computing the query may raise an error. `may_lack` tells whether some role may not execute a built-in function.
/// The time is that of the clock.
pub fn may_show(
    plan: Tree<'_, pg_sys::PlannedStmt>,
    may_fail: bool,
    may_lack: impl FnOnce() -> bool,
    clock: Clock<'_>,
) -> bool {
    // Values that stand in the key themselves have the same plan read the same.
    if !clock.splits() || !may_vary(plan) {
        return false;
    }
    let opened = opened_by(plan);
    if opened.prunes_at_start() && may_lack() {
        return true;
    }
    // What cannot fail calls built-in functions alone.
    if !may_fail {
        return false;
    }
    let mut judge =
        Judge { clock, knows_params: true, computed: Vec::new(), safe_operators: Vec::new(), permitted: Vec::new() };
    let rechecks_safely = opened.rechecking.iter().all(|scan| judge.cannot_fail(scan.bitmapqualorig.cast()));
    judge.knows_params = false;
    !(rechecks_safely && opened.left_out.iter().chain(&opened.left_out_later).all(|plan| judge.rejects_safely(*plan)))
}

impl Judge<'_> {
    /// Is the plan a scan, or made of scans, whose conditions cannot fail, and which the role may start? Columns are computed only of rows that are not rejected.
    fn rejects_safely(&mut self, plan: Tree<'_, pg_sys::Plan>) -> bool {
        let node = plan.as_node();
        let is_safe = match_node! { node;
            SeqScan(_scan) => true,
            IndexScan(scan) => scan.indexorderby.is_null() && self.cannot_fail(scan.indexqualorig.cast()),
            IndexOnlyScan(scan) => scan.indexorderby.is_null() && self.cannot_fail(scan.indexqual.cast()),
            BitmapHeapScan(scan) => self.cannot_fail(scan.bitmapqualorig.cast()) && self.below(plan),
            BitmapIndexScan(scan) => self.cannot_fail(scan.indexqualorig.cast()),
            BitmapAnd(and) => self.all(child!(and.bitmapplans)),
            BitmapOr(or) => self.all(child!(or.bitmapplans)),
            Append(append) => self.all(child!(append.appendplans)),
            MergeAppend(append) => self.all(child!(append.mergeplans)),
            _ => node.tag() == NodeTag::T_Sort && self.below(plan),
        };
        is_safe
            && plan.initPlan.is_null()
            && self.cannot_fail(plan.qual.cast())
            && self.may_execute(plan.targetlist.cast())
    }

    fn below(&mut self, plan: Tree<'_, pg_sys::Plan>) -> bool {
        child!(plan.lefttree).is_some_and(|below| self.rejects_safely(below))
    }

    fn all(&mut self, list: Option<Tree<'_, pg_sys::List>>) -> bool {
        plans_of(list).all(|plan| self.rejects_safely(plan))
    }

    /// Does an expression, or each of a list, have a value for every row?
    fn cannot_fail(&mut self, expression: *mut pg_sys::Node) -> bool {
        // SAFETY: null or a part of a valid plan; the judge is lent to the walk alone.
        !unsafe { visit(expression, std::ptr::from_mut(self).cast()) }
    }

    /// May the role execute the functions of users that an expression, or a list of them, calls?
    fn may_execute(&mut self, expression: *mut pg_sys::Node) -> bool {
        // SAFETY: null or a part of a valid plan; the judge is lent to the walk alone.
        !unsafe { visit_calls(expression, std::ptr::from_mut(self).cast()) }
    }

    /// What is known of a node, before what is below it is looked at.
    fn judge(&mut self, node: Tree<'_, pg_sys::Node>) -> Verdict {
        if closed(node).is_some_and(|closed| closed.asks) {
            return if self.computes(node) { Verdict::CannotFail } else { Verdict::MayFail };
        }
        let by_itself = match_node! { node;
            // What a plan computes when it is first asked for may never be.
            Param(param) => param.paramkind != pg_sys::ParamKind::PARAM_EXTERN && !self.knows_params,
            OpExpr(operator) => {
                let called = (operator.opno, operator.inputcollid);
                let is_known = self.safe_operators.contains(&called);
                !(is_known || !node_may_fail(node) && self.safe_operators.add(called).is_ok())
            },
            _ => node_may_fail(node),
        };
        if by_itself { Verdict::MayFail } else { Verdict::OfParts }
    }

    /// Can a part that asks for the time, and reads no row, be computed?
    fn computes(&mut self, part: Tree<'_, pg_sys::Node>) -> bool {
        let part_is = |other: &*mut pg_sys::Node| {
            // SAFETY: two parts of a valid plan.
            unsafe { pg_sys::equal(part.as_ptr().cast(), other.cast()) }
        };
        self.computed.iter().any(part_is) || computes_now(part, &self.clock) && self.computed.add(part.as_ptr()).is_ok()
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, judge: *mut c_void) -> bool {
    // SAFETY: the node is null or part of the plan that is walked; `cannot_fail` has lent its judge, and uses it no more while the walk lasts.
    unsafe {
        let Some(tree) = Tree::enter(node) else { return false };
        let verdict = (*judge.cast::<Judge>()).judge(tree);
        match verdict {
            Verdict::CannotFail => false,
            Verdict::MayFail => true,
            Verdict::OfParts => pg_sys::expression_tree_walker(node, Some(visit), judge),
        }
    }
}

/// Is the role denied a function that is called here?
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn visit_calls(node: *mut pg_sys::Node, judge: *mut c_void) -> bool {
    // SAFETY: as in `visit`.
    unsafe {
        !node.is_null()
            && (pg_sys::check_functions_in_node(node, Some(is_denied), judge)
                || pg_sys::expression_tree_walker(node, Some(visit_calls), judge))
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn is_denied(function: Oid, judge: *mut c_void) -> bool {
    // SAFETY: as in `visit`.
    let permitted = unsafe { &mut (*judge.cast::<Judge>()).permitted };
    // Whether some role lacks a built-in function is known. One that is gone has the server raise an error, where the plan calls it.
    function.to_u32() >= FIRST_UNPINNED_OID
        && !permitted.contains(&function)
        && !(CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, function).is_some()
            && compat::may_execute(privileges::current_role(), function)
            && permitted.add(function).is_ok())
}
