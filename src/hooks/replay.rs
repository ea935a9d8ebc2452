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
    let of_extensions = (pg_sys::RM_MIN_CUSTOM_ID..=pg_sys::RM_MAX_CUSTOM_ID).map(|id| (id, redo as Redo));
    let ours: [(RmgrIds::Type, Redo); 6] = [
        (RmgrIds::RM_HEAP_ID, redo_heap),
        (RmgrIds::RM_HEAP2_ID, redo_heap2),
        (RmgrIds::RM_XLOG_ID, redo_xlog),
        (RmgrIds::RM_XACT_ID, redo_xact),
        (RmgrIds::RM_DBASE_ID, redo),
        (RmgrIds::RM_STANDBY_ID, redo_standby),
    ];
    // SAFETY: the table has a place for each number (access/rmgr.h), is writable since 15, and is only read after this. The postmaster has
    // one thread.
    unsafe {
        let table = (&raw mut pg_sys::RmgrTable).cast::<pg_sys::RmgrData>();
        let wrapped = &raw mut WRAPPED;
        for (id, redo) in ours.into_iter().chain(of_extensions) {
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

/// Calls what was there before for a resource manager.
///
/// # Safety
/// `reader` is the argument of a redo function of this manager.
#[inline(always)]
unsafe fn pass_on(manager: RmgrIds::Type, reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: written before this process existed. The server's own argument, passed on unchanged. What redo raises jumps over frames that
    // have nothing to drop.
    unsafe {
        direct!(WRAPPED.redo[manager as usize](reader));
    }
}

/// `rm_redo` of the heap. Most records are its, and cost as little as possible.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn redo_heap(reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: the record stays while it is replayed.
    unsafe {
        if replay::note_heap(WalRecord::of(reader)) {
            pass_on(RmgrIds::RM_HEAP_ID, reader);
        } else {
            redo_rows::<{ RmgrIds::RM_HEAP_ID }>(reader);
        }
    }
}

/// `rm_redo` of the second manager of the heap.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn redo_heap2(reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: as in `redo_heap`.
    unsafe {
        if replay::note_heap2(WalRecord::of(reader)) {
            pass_on(RmgrIds::RM_HEAP2_ID, reader);
        } else {
            redo_rows::<{ RmgrIds::RM_HEAP2_ID }>(reader);
        }
    }
}

/// The rest of `rm_redo` of either manager of the heap, for records that could not be noted quickly.
///
/// # Safety
/// Called by the server, in the startup process.
#[inline(never)]
unsafe extern "C-unwind" fn redo_rows<const MANAGER: RmgrIds::Type>(reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: as in `redo_heap`.
    unsafe {
        replay::before_rows(WalRecord::of(reader));
        pass_on(MANAGER, reader);
    }
}

/// `rm_redo` of the manager of transactions.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn redo_xact(reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: as in `redo_heap`.
    unsafe {
        if let Some(ends) = replay::end_quickly(WalRecord::of(reader)) {
            pass_on(RmgrIds::RM_XACT_ID, reader);
            replay::has_ended(ends);
        } else {
            redo(reader);
        }
    }
}

/// `rm_redo` of the manager of the WAL itself. Most of its records are images of pages, of indexes that are built.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn redo_xlog(reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: as in `redo_heap`.
    unsafe {
        if WalRecord::of(reader).is_page_image() {
            pass_on(RmgrIds::RM_XLOG_ID, reader);
        } else {
            redo(reader);
        }
    }
}

/// `rm_redo` of the manager of what concerns standbys. Most of its records are locks.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn redo_standby(reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: as in `redo_heap`.
    unsafe {
        if WalRecord::of(reader).is_standby_lock() {
            pass_on(RmgrIds::RM_STANDBY_ID, reader);
        } else {
            redo(reader);
        }
    }
}

/// `rm_redo` of all managers that are wrapped, for any record but one of the heap's.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn redo(reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: as in `redo_heap`.
    unsafe {
        let record = WalRecord::of(reader);
        let due = replay::before(record);
        pass_on(record.manager(), reader);
        replay::after(due);
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
