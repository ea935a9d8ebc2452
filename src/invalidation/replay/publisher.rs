//! What the startup process knows of the transactions that it replays, and how it publishes their commits.
//!
//! Only the startup process touches this. Nothing here raises, waits or allocates, and its memory is fixed.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_cache_core::{Change, ChangeKind, Counter, ReplayFault, ReplayedChanges, SlotId, widen_xid};
use pgrx::pg_sys;
use pgrx::pg_sys::HotStandbyState::STANDBY_SNAPSHOT_PENDING;

use super::definitions::{NotedCatalogs, Redefined};
use super::rows::Changed;
use crate::pg::compat::RelationFile;
use crate::pg::wal_record::{Ended, WalRecord};
use crate::pg::{backend, compat};
use crate::shmem::{self, SharedStore};

/// What the startup process knows.
pub struct Publisher {
    /// What running transactions have changed.
    changes: ReplayedChanges,
    /// The cache, once it was asked for.
    store: Option<SharedStore>,
    /// The file that was changed last, and what is noted of it.
    latest: Option<(RelationFile, Change)>,
    /// The notes of transactions up to this id may lack catalogs: one was rewritten while they ran.
    incomplete: u64,
}

/// The publisher of this process. It lies where pages that are not touched take no memory: only the startup process touches it.
struct Place(UnsafeCell<Publisher>);

// SAFETY: the startup process has one thread, and no other process uses its copy.
unsafe impl Sync for Place {}

static PUBLISHER: Place =
    Place(UnsafeCell::new(Publisher { changes: ReplayedChanges::new(), store: None, latest: None, incomplete: 0 }));

/// The publisher of this process.
///
/// # Safety
/// Called by the startup process, while no other reference to it is alive.
pub unsafe fn publisher() -> &'static mut Publisher {
    // SAFETY: the caller's promise.
    unsafe { &mut *PUBLISHER.0.get() }
}

/// What is left to do when a commit has been replayed.
#[derive(Clone, Copy)]
pub struct Due {
    /// What it redefines.
    redefined: Redefined,
    /// When it was.
    time: i64,
}

/// Are there sessions that read, or will there be without another restart? What was replayed before is protected by the floor of the
/// versions: nothing is stored until all transactions of then are over.
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
    fn store(&mut self) -> Option<SharedStore> {
        if self.store.is_none() {
            self.store = shmem::store_without_area();
        }
        self.store
    }

    /// Notes what a transaction, which has not ended, has changed.
    pub fn note(&mut self, xid: u32, changed: &Changed) {
        if xid == 0 {
            return switch_off(ReplayFault::UnknownRecord);
        }
        let change = match changed {
            Changed::Relation(file) => match self.latest {
                Some((latest, change)) if latest == *file => change,
                _ => {
                    let Some(store) = self.store() else { return };
                    let change = Change::slot(store.versions().relation(file.database, file.number));
                    self.latest = Some((*file, change));
                    change
                }
            },
            Changed::Catalog(catalog) => Change::catalog(*catalog),
            Changed::CatalogInPlace(catalog) => Change::catalog_in_place(*catalog),
        };
        if self.changes.note(xid, change).is_err() {
            // What those who run now have changed is forgotten, so nobody may store anything before they are over.
            self.changes.clear();
            begin_anew();
        }
    }

    /// Forgets what transactions have changed that have ended without a record, on a primary that has crashed.
    pub fn forget_older(&mut self, oldest_running: u32) {
        self.changes.forget_older(oldest_running);
    }

    /// A record of transactions: publishes commits.
    pub fn transaction(&mut self, record: WalRecord<'_>) -> Option<Due> {
        if let Some(commit) = record.commit() {
            let redefined = self.publish(&commit);
            self.forget(&commit);
            return redefined.map(|redefined| Due { redefined, time: commit.time });
        }
        if let Some(abort) = record.abort() {
            self.forget(&abort);
        } else if let Some((parent, children)) = record.assignment() {
            children.iter().for_each(|child| self.changes.pass_on(*child, parent));
        } else if !matches!(record.operation(), pg_sys::XLOG_XACT_PREPARE | pg_sys::XLOG_XACT_INVALIDATIONS) {
            switch_off(ReplayFault::UnknownRecord);
        }
        None
    }

    /// Publishes what a transaction and its sub-transactions have changed. Returns what they redefine, if anything: `finish` is due then.
    fn publish(&mut self, commit: &Ended<'_>) -> Option<Redefined> {
        let store = self.store()?;
        let versions = store.versions();
        let next = compat::next_full_transaction_id();
        let xid = widen_xid(next, commit.xid);
        let (mut count, mut last) = (0, None);
        let mut publish = |slot: SlotId| {
            // Sub-transactions often change the same.
            if last.replace(slot) != Some(slot) {
                versions.slot(slot).publish_replayed(xid, commit.time);
                count += 1;
            }
        };
        let (mut redefined, mut catalogs, mut has_rows) = (Redefined::default(), NotedCatalogs::new(), false);
        for part in commit.all() {
            self.changes.for_each(part, |change| match change.kind() {
                ChangeKind::Slot(slot) => {
                    has_rows = true;
                    publish(slot);
                }
                ChangeKind::Catalog(catalog) => {
                    redefined.add(catalog);
                    catalogs.add(catalog);
                }
                ChangeKind::CatalogInPlace(catalog) => catalogs.add(catalog),
            });
        }
        redefined.add_messages(commit, &catalogs, has_rows);
        if redefined.rewrites_catalog {
            self.incomplete = next;
        }
        if xid <= versions.base_floor().max(self.incomplete) && !commit.messages.is_empty() {
            // Not all may be noted that it has changed, so its messages may be about other catalogs than those that are.
            redefined.add_all();
        }
        if redefined.any {
            // Counted off by `finish`, when the invalidations have been sent.
            let definers = store.definers();
            redefined.for_each_slot(commit, versions, |slot| definers.enter(slot));
            redefined.for_each_slot(commit, versions, publish);
        }
        store.counters().add(store.stripe(), Counter::Invalidations, count);
        redefined.any.then_some(redefined)
    }

    /// Moves the slots of what a commit redefines once more, when its invalidations have been sent.
    pub fn finish(&mut self, record: WalRecord<'_>, due: &Due) {
        if let Some(store) = self.store()
            && let Some(commit) = record.commit()
        {
            let (versions, definers) = (store.versions(), store.definers());
            due.redefined.for_each_slot(&commit, versions, |slot| versions.slot(slot).bump(due.time));
            due.redefined.for_each_slot(&commit, versions, |slot| definers.leave(slot));
        }
    }

    fn forget(&mut self, ended: &Ended<'_>) {
        ended.all().for_each(|part| self.changes.forget(part));
    }
}
