//! What the startup process knows of the transactions that it replays, and how it publishes their commits.
//!
//! Only the startup process touches this. Nothing here raises, waits or allocates, and its memory is fixed.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_cache_core::{ChangeKind, Counter, ReplayFault, ReplayedChanges, SlotId, widen_xid};
use pgrx::pg_sys;
use pgrx::pg_sys::HotStandbyState::STANDBY_SNAPSHOT_PENDING;

use super::definitions::{for_each_slot, redefined_by};
use super::rows;
use crate::invalidation::definitions::Definitions;
use crate::pg::backend_local::Local;
use crate::pg::compat::RelationFile;
use crate::pg::wal_record::{Ended, WalRecord};
use crate::pg::{backend, compat};
use crate::shmem;

/// Most files of which `known` tells at once. A power of two.
const MOST_KNOWN: usize = 65_536;

/// What no record names.
const NOTHING: (u32, RelationFile) = (0, RelationFile { database: 0, number: 0 });

/// What the startup process knows.
pub struct Publisher {
    /// What running transactions have changed.
    changes: ReplayedChanges,
    /// Transactions, and files of which it is noted that they have changed rows of them: most records change what an
    /// earlier one has changed, and a transaction may change thousands of leaves in turns. It is in the place of its
    /// hash, or not at all. What has ended changes nothing more, so that it may stay.
    known: [(u32, RelationFile); MOST_KNOWN],
}

/// It lies where pages that are not touched take no memory: only the startup process touches it.
static PUBLISHER: Local<UnsafeCell<Publisher>> =
    Local::new(UnsafeCell::new(Publisher { changes: ReplayedChanges::new(), known: [NOTHING; MOST_KNOWN] }));

/// The publisher of this process.
///
/// # Safety
/// Called by the startup process, while no other reference to it is alive.
pub unsafe fn publisher() -> &'static mut Publisher {
    // SAFETY: the caller's promise.
    unsafe { &mut *PUBLISHER.get() }
}

/// Returns true if there are sessions that read, or there will be without another restart. What was replayed before is
/// protected by the floor of the versions: nothing is stored until all transactions of then are over.
pub fn may_be_read() -> bool {
    // SAFETY: a plain global of the startup process.
    unsafe { pg_sys::standbyState >= STANDBY_SNAPSHOT_PENDING }
}

/// Runs what must not fail. If it does, the cache is switched off.
pub fn surely<R: Default>(work: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        switch_off(ReplayFault::Failure);
        R::default()
    })
}

/// Switches the cache off on this server, until it is restarted.
#[cold]
#[inline(never)]
pub fn switch_off(fault: ReplayFault) {
    if let Some(store) = shmem::store_without_area() {
        store.replay().switch_off(fault);
    }
}

/// Outdates all entries, and lets nothing be stored until the transactions of now are over.
pub fn begin_anew() {
    if let Some(store) = shmem::store_without_area() {
        store.versions().begin_anew(compat::next_full_transaction_id(), backend::now());
    }
}

impl Publisher {
    /// Notes what a transaction, which has not ended, has changed.
    pub fn note(&mut self, record: WalRecord<'_>) {
        let Some(file) = record.first_file() else { return };
        let xid = record.transaction();
        // The files of a transaction, whose numbers often follow each other, have places that do.
        let place = (xid.wrapping_mul(0x9e37_79b1) ^ file.number) as usize % MOST_KNOWN;
        // That rows of a catalog were changed says all that a row which is overwritten does, but not the other way
        // round.
        let is_in_place = rows::is_in_place(record);
        if self.known[place] == (xid, file) && !is_in_place {
            return;
        }
        let Some(store) = shmem::store_without_area() else { return };
        let Some(change) = rows::change(record, file, store.versions()) else { return };
        if xid == 0 {
            return switch_off(ReplayFault::UnknownRecord);
        }
        if self.changes.note(xid, change).is_err() {
            self.forget_all();
        } else if !is_in_place {
            self.known[place] = (xid, file);
        }
    }

    /// Forgets what those who run now have changed, as there is no room for it. So nobody may store anything before
    /// they are over.
    #[cold]
    #[inline(never)]
    fn forget_all(&mut self) {
        self.changes.clear();
        self.known.fill(NOTHING);
        begin_anew();
    }

    /// Forgets what transactions have changed that have ended without a record, on a primary that has crashed.
    pub fn forget_older(&mut self, oldest_running: u32) {
        self.changes.forget_older(oldest_running);
        // Ids come again when they have gone round.
        self.known.fill(NOTHING);
    }

    /// A record of transactions: publishes commits.
    pub fn transaction(&mut self, record: WalRecord<'_>) -> Option<Definitions> {
        if let Some(end) = record.end() {
            if end.commits {
                return self.publish(&end);
            }
            self.forget(&end);
        } else if let Some((parent, children)) = record.assignment() {
            if children.iter().any(|child| self.changes.pass_on(*child, parent).is_err()) {
                self.forget_all();
            }
        } else if !matches!(record.operation(), pg_sys::XLOG_XACT_PREPARE | pg_sys::XLOG_XACT_INVALIDATIONS) {
            switch_off(ReplayFault::UnknownRecord);
        }
        None
    }

    /// Publishes what a transaction and its sub-transactions have changed, and forgets it. Returns what they redefine,
    /// if anything: `finish` is due then.
    fn publish(&mut self, commit: &Ended<'_>) -> Option<Definitions> {
        let store = shmem::store_without_area()?;
        let versions = store.versions();
        let xid = widen_xid(compat::next_full_transaction_id(), commit.xid);
        let (mut count, mut last, mut has_catalogs) = (0, None, false);
        let mut publish = |slot: SlotId| {
            // Sub-transactions often change the same.
            if last.replace(slot) != Some(slot) {
                versions.slot(slot).publish_replayed(xid, commit.time);
                count += 1;
            }
        };
        for part in commit.all() {
            self.changes.for_each(part, |change| match change.kind() {
                ChangeKind::Slot(slot) => publish(slot),
                ChangeKind::Catalog(_) | ChangeKind::CatalogInPlace(_) => has_catalogs = true,
            });
        }
        let mut redefined = Definitions::default();
        if has_catalogs || !commit.messages.is_empty() {
            redefined = redefined_by(commit, &self.changes);
            if xid <= versions.base_floor() && !commit.messages.is_empty() {
                // Not all may be noted that it has changed, so its messages may be about other catalogs than those that
                // are.
                redefined = Definitions::ALL;
            }
        }
        if redefined.are_some() {
            // Counted off by `finish`, when the invalidations have been sent.
            let definers = store.definers();
            for_each_slot(redefined, commit, versions, |slot| definers.enter(slot));
            for_each_slot(redefined, commit, versions, publish);
        }
        store.counters().add(store.stripe(), Counter::Invalidations, count);
        self.forget(commit);
        redefined.are_some().then_some(redefined)
    }

    /// Moves the slots of what a commit redefines once more, when its invalidations have been sent.
    pub fn finish(&mut self, record: WalRecord<'_>, redefined: Definitions) {
        if let Some(store) = shmem::store_without_area()
            && let Some(commit) = record.end()
        {
            let (versions, definers) = (store.versions(), store.definers());
            for_each_slot(redefined, &commit, versions, |slot| versions.slot(slot).bump(commit.time));
            for_each_slot(redefined, &commit, versions, |slot| definers.leave(slot));
        }
    }

    fn forget(&mut self, ended: &Ended<'_>) {
        ended.all().for_each(|part| self.changes.forget(part));
    }
}
