//! The redo functions of resource managers, wrapped: the startup process of a standby publishes what it replays. Keeps the functions that
//! were there before; written once, in the postmaster, before any other process exists.

use pgrx::pg_sys;
use pgrx::pg_sys::RmgrIds;

use crate::invalidation::replay;
use crate::pg::wal_record::{Redo, WalRecord};

/// The end of redo for a resource manager.
type Cleanup = unsafe extern "C-unwind" fn();

/// What was there before.
struct Wrapped {
    redo: [Redo; pg_sys::RM_MAX_ID as usize + 1],
    cleanup: Option<Cleanup>,
}

static mut WRAPPED: Wrapped = Wrapped { redo: [nothing; pg_sys::RM_MAX_ID as usize + 1], cleanup: None };

/// Stands for the redo function of a manager that is not wrapped: nobody calls it.
unsafe extern "C-unwind" fn nothing(_: *mut pg_sys::XLogReaderState) {}

/// Wraps the resource managers whose records matter, those of extensions among them. To be called when all libraries are preloaded.
///
/// # Safety
/// Called once, in the postmaster, before it starts other processes.
pub unsafe fn wrap() {
    const OURS: [RmgrIds::Type; 5] =
        [RmgrIds::RM_HEAP_ID, RmgrIds::RM_HEAP2_ID, RmgrIds::RM_XLOG_ID, RmgrIds::RM_XACT_ID, RmgrIds::RM_STANDBY_ID];
    // SAFETY: the table has a place for each number (access/rmgr.h), is writable since 15, and is only read after this. The postmaster has
    // one thread.
    unsafe {
        let table = (&raw mut pg_sys::RmgrTable).cast::<pg_sys::RmgrData>();
        let wrapped = &raw mut WRAPPED;
        for id in OURS.into_iter().chain(pg_sys::RM_MIN_CUSTOM_ID..=pg_sys::RM_MAX_CUSTOM_ID) {
            let manager = &mut *table.add(id as usize);
            if !manager.rm_name.is_null()
                && let Some(before) = manager.rm_redo.replace(redo)
            {
                (*wrapped).redo[id as usize] = before;
            }
        }
        // Managers are cleaned up when redo ends, before the server leaves recovery.
        (*wrapped).cleanup = (*table.add(RmgrIds::RM_HEAP_ID as usize)).rm_cleanup.replace(cleanup);
    }
}

/// `rm_redo` of all managers that are wrapped.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn redo(reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: the record stays while it is replayed. What was there before was written before this process existed, and gets the server's own
    // argument. What it raises jumps over this frame, which has nothing to drop.
    unsafe {
        let record = WalRecord::of(reader);
        let due = replay::before(record);
        direct!(WRAPPED.redo[record.manager() as usize](reader));
        if let Some(due) = due {
            replay::after(record, &due);
        }
    }
}

/// `rm_cleanup` of the heap.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn cleanup() {
    // SAFETY: passed on unchanged.
    unsafe {
        if let Some(wrapped) = WRAPPED.cleanup {
            direct!(wrapped());
        }
    }
    replay::recovery_ends();
}
