//! The redo functions of resource managers, wrapped: the startup process of a standby publishes what it replays. Keeps
//! the functions that were there before; written once, in the postmaster, before any other process exists.

use pgrx::pg_sys;
use pgrx::pg_sys::RmgrIds;

use crate::invalidation::replay;
use crate::pg::wal_record::WalRecord;

/// The table of resource managers as it was before.
// SAFETY: zeros are managers that do not exist.
static mut BEFORE: [pg_sys::RmgrData; pg_sys::RM_MAX_ID as usize + 1] = unsafe { std::mem::zeroed() };

/// Wraps the resource managers whose records matter, those of extensions among them. To be called when all libraries
/// are preloaded.
///
/// # Safety
/// Called once, in the postmaster, before it starts other processes.
pub unsafe fn wrap() {
    // Records of RM_XLOG_ID change nothing, but they alone lead to another timeline.
    const OTHERS: [RmgrIds::Type; 3] = [RmgrIds::RM_XLOG_ID, RmgrIds::RM_XACT_ID, RmgrIds::RM_STANDBY_ID];
    // SAFETY: the table has a place for each number (access/rmgr.h), is writable since 15, and is only read after this.
    // The postmaster has one thread.
    unsafe {
        let table = (&raw mut pg_sys::RmgrTable).cast::<pg_sys::RmgrData>();
        BEFORE = *table.cast();
        (*table.add(RmgrIds::RM_HEAP_ID as usize)).rm_redo = Some(redo_rows);
        (*table.add(RmgrIds::RM_HEAP2_ID as usize)).rm_redo = Some(redo_rows);
        for id in OTHERS.into_iter().chain(pg_sys::RM_MIN_CUSTOM_ID..=pg_sys::RM_MAX_CUSTOM_ID) {
            let manager = &mut *table.add(id as usize);
            manager.rm_redo = manager.rm_redo.map(|_| redo as _);
        }
        // Managers are started when redo begins.
        (*table.add(RmgrIds::RM_HEAP_ID as usize)).rm_startup = Some(startup);
        // They are cleaned up when it ends, before the server leaves recovery.
        (*table.add(RmgrIds::RM_HEAP_ID as usize)).rm_cleanup = Some(cleanup);
    }
}

/// `rm_redo` of both managers of the heap. Most records are theirs: what was there before is called last, so this needs
/// no frame.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn redo_rows(reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: as in `redo`.
    unsafe {
        let record = WalRecord::of(reader);
        replay::before_rows(record);
        direct!(BEFORE[record.manager() as usize].rm_redo.unwrap_unchecked()(reader));
    }
}

/// `rm_redo` of the other managers that are wrapped.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn redo(reader: *mut pg_sys::XLogReaderState) {
    // SAFETY: the record stays while it is replayed. What was there before was written before this process existed, and
    // gets the server's own argument. What it raises jumps over this frame, which has nothing to drop.
    unsafe {
        let record = WalRecord::of(reader);
        let redefined = replay::before(record);
        direct!(BEFORE[record.manager() as usize].rm_redo.unwrap_unchecked()(reader));
        if let Some(redefined) = redefined {
            replay::after(record, redefined);
        }
        replay::visible();
    }
}

/// `rm_startup` of the heap.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn startup() {
    // SAFETY: passed on unchanged. The callback is one of this process, which replays nothing yet: what this raises
    // ends the server before anything was done.
    unsafe {
        if let Some(before) = BEFORE[RmgrIds::RM_HEAP_ID as usize].rm_startup {
            direct!(before());
        }
        direct!(pg_sys::on_shmem_exit(Some(at_exit), pg_sys::Datum::from(0)));
    }
}

/// Called when the startup process ends: with 0 if recovery has ended.
///
/// # Safety
/// Called by the server, in the startup process, which replays nothing any more.
unsafe extern "C-unwind" fn at_exit(code: i32, _: pg_sys::Datum) {
    if code != 0 {
        // SAFETY: the caller's promise.
        unsafe { replay::recovery_stops() };
    }
}

/// `rm_cleanup` of the heap.
///
/// # Safety
/// Called by the server, in the startup process.
unsafe extern "C-unwind" fn cleanup() {
    // SAFETY: passed on unchanged.
    unsafe {
        if let Some(before) = BEFORE[RmgrIds::RM_HEAP_ID as usize].rm_cleanup {
            direct!(before());
        }
    }
    replay::recovery_ends();
}
