//! The plans of parts, made by the server's own planner while it plans the statement, and kept in the statement's plan.
//! Keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::split_aggregates::give_states;
use crate::lookup::Call;
use crate::lookup::stored_parts;
use crate::pg::lists::nodes;
use crate::pg::memory_context::context_below;
use crate::pg::tree::Tree;
use crate::pg::tree_making::copy;

/// The name of the memory of a part.
pub const PART: &CStr = c"pg_arrow_cache part";

/// The plan of a part's query, in the current memory context, for the values of the `call` that plans the statement.
/// What planning takes besides goes at once, since there may be many parts. `None` if there is no query.
pub fn make(call: &Call<'_>, query: impl FnOnce() -> Option<*mut pg_sys::Query>) -> Option<*mut pg_sys::PlannedStmt> {
    let params = call.params().map_or(std::ptr::null_mut(), Tree::as_ptr);
    let parallel = call.options() & pg_sys::CURSOR_OPT_PARALLEL_OK as i32;
    // SAFETY: a query of our own, which nobody has planned; text and parameters are those of the call. Nobody uses the
    // memory of planning after the plan was copied.
    unsafe {
        let planning = context_below(pg_sys::CurrentMemoryContext, PART);
        let caller = pg_sys::MemoryContextSwitchTo(planning);
        let made = query().map(|query| {
            let plan = stored_parts::plan(&Call::of_hook(query, call.source(), parallel, params));
            give_states(plan);
            forget_names(plan);
            plan
        });
        pg_sys::MemoryContextSwitchTo(caller);
        let plan = made.map(|plan| copy(plan));
        kept!(pg_sys::MemoryContextDelete(planning));
        plan
    }
}

/// Takes the names of columns out of a plan, of which there may be many copies: the executor does not ask for them.
///
/// # Safety
/// A valid plan that nobody else knows.
unsafe fn forget_names(plan: *mut pg_sys::PlannedStmt) {
    // SAFETY: the caller's promise.
    unsafe {
        for entry in nodes::<pg_sys::RangeTblEntry>((*plan).rtable) {
            (*entry).eref = kept!(pg_sys::makeAlias(c"part".as_ptr(), std::ptr::null_mut()));
            (*entry).alias = std::ptr::null_mut();
        }
    }
}
