//! What the startup process knows of the transactions that it replays, and how it publishes their commits.
//!
//! Only the startup process touches this. Nothing here raises, waits or allocates, and its memory is fixed.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_cache_core::{
    Change, ChangeKind, Counter, LatelyNoted, Marks, RelationFile, ReplayFault, ReplayedChanges, SlotId, Touched,
    widen_xid,
};
use pgrx::pg_sys;
use pgrx::pg_sys::HotStandbyState::STANDBY_SNAPSHOT_PENDING;

use super::definitions::{NotedCatalogs, Redefined, RedefinedSlots};
use super::rows::{self, Owner};
use crate::pg::wal_record::{Ended, WalRecord};
use crate::pg::{backend, compat};
use crate::shmem::{self, SharedStore};

/// Files whose slots are remembered. A power of two.
const KNOWN_FILES: usize = 256;

/// No count of ended transactions.
const UNKNOWN: u64 = u64::MAX;

/// What the startup process knows.
pub struct Publisher {
    /// What running transactions have changed.
    pub changes: ReplayedChanges,
    /// The cache, once there may be readers.
    pub store: Option<SharedStore>,
    /// The catalogs of the commit that is being published. Kept, since making it anew would cost more than the rest of a commit.
    catalogs: NotedCatalogs,
    /// What that commit redefines.
    pub redefined: RedefinedSlots,
    /// Slots of files that were changed lately, by the number of the file: to ask for one costs more than the rest of a note. Number 0 is none.
    slots: [(RelationFile, SlotId); KNOWN_FILES],
    /// The notes of transactions up to this id may lack catalogs: one was rewritten while they ran.
    incomplete: u64,
    /// Changes that were noted lately, beside those of hot files.
    pub lately: LatelyNoted<64>,
    /// The server's count of ended transactions after the last record that ends some; `UNKNOWN` before.
    pub completed: u64,
}

/// The publisher of this process. It lies where pages that are not touched take no memory: only the startup process touches it.
struct Place(UnsafeCell<Publisher>);

// SAFETY: the startup process has one thread, and no other process uses its copy.
unsafe impl Sync for Place {}

static PUBLISHER: Place = Place(UnsafeCell::new(Publisher {
    changes: ReplayedChanges::new(),
    store: None,
    catalogs: NotedCatalogs::new(),
    redefined: RedefinedSlots::new(),
    slots: [(RelationFile::NONE, SlotId(0)); KNOWN_FILES],
    incomplete: 0,
    lately: LatelyNoted::new(),
    completed: UNKNOWN,
}));

/// The publisher of this process.
///
/// # Safety
/// Called by the startup process, while no other reference to it is alive.
#[inline(always)]
pub unsafe fn publisher() -> &'static mut Publisher {
    // SAFETY: the caller's promise.
    unsafe { &mut *PUBLISHER.0.get() }
}

/// What is left to do when a record has been replayed.
#[derive(Clone, Copy, Default)]
pub struct Due {
    /// When the commit was, if it redefines something.
    pub redefined: Option<i64>,
    /// How many transactions the record ends; `None` if any number.
    pub ends: Option<u64>,
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
    /// Notes what a transaction, which has not ended, has changed.
    pub fn note(&mut self, xid: u32, touched: Touched) {
        if xid == 0 {
            switch_off(ReplayFault::UnknownRecord);
            return;
        }
        let outcome = match rows::owner_of(touched) {
            Owner::Relation => {
                let slot = self.slot_of(touched.file);
                self.changes.note_rows(xid, touched.file, slot)
            }
            Owner::Catalog(catalog) => self.changes.note(xid, Change::catalog(catalog, touched.how)),
            Owner::Nobody => Ok(()),
        };
        match outcome {
            Ok(()) => self.lately.add(xid, touched, self.completed),
            Err(_) => self.begin_anew(),
        }
    }

    /// The slot of the relation that has this file.
    fn slot_of(&mut self, file: RelationFile) -> SlotId {
        let known = &mut self.slots[file.number() as usize % KNOWN_FILES];
        if known.0 != file
            && let Some(store) = shmem::store_without_area()
        {
            *known = (file, store.versions().relation(file.database(), file.number()));
        }
        known.1
    }

