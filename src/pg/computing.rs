//! Computing an expression that stands in no plan, as the server's executor does. Keeps nothing.

use pgrx::pg_sys::{self, Datum, NodeTag};

/// Makes an expression ready to be computed, in the current memory context. The expression has to live as long. What it
/// raises jumps over this frame.
///
/// # Safety
/// An expression that can be executed, without columns and sub-queries.
pub unsafe fn prepare(expression: *mut pg_sys::Node) -> *mut pg_sys::ExprState {
    // SAFETY: the caller's promise.
    unsafe { direct!(pg_sys::ExecInitExpr(expression.cast(), std::ptr::null_mut())) }
}

/// Computes an expression; returns the value, and whether it is NULL. All that is allocated lies in the current memory
/// context. What it raises jumps over this frame.
///
/// # Safety
/// What `prepare` has returned, and null, or parameters that are there.
pub unsafe fn compute(state: *mut pg_sys::ExprState, params: pg_sys::ParamListInfo) -> (Datum, bool) {
    // SAFETY: the caller's promise.
    unsafe { compute_for(state, params, Datum::null()) }
}

/// As `compute`, with a value for each `CaseTestExpr`.
///
/// # Safety
/// As `compute`; a value of their type.
pub unsafe fn compute_for(state: *mut pg_sys::ExprState, params: pg_sys::ParamListInfo, value: Datum) -> (Datum, bool) {
    // SAFETY: the caller's promise. A context needs nothing but memory for an expression that reads no rows.
    unsafe {
        let memory = pg_sys::CurrentMemoryContext;
        let mut context = pg_sys::ExprContext {
            type_: NodeTag::T_ExprContext,
            ecxt_per_query_memory: memory,
            ecxt_per_tuple_memory: memory,
            ecxt_param_list_info: params,
            caseValue_datum: value,
            ..Default::default()
        };
        let mut is_null = true;
        let Some(run) = (*state).evalfunc else { return (Datum::null(), true) };
        let value = direct!(run(state, &raw mut context, &raw mut is_null));
        (value, is_null)
    }
}

/// Keeps two hooks from what is called before this is dropped. The server shows `object_access_hook` which functions a
/// statement is about to execute; what the cache computes for itself is no such execution. It shows
/// `get_relation_info_hook` the query that is planned; what the cache asks the planner about a table is none.
pub struct Unshown(pg_sys::object_access_hook_type, pg_sys::get_relation_info_hook_type);

impl Unshown {
    /// From now on.
    pub fn new() -> Self {
        // SAFETY: variables of the backend, which has one thread.
        unsafe {
            let hook = (&raw mut pg_sys::object_access_hook).replace(None);
            Self(hook, (&raw mut pg_sys::get_relation_info_hook).replace(None))
        }
    }
}

impl Drop for Unshown {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe {
            (&raw mut pg_sys::object_access_hook).write(self.0);
            (&raw mut pg_sys::get_relation_info_hook).write(self.1);
        }
    }
}
