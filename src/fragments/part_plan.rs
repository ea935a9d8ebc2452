//! The plans of parts. Each is made by the server's own planner when the statement starts, and kept until it ends. Makes nodes in the memory of
//! the statement.

use std::ffi::c_char;

use pgrx::pg_sys;

use crate::lookup::parts;
use crate::lookup::{Call, Eligible};
use crate::pg::tree_making::copy;
use crate::query::decomposition::Part;
use crate::query::partitions::Leaf;
use crate::shmem;

/// The plan of a leaf's query. Plain data.
#[derive(Clone, Copy)]
pub struct PartPlan {
    pub plan: *mut pg_sys::PlannedStmt,
    /// What there is to know for storing its rows, if they may be stored.
    pub eligible: Option<Eligible>,
}

impl PartPlan {
    /// Plans the query of a leaf. The plan lies in the memory of the statement; what planning takes besides goes at once, since there may be many leaves.
    ///
    /// # Safety
    /// `state` must be that of a statement that is started.
    pub unsafe fn make(part: &Part, leaf: Leaf, state: *mut pg_sys::EState) -> Self {
        // SAFETY: the caller's promise. Nobody uses the memory of planning after the plan was copied.
        unsafe {
            let planning = context_below(state);
            let caller = pg_sys::MemoryContextSwitchTo(planning);
            let made = make_here(part, leaf, (*state).es_sourceText);
            pg_sys::MemoryContextSwitchTo((*state).es_query_cxt);
            let plan = copy(made.plan);
            pg_sys::MemoryContextSwitchTo(caller);
            pg_sys::MemoryContextDelete(planning);
            Self { plan, ..made }
        }
    }
}

/// The plan of a leaf's query, in the current memory context. Other processes take part only if the rows are likely to fit into memory.
///
/// # Safety
/// `text` must be that of the statement.
unsafe fn make_here(part: &Part, leaf: Leaf, text: *const c_char) -> PartPlan {
    for options in [pg_sys::CURSOR_OPT_PARALLEL_OK as i32, 0] {
        // SAFETY: a query of our own, which nobody has planned; the caller's promise.
        unsafe {
            let call = Call::of_hook(leaf_query(part, leaf), text, options, std::ptr::null_mut());
            let eligible = shmem::store().and_then(|store| parts::before_planning(&store, &call, true).ok());
            let plan = parts::plan(&call);
            let tree = &*(*plan).planTree;
            let bytes = tree.plan_rows * f64::from(tree.plan_width + 24);
            if !(*plan).parallelModeNeeded || bytes < f64::from(hash_memory_kilobytes()) * 512.0 {
                return PartPlan { plan, eligible };
            }
        }
    }
    unreachable!("a plan that was made without other processes needs none")
}

/// The query of one leaf.
fn leaf_query(part: &Part, leaf: Leaf) -> *mut pg_sys::Query {
    match part.of_leaf(leaf.relation, leaf.asked) {
        Ok(query) => query,
        Err(_) => pgrx::error!("part of a query has no query for a leaf"),
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
/// `state` must be that of a statement that is started.
pub unsafe fn context_below(state: *mut pg_sys::EState) -> pg_sys::MemoryContext {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::AllocSetContextCreateInternal(
            (*state).es_query_cxt,
            c"pg_arrow_cache part".as_ptr(),
            pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        )
    }
}
