//! The plans of parts, made by the server's own planner while it plans the statement, and kept in the statement's plan.
//! Keeps nothing.

use pgrx::pg_sys;

use crate::lookup::Call;
use crate::lookup::parts;
use crate::pg::lists::nodes;
use crate::pg::tree::Tree;
use crate::pg::tree_making::copy;
use crate::query::decomposition::Part;

/// The plan of a leaf's query, in the current memory context, for the values of the `call` that plans the statement.
/// What planning takes besides goes at once, since there may be many leaves. `None` if the leaf cannot be asked.
pub fn make(part: &Part, leaf: pg_sys::Oid, call: &Call<'_>) -> Option<*mut pg_sys::PlannedStmt> {
    // SAFETY: nobody uses the memory of planning after the plan was copied.
    unsafe {
        let planning = context_below(pg_sys::CurrentMemoryContext);
        let caller = pg_sys::MemoryContextSwitchTo(planning);
        let made = plan(part, leaf, call);
        pg_sys::MemoryContextSwitchTo(caller);
        let plan = made.map(|plan| copy(plan));
        kept!(pg_sys::MemoryContextDelete(planning));
        plan
    }
}

/// As `make`, without cleaning up. Other processes take part only if the rows are likely to fit into memory.
fn plan(part: &Part, leaf: pg_sys::Oid, call: &Call<'_>) -> Option<*mut pg_sys::PlannedStmt> {
    let params = call.params().map_or(std::ptr::null_mut(), Tree::as_ptr);
    let parallel = call.options() & pg_sys::CURSOR_OPT_PARALLEL_OK as i32;
    for options in [parallel, 0] {
        let query = part.of_leaf(leaf).ok()?;
        // SAFETY: a query of our own, which nobody has planned; text and parameters are those of the call. Nobody else
        // knows the plan.
        unsafe {
            let plan = parts::plan(&Call::of_hook(query, call.source(), options, params));
            let tree = &*(*plan).planTree;
            let bytes = tree.plan_rows * f64::from(tree.plan_width + 24);
            if !(*plan).parallelModeNeeded || bytes < f64::from(hash_memory_kilobytes()) * 512.0 {
                forget_names(plan);
                return Some(plan);
            }
        }
    }
    None
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

/// How much memory a hash table may take, by the settings.
pub fn hash_memory_kilobytes() -> i32 {
    // SAFETY: plain globals of the backend.
    unsafe { (f64::from(pg_sys::work_mem) * pg_sys::hash_mem_multiplier) as i32 }
}

/// A memory context for a part.
///
/// # Safety
/// `parent` must be a live context.
pub unsafe fn context_below(parent: pg_sys::MemoryContext) -> pg_sys::MemoryContext {
    // SAFETY: the caller's promise.
    unsafe {
        kept!(pg_sys::AllocSetContextCreateInternal(
            parent,
            c"pg_arrow_cache part".as_ptr(),
            pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        ))
    }
}