    /// Forgets what those who run now have changed, since there is no room for all of it. So nobody may store anything before they are over.
    fn begin_anew(&mut self) {
        self.changes.clear();
        self.lately.clear();
        begin_anew();
    }

    /// A record of transactions: publishes commits.
    pub fn transaction(&mut self, record: WalRecord<'_>) -> Due {
        if self.completed != UNKNOWN && self.completed != compat::completed_transactions() {
            switch_off(ReplayFault::MissedTransactions);
        }
        if let Some(commit) = record.commit() {
            self.publish(&commit);
            let redefines = !self.redefined.is_empty();
            return Due { redefined: redefines.then_some(commit.time), ends: Some(1) };
        }
        if let Some(abort) = record.abort() {
            self.forget(&abort);
            return Due { redefined: None, ends: Some(1) };
        }
        if let Some((parent, children)) = record.assignment() {
            // A transaction may have more sub-transactions than there is room for notes.
            if children.iter().any(|child| self.changes.pass_on(*child, parent).is_err()) {
                self.begin_anew();
            }
            return Due { redefined: None, ends: Some(0) };
        }
        match record.operation() {
            pg_sys::XLOG_XACT_PREPARE | pg_sys::XLOG_XACT_INVALIDATIONS => {}
            _ => switch_off(ReplayFault::UnknownRecord),
        }
        Due { redefined: None, ends: Some(0) }
    }

    /// Publishes what a transaction and its sub-transactions have changed, and forgets it.
    fn publish(&mut self, commit: &Ended<'_>) {
        let next = compat::next_full_transaction_id();
        let xid = widen_xid(next, commit.xid);
        self.catalogs.clear();
        self.redefined.clear();
        let Some(store) = &self.store else { return };
        let versions = store.versions();
        let mut count = 0;
        let mut last = None;
        let mut publish = |slot: SlotId| {
            // Sub-transactions often change the same.
            if last.replace(slot) != Some(slot) {
                versions.slot(slot).publish_replayed(xid, commit.time);
                count += 1;
            }
        };
        let mut has_rows = false;
        for part in std::iter::once(&commit.xid).chain(commit.children) {
            self.changes.take(*part, |change| match change.kind() {
                ChangeKind::Slot(slot) => {
                    has_rows = true;
                    publish(slot);
                }
                ChangeKind::Catalog(catalog, how) => self.catalogs.add(catalog, how),
            });
        }
        if !(commit.messages.is_empty() && self.catalogs.is_empty()) {
            let mut redefined = Redefined::by(commit, &self.catalogs, has_rows, versions, &mut self.redefined);
            if redefined.rewrites_catalog {
                self.incomplete = next;
            }
            if xid <= versions.base_floor().max(self.incomplete) && !commit.messages.is_empty() {
                // Not all may be noted that it has changed, so its messages may be about other catalogs than those that are.
                redefined.add_all();
            }
            // Counted off by `after`, when the invalidations have been sent.
            let definers = store.definers();
            self.redefined.complete(redefined, versions);
            self.redefined.all().for_each(|slot| definers.enter(slot));
            self.redefined.all().for_each(publish);
        }
        store.counters().add(store.stripe(), Counter::Invalidations, count);
    }

    fn forget(&mut self, ended: &Ended<'_>) {
        for part in std::iter::once(&ended.xid).chain(ended.children) {
            self.changes.forget(*part);
        }
    }

    /// Compares how many transactions a record has ended with the server's own count. A transaction that ends in another way would become
    /// visible without having been published.
    pub fn count_ended(&mut self, expected: Option<u64>) {
        let completed = compat::completed_transactions();
        if let Some(expected) = expected
            && self.completed != UNKNOWN
            && self.completed + expected != completed
        {
            switch_off(ReplayFault::MissedTransactions);
        }
        self.completed = completed;
    }

    /// Publishes changes of hot files, and waits for other writers: these store a few words. What was published already is so once more.
    #[cold]
    #[inline(never)]
    pub fn publish_hot(&self, marks: Marks, xid: u64, time: i64) {
        let Some(store) = &self.store else { return };
        let mut count = 0;
        for slot in self.changes.slots(marks) {
            store.versions().slot(slot).publish_replayed(xid, time);
            count += 1;
        }
        store.counters().add(store.stripe(), Counter::Invalidations, count);
    }
}
