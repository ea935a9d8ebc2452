//! The clock-free part of a statement whose plan applies the clock to it (`query::shown_clock`): the part is looked up,
//! counted and stored like a statement of its own, and what becomes of it is what becomes of the statement. Keeps
//! nothing.

use arrow_cache_core::HashBuffer;
use pgrx::pg_sys::{self, NodeTag};

use crate::pg::given_values::with_nulls;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::{Tree, child};
use crate::query::clock::{self, Clock};
use crate::query::clock_settling::settles;
use crate::query::identity::{self, Identity};
use crate::query::plan_marker;
use crate::serve::tap;

/// Returns true if the clock expressions of an eligible query may have values that change by less than a minute. Its
/// answer will then not be looked up, unless they are cuts. Without `params`, a parameter counts as NULL. `seed` is the
/// secret of the store.
pub fn moves(query: Tree<'_, pg_sys::Query>, params: Option<Tree<'_, pg_sys::ParamListInfoData>>, seed: u64) -> bool {
    // SAFETY: the copy of a query.
    let asked = if params.is_some() { Some(query) } else { unsafe { Tree::enter(with_nulls(query)) } };
    let Some(asked) = asked else { return true };
    let identified = identity::of(asked.as_node(), seed).and_then(Identity::into_identified);
    identified.is_ok_and(|identified| {
        let clock = Clock { trees: identified.clock, params, one_message: true, settles };
        clock::times(&clock, &mut HashBuffer::new()).map_or(true, |cuts| !cuts.is_none())
    })
}

/// The clock-free part of a query that is about to be started, if its plan has one: a query of its own, as long as the
/// other.
pub fn part_of(query: QueryDesc<'_>) -> Option<QueryDesc<'_>> {
    let plan = query.plan();
    if plan_marker::is_about_part(plan) { part_below(query, plan) } else { None }
}

#[inline(never)]
fn part_below<'q>(query: QueryDesc<'q>, plan: Tree<'q, pg_sys::PlannedStmt>) -> Option<QueryDesc<'q>> {
    let top = child!(plan.planTree).filter(|top| top.type_ == NodeTag::T_Result && !top.lefttree.is_null())?;
    // SAFETY: the memory of the descriptor; as many bytes as are written. The plan, which lives as long, shares its
    // nodes with its copy.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(query.own_context());
        let copy: *mut pg_sys::PlannedStmt = kept!(pg_sys::palloc(size_of::<pg_sys::PlannedStmt>())).cast();
        copy.copy_from_nonoverlapping(plan.as_ptr(), 1);
        (*copy).planTree = top.lefttree;
        (*copy).invalItems = plan_marker::items_of_part(plan);
        let part: *mut pg_sys::QueryDesc = kept!(pg_sys::palloc(size_of::<pg_sys::QueryDesc>())).cast();
        // The snapshot is registered for the query, and the part ends with it.
        part.write(pg_sys::QueryDesc {
            operation: query.operation(),
            plannedstmt: copy,
            sourceText: query.source(),
            snapshot: query.snapshot(),
            dest: pg_sys::None_Receiver,
            params: query.params(),
            queryEnv: (*query.as_ptr()).queryEnv,
            ..Default::default()
        });
        pg_sys::MemoryContextSwitchTo(caller);
        Some(QueryDesc::of_hook(part))
    }
}

/// Has a query read the stored answer of its part: the plan of `part` is the one that serves it.
///
/// # Safety
/// `part` must have come from `part_of` for this query, which must not be started.
pub unsafe fn serve_below(query: QueryDesc<'_>, part: QueryDesc<'_>) {
    // SAFETY: the caller's promise.
    unsafe { put_below(query, part.plan(), (*part.plan().as_ptr()).planTree) }
}

/// Has the rows of the part of a query go to the receiver of `part`, too.
///
/// # Safety
/// As `serve_below`.
pub unsafe fn tap_below(query: QueryDesc<'_>, part: QueryDesc<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(query.own_context());
        let tap = tap(part);
        pg_sys::MemoryContextSwitchTo(caller);
        put_below(query, query.plan(), tap);
    }
}

/// Gives a query a plan for this execution, made of its own topmost node, another one below that, and all else of
/// `rest`.
///
/// # Safety
/// As `serve_below`; the node must be one of `rest`, or stand above one.
unsafe fn put_below(query: QueryDesc<'_>, rest: Tree<'_, pg_sys::PlannedStmt>, below: *mut pg_sys::Plan) {
    // SAFETY: the memory of the descriptor; as many bytes as are written. `part_of` has found a Result on top.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(query.own_context());
        let own = query.plan().as_ptr();
        let top: *mut pg_sys::Result = kept!(pg_sys::palloc(size_of::<pg_sys::Result>())).cast();
        top.copy_from_nonoverlapping((*own).planTree.cast(), 1);
        (*top).plan.lefttree = below;
        let plan: *mut pg_sys::PlannedStmt = kept!(pg_sys::palloc(size_of::<pg_sys::PlannedStmt>())).cast();
        plan.copy_from_nonoverlapping(rest.as_ptr(), 1);
        (*plan).planTree = top.cast();
        (*plan).invalItems = (*own).invalItems;
        query.set_plan(plan);
        pg_sys::MemoryContextSwitchTo(caller);
    }
}
