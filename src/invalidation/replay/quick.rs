//! Records that cost as little as possible, since most are of these kinds: changes of rows, and ends of transactions that have changed rows of
//! hot files and nothing else.

use arrow_cache_core::{Counter, ReplayFault, widen_xid};
use pgrx::pg_sys;
use pgrx::pg_sys::RmgrIds;

use super::publisher::{may_be_read, publisher, surely, switch_off};
use super::rows::{self, Concern};
use crate::pg::compat;
use crate::pg::wal_record::WalRecord;

/// To be called before a record of the heap is replayed. If it returns false, `before_rows` has to be called.
///
/// # Safety
/// As for [`super::before`].
#[inline(always)]
pub unsafe fn note_heap(record: WalRecord<'_>) -> bool {
    match rows::concern_of_heap(record) {
        // SAFETY: the caller's promise.
        Concern::Rows => unsafe { note_rows(record) },
        Concern::Unusual => false,
        Concern::Nothing => true,
    }
}

/// As `note_heap`, for a record of the heap's second manager.
///
/// # Safety
/// As for [`super::before`].
#[inline(always)]
pub unsafe fn note_heap2(record: WalRecord<'_>) -> bool {
    // SAFETY: the caller's promise.
    !rows::is_multi_insert(record) || unsafe { note_rows(record) }
}

/// Notes a change of rows of a hot file. Files become hot when there may be readers, so this is not asked here. A record that does not use its
/// first block is noted without need, if at all.
///
/// # Safety
/// As for [`super::before`].
#[inline(always)]
unsafe fn note_rows(record: WalRecord<'_>) -> bool {
    // SAFETY: as in `super::before`.
    let publisher = unsafe { publisher() };
    record.probable_file().is_some_and(|file| publisher.changes.note_hot(record.transaction(), file))
}

/// Notes what a record of the heap changes, of either manager, before it is replayed.
///
/// # Safety
/// As for [`super::before`].
#[inline(always)]
pub unsafe fn before_rows(record: WalRecord<'_>) {
    // SAFETY: as in `super::before`.
    let publisher = unsafe { publisher() };
    // What a record only seems to touch has not to be noted, so it makes no difference whether it is noted already.
    let is_noted = rows::probably_touched(record)
        .is_some_and(|touched| publisher.lately.has(record.transaction(), touched, publisher.completed));
    if !is_noted {
        // SAFETY: the caller's promise.
        unsafe { note_rows_anew(record) };
    }
}

/// # Safety
/// As for [`super::before`].
#[cold]
#[inline(never)]
unsafe fn note_rows_anew(record: WalRecord<'_>) {
    let touched = match record.manager() {
        RmgrIds::RM_HEAP_ID => rows::touched_by_heap(record),
        _ => rows::touched_by_heap2(record),
    };
    // SAFETY: as in `super::before`.
    let publisher = unsafe { publisher() };
    if let Some(touched) = touched
        && may_be_read()
    {
        surely(|| publisher.note(record.transaction(), touched));
    }
}

/// To be called before a record of transactions is replayed. It publishes a commit of a transaction that has changed rows of hot files and nothing
/// else, and returns how many transactions the record ends, which `has_ended` has to be told when it has been replayed. `None`: it has done
/// nothing, and [`super::before`] has to be called.
///
/// # Safety
/// As for [`super::before`].
#[inline(always)]
pub unsafe fn end_quickly(record: WalRecord<'_>) -> Option<u64> {
    // SAFETY: as in `super::before`.
    let publisher = unsafe { publisher() };
    let Some(store) = &publisher.store else { return None };
    if publisher.completed != compat::completed_transactions() {
        return None;
    }
    let operation = record.operation();
    if operation != pg_sys::XLOG_XACT_COMMIT && operation != pg_sys::XLOG_XACT_COMMIT_PREPARED {
        return (operation == pg_sys::XLOG_XACT_PREPARE).then_some(0);
    }
    let commit = record.short_commit()?;
    let marks = publisher.changes.take_hot(commit.xid, commit.children)?;
    surely(|| {
        let (versions, xid) = (store.versions(), widen_xid(compat::next_full_transaction_id(), commit.xid));
        let mut count = 0;
        let is_done = publisher.changes.slots(marks).all(|slot| {
            count += 1;
            versions.slot(slot).try_publish_replayed(xid, commit.time)
        });
        // The way that may wait is apart, so that this one needs few registers.
        if is_done {
            store.counters().add(store.stripe(), Counter::Invalidations, count);
        } else {
            publisher.publish_hot(marks, xid, commit.time);
        }
    });
    Some(1)
}

/// To be called when a record has been replayed that ends so many transactions, as `end_quickly` has said.
///
/// # Safety
/// As for [`super::before`].
#[inline(always)]
pub unsafe fn has_ended(ends: u64) {
    // SAFETY: as in `super::before`.
    let publisher = unsafe { publisher() };
    let completed = compat::completed_transactions();
    if publisher.completed.wrapping_add(ends) != completed {
        switch_off(ReplayFault::MissedTransactions);
    }
    publisher.completed = completed;
}
