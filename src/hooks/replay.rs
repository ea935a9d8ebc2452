//! The redo functions of resource managers, wrapped: the startup process of a standby publishes what it replays. Keeps the functions that
//! were there before; written once, in the postmaster, before any other process exists.

use pgrx::pg_sys;
use pgrx::pg_sys::RmgrIds;

use crate::invalidation::replay;
use crate::pg::error_passing::direct;
use crate::pg::wal_record::{Redo, WalRecord};

/// The end of redo for a resource manager.
type Cleanup = unsafe extern "C-unwind" fn();

/// What was there before.
struct Wrapped {
    redo: [Option<Redo>; pg_sys::RM_MAX_ID as usize + 1],
    cleanup: Option<Cleanup>,
}

static mut WRAPPED: Wrapped = Wrapped { redo: [None; pg_sys::RM_MAX_ID as usize + 1], cleanup: None };

/// Wraps the resource managers whose records matter, those of extensions among them. To be called when all libraries are preloaded.
///
/// # Safety
/// Called once, in the postmaster, before it starts other processes.
pub unsafe fn wrap() {
    // SAFETY: the table has a place for each number (access/rmgr.h), is writable since 15, and is only read after this. The postmaster has
    // one thread.
    unsafe {
        let table = (&raw mut pg_sys::RmgrTable).cast::<pg_sys::RmgrData>();
        let wrapped = &raw mut WRAPPED;
        let of_extensions = pg_sys::RM_MIN_CUSTOM_ID..=pg_sys::RM_MAX_CUSTOM_ID;
        let ours = replay::MANAGERS.into_iter().chain(of_extensions).map(|id| (id, redo as Redo));
        for (id, redo) in ours.chain(replay::HEAPS.into_iter().map(|id| (id, redo_rows as Redo))) {
            let manager = &mut *table.add(id as usize);
            if !manager.rm_name.is_null() && manager.rm_redo.is_some() {
                (*wrapped).redo[id as usize] = manager.rm_redo.replace(redo);
            }
        }
        // Managers are cleaned up when redo ends, before the server leaves recovery.
        (*wrapped).cleanup = (*table.add(RmgrIds::RM_HEAP_ID as usize)).rm_cleanup.replace(cleanup);
    }
}

/// `rm_redo` of the heap's managers. Most records are theirs, and cost as little as possible.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn redo_rows(reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: as in `redo`.
    unsafe {
        let record = WalRecord::of(reader);
        replay::before_rows(record);
        if let Some(wrapped) = WRAPPED.redo[record.manager() as usize] {
            direct!(wrapped(reader));
        }
    }
}

/// `rm_redo` of the other managers that are wrapped.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn redo(reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: the server's own argument, passed on unchanged; the record stays while it is replayed. What redo raises jumps over this
    // frame, which has nothing to drop.
    unsafe {
        let record = WalRecord::of(reader);
        let due = replay::before(record);
        if let Some(wrapped) = WRAPPED.redo[record.manager() as usize] {
            direct!(wrapped(reader));
        }
        replay::after(record, due);
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
