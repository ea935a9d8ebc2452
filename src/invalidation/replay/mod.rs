//! Publishing what transactions of a primary have changed, on a standby that replays its WAL (architecture: *Publish before visible*).
//!
//! Only the startup process runs this, while sessions may read (hot standby). Nothing here raises, waits or allocates: an ERROR in the
//! startup process stops the standby. Its memory is fixed. What it does not understand switches the cache off on this server, before the
//! record is replayed ([`ReplayFault`]).
//!
//! `quick` is the way of most records. `catalog_caches` says which catalog a message of the server is about, `definitions` what a commit has
//! redefined, `rows` which files of relations a record changes.

mod catalog_caches;
mod definitions;
mod quick;
mod rows;

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_cache_core::{
    Change, ChangeKind, Counter, LatelyNoted, RelationFile, ReplayFault, ReplayedChanges, SlotId, Touched, widen_xid,
};
use pgrx::pg_sys;
use pgrx::pg_sys::HotStandbyState::STANDBY_SNAPSHOT_PENDING;
use pgrx::pg_sys::RmgrIds;

use crate::pg::wal_record::{Ended, WalRecord};
use crate::pg::{backend, compat};
use crate::shmem::{self, SharedStore};
use definitions::{NotedCatalogs, Redefined, RedefinedSlots};
pub use quick::{before_rows, end_quickly, has_ended, note_heap, note_heap2};
use rows::Owner;

/// Files whose slots are remembered. A power of two.
const KNOWN_FILES: usize = 256;

/// No count of ended transactions.
const UNKNOWN: u64 = u64::MAX;

/// What the startup process knows.
struct Publisher {
    changes: ReplayedChanges,
    /// The cache, once there may be readers.
    store: Option<SharedStore>,
    /// The catalogs of the commit that is being published. Kept, since making it anew would cost more than the rest of a commit.
    catalogs: NotedCatalogs,
    /// What that commit redefines.
    redefined: RedefinedSlots,
    /// Slots of files that were changed lately, by the number of the file: to ask for one costs more than the rest of a note. Number 0 is none.
    slots: [(RelationFile, SlotId); KNOWN_FILES],
    /// The notes of transactions up to this id may lack catalogs: one was rewritten while they ran.
    incomplete: u64,
    /// Changes that were noted lately, beside those of hot files.
    lately: LatelyNoted<64>,
    /// The server's count of ended transactions after the last record that ends some; `UNKNOWN` before.
    completed: u64,
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

/// What is left to do when a record has been replayed.
#[derive(Clone, Copy, Default)]
pub struct Due {
    /// When the commit was, if it redefines something.
    redefined: Option<i64>,
    /// How many transactions the record ends; `None` if any number.
    ends: Option<u64>,
}

/// To be called before a record of another resource manager is replayed.
///
/// # Safety
/// Called by the startup process, with a record that it is about to replay.
pub unsafe fn before(record: WalRecord<'_>) -> Due {
    if !may_be_read() {
        return Due::default();
    }
    // SAFETY: as for the static: no other reference is alive, since this is not called while it runs.
    let publisher = unsafe { &mut *PUBLISHER.0.get() };
    if publisher.store.is_none() {
        publisher.store = shmem::store_without_area();
    }
    surely(|| match record.manager() {
        RmgrIds::RM_XACT_ID => publisher.transaction(record),
        RmgrIds::RM_STANDBY_ID => {
            if let Some(oldest) = record.oldest_running() {
                publisher.changes.forget_older(oldest);
            }
            Due::default()
        }
        RmgrIds::RM_XLOG_ID => {
            if record.wal_level().is_some_and(|level| level < pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32) {
                switch_off(ReplayFault::WalLevel);
            }
            Due::default()
        }
        RmgrIds::RM_DBASE_ID => {
            if let Some(database) = record.named_database() {
                forget_database(database);
            }
            Due::default()
        }
        _ => {
            switch_off(ReplayFault::CustomResourceManager);
            Due::default()
        }
    })
}

/// To be called when the record has been replayed, with what `before` has returned for it.
///
/// # Safety
/// As for `before`.
pub unsafe fn after(due: Due) {
    if !may_be_read() {
        return;
    }
    // SAFETY: as in `before`.
    let publisher = unsafe { &mut *PUBLISHER.0.get() };
    publisher.count_ended(due.ends);
    if let (Some(time), Some(store)) = (due.redefined, &publisher.store) {
        surely(|| {
            let (versions, definers) = (store.versions(), store.definers());
            publisher.redefined.all().for_each(|slot| versions.slot(slot).bump(time));
            publisher.redefined.all().for_each(|slot| definers.leave(slot));
        });
    }
}

/// To be called when recovery ends, before transactions can be made here. Prepared transactions will be committed by sessions that do not
/// know what they have changed: as after a restart, nothing is stored until they are over.
pub fn recovery_ends() {
    if may_be_read() {
        surely(|| {
            shmem::forget_past();
            begin_anew();
        });
    }
}

/// Are there sessions that read, or will there be without another restart? What was replayed before is protected by the floor of the
/// versions: nothing is stored until all transactions of then are over.
fn may_be_read() -> bool {
    // SAFETY: a plain global of the startup process.
    unsafe { pg_sys::standbyState >= STANDBY_SNAPSHOT_PENDING }
}

/// Runs what must not fail. If it does, the cache is switched off.
fn surely<R: Default>(work: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        switch_off(ReplayFault::Failure);
        R::default()
    })
}

#[cold]
#[inline(never)]
fn switch_off(fault: ReplayFault) {
    shmem::with_replay(|replay| replay.switch_off(fault));
}

/// Outdates all entries, and lets nothing be stored until the transactions of now are over.
fn begin_anew() {
    let now = backend::now();
    shmem::with_versions(|versions| versions.begin_anew(compat::next_full_transaction_id(), now));
}

/// Outdates everything that rests on a database, whose OID may come again.
fn forget_database(database: u32) {
    let now = backend::now();
    shmem::with_versions(|versions| {
        for slot in [versions.catalogs(database), versions.ddl(database), versions.wildcard(database)] {
            versions.slot(slot).bump(now);
        }
    });
}

impl Publisher {
    /// Notes what a transaction, which has not ended, has changed.
    fn note(&mut self, xid: u32, touched: Touched) {
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
        if outcome.is_err() {
            self.begin_anew();
        }
        self.lately.add(xid, touched, self.completed);
    }

    /// The slot of the relation that has this file.
    fn slot_of(&mut self, file: RelationFile) -> SlotId {
        let known = &mut self.slots[file.number() as usize % KNOWN_FILES];
        if known.0 != file
            && let Some(slot) = shmem::with_versions(|versions| versions.relation(file.database(), file.number()))
        {
            *known = (file, slot);
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
    fn transaction(&mut self, record: WalRecord<'_>) -> Due {
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
    fn count_ended(&mut self, expected: Option<u64>) {
        let completed = compat::completed_transactions();
        if let Some(expected) = expected
            && self.completed != UNKNOWN
            && self.completed + expected != completed
        {
            switch_off(ReplayFault::MissedTransactions);
        }
        self.completed = completed;
    }
}
