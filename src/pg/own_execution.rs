//! The steps of the server's own executor, for plans of ours that run below a statement of the client, where other
//! libraries are not told of them. What is raised jumps over these frames: none between here and PostgreSQL may have
//! pending destructors. Keeps nothing.

use pgrx::pg_sys;

use super::server;

/// The next row of a node that is started, with its columns (`ExecProcNode`); null at the end.
///
/// # Safety
/// A node that is started.
pub unsafe fn step(node: *mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe {
        if !(*node).chgParam.is_null() {
            direct!(pg_sys::ExecReScan(node));
        }
        let Some(next) = (*node).ExecProcNode else { return std::ptr::null_mut() };
        let slot = direct!(next(node));
        if slot.is_null() || (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0 {
            return std::ptr::null_mut();
        }
        let columns = (*(*slot).tts_tupleDescriptor).natts;
        if i32::from((*slot).tts_nvalid) < columns {
            direct!(pg_sys::slot_getsomeattrs_int(slot, columns));
        }
        slot
    }
}

/// The next row of a query in this direction, without its junk columns (`ExecutePlan`); null at the end.
///
/// # Safety
/// A query that is started.
pub unsafe fn next(
    query_desc: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe {
        let state = (*query_desc).estate;
        (*state).es_direction = direction;
        let per_tuple = (*state).es_per_tuple_exprcontext;
        if !per_tuple.is_null() {
            direct!(pg_sys::MemoryContextReset((*per_tuple).ecxt_per_tuple_memory));
        }
        let slot = step((*query_desc).planstate);
        let filter = (*state).es_junkFilter;
        if slot.is_null() || filter.is_null() { slot } else { direct!(pg_sys::ExecFilterJunk(filter, slot)) }
    }
}

/// Ends a query, which is gone afterwards.
///
/// # Safety
/// A query that is started.
pub unsafe fn end(query_desc: *mut pg_sys::QueryDesc) {
    // SAFETY: the caller's promise.
    unsafe {
        direct!(server::standard_ExecutorFinish(query_desc));
        direct!(server::standard_ExecutorEnd(query_desc));
        direct!(pg_sys::FreeQueryDesc(query_desc));
    }
}
