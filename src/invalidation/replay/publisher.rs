//! What the startup process knows of the transactions that it replays, and how it publishes their commits.
//!
//! Only the startup process touches this. Nothing here raises, waits or allocates, and its memory is fixed.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_cache_core::{Change, ChangeKind, Counter, Full, ReplayFault, ReplayedChanges, SlotId, Versions, widen_xid};
use pgrx::pg_sys;
use pgrx::pg_sys::HotStandbyState::STANDBY_SNAPSHOT_PENDING;

use super::definitions::{for_each_slot, redefined_by};
use super::rows;
use crate::invalidation::definitions::Definitions;
use crate::invalidation::waking;
use crate::pg::backend_local::Local;
use crate::pg::compat::RelationFile;
use crate::pg::wal_record::{Ended, WalRecord};
use crate::pg::{backend, compat};
use crate::{restart, shmem};

/// Most files of which `known` tells at once. A power of two.
const MOST_KNOWN: usize = 65_536;

/// Most parts, and relations beside parts, of which `known_parts` tells at once. A power of two.
const MOST_KNOWN_PARTS: usize = 4096;

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
    /// The same of what else is noted of a file while it is tracked.
    known_parts: [(u32, Change); MOST_KNOWN_PARTS],
    /// The last record of which parts were noted: others of the transaction often follow that name the same blocks.
    last: (u32, RelationFile, Blocks),
    /// All records are followed from now on.
    follows: bool,
}

/// The blocks that a record names, two at most.
type Blocks = (Option<u32>, Option<u32>);

fn named_by(record: WalRecord<'_>, file: RelationFile) -> Blocks {
    let mut blocks = record.blocks_of(file);
    (blocks.next(), blocks.next())
}

/// It lies where pages that are not touched take no memory: only the startup process touches it.
static PUBLISHER: Local<UnsafeCell<Publisher>> = Local::new(UnsafeCell::new(Publisher {
    changes: ReplayedChanges::new(),
    known: [NOTHING; MOST_KNOWN],
    known_parts: [(0, Change(0)); MOST_KNOWN_PARTS],
    last: (NOTHING.0, NOTHING.1, (None, None)),
    follows: false,
}));

/// The publisher of this process.
///
/// # Safety
/// Called by the startup process, while no other reference to it is alive.
pub unsafe fn publisher() -> &'static mut Publisher {
    // SAFETY: the caller's promise.
    unsafe { &mut *PUBLISHER.get() }
}

/// Returns true if this record is the first one that is followed.
///
/// Without results of before a restart, that is so once there are sessions that read, or there will be without another
/// restart. What was replayed before is protected by the floor of the versions: nothing is stored until all
/// transactions of then are over. With such results, it is the first one that the last server has not replayed. If
/// replay comes there another way, nothing of before counts.
#[cold]
#[inline(never)]
fn begins_with(record: WalRecord<'_>) -> bool {
    let Some(store) = shmem::store_without_area() else { return false };
    let Some(awaited) = store.replay().awaited() else {
        // SAFETY: a plain global of the startup process.
        return store.versions().base_floor() != 0 || unsafe { pg_sys::standbyState >= STANDBY_SNAPSHOT_PENDING };
    };
    if record.wal_end() <= awaited.end {
        return false;
    }
    if !restart::has_arrived(&store) {
        begin_anew();
        store.replay().arrive();
    }
    true
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
        // Nobody is told of a change any more.
        waking::wake_all();
    }
}

/// Outdates all entries, and lets nothing be stored until the transactions of now are over.
pub fn begin_anew() {
    if let Some(store) = shmem::store_without_area() {
        store.versions().begin_anew(compat::next_full_transaction_id(), backend::now());
        waking::wake_all();
    }
}

impl Publisher {
    /// Returns true if what this record changes is to be published, as of all that follow.
    pub fn follows(&mut self, record: WalRecord<'_>) -> bool {
        if !self.follows {
            self.follows = begins_with(record);
        }
        self.follows
    }

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
        if self.last.0 == xid && !is_in_place && self.last == (xid, file, named_by(record, file)) {
            return;
        }
        let Some(store) = shmem::store_without_area() else { return };
        let Some(change) = rows::change(record, file, store.versions()) else { return };
        if xid == 0 {
            return switch_off(ReplayFault::UnknownRecord);
        }
        // Asked when the id of the transaction is among those that have begun: whoever has the file tracked after this
        // publishes all of these (S8).
        let registry = store.registry();
        let tracked = if registry.usage().is_none() || is_in_place {
            None
        } else {
            registry.columns_of(file.database, file.number)
        };
        let noted = match tracked {
            None => self.changes.note(xid, change).map(|()| !is_in_place),
            Some(tracked) => {
                self.last = (xid, file, named_by(record, file));
                self.note_parts(xid, change, rows::parts(record, file, tracked, store.versions()))
            }
        };
        match noted {
            Ok(true) => self.known[place] = (xid, file),
            Ok(false) => {}
            Err(Full) => self.forget_all(),
        }
    }

    /// Notes a change of some parts of a file. Returns true if the transaction need not note more of the file, since it
    /// has changed too many of them.
    #[inline(never)]
    fn note_parts(&mut self, xid: u32, whole: Change, parts: impl Iterator<Item = Change>) -> Result<bool, Full> {
        self.note_once(xid, whole)?;
        for part in parts {
            if self.note_once(xid, part).is_err() {
                self.changes.forget_parts(xid);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn note_once(&mut self, xid: u32, change: Change) -> Result<(), Full> {
        let place = (xid.wrapping_mul(0x9e37_79b1) ^ change.0) as usize % MOST_KNOWN_PARTS;
        if self.known_parts[place] != (xid, change) {
            self.changes.note(xid, change)?;
            self.known_parts[place] = (xid, change);
        }
        Ok(())
    }

    /// Forgets which notes there are: they are gone, or ids come again when they have gone round.
    fn forget_known(&mut self) {
        self.known.fill(NOTHING);
        self.forget_known_parts();
    }

    /// The same of parts alone. Those of some sub-transactions are noted of their parent now, so these may have to note
    /// them once more: a transaction without room gives up the parts of what is noted of itself.
    fn forget_known_parts(&mut self) {
        self.known_parts.fill((0, Change(0)));
        self.last = (NOTHING.0, NOTHING.1, (None, None));
    }

    /// Forgets what those who run now have changed, as there is no room for it. So nobody may store anything before
    /// they are over.
    #[cold]
    #[inline(never)]
    fn forget_all(&mut self) {
        self.changes.clear();
        self.forget_known();
        begin_anew();
    }

    /// Forgets what transactions have changed that have ended without a record, on a primary that has crashed.
    pub fn forget_older(&mut self, oldest_running: u32) {
        self.changes.forget_older(oldest_running);
        self.forget_known();
    }

    /// A record of transactions: publishes commits.
    pub fn transaction(&mut self, record: WalRecord<'_>) -> Option<Definitions> {
        if let Some(end) = record.end() {
            if end.commits {
                return self.publish(&end);
            }
            self.forget(&end);
        } else if let Some((parent, children)) = record.assignment() {
            self.forget_known_parts();
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
        let (mut count, mut overflows, mut last, mut has_catalogs) = (0, 0, None, false);
        let mut publish = |slot: SlotId| {
            // Sub-transactions often change the same.
            if last.replace(slot) != Some(slot) {
                versions.publish_replayed(slot, xid, commit.time);
                waking::note_moved(&store, [slot]);
                count += 1;
            }
        };
        for part in commit.all() {
            self.changes.for_each(part, |change| match change.kind() {
                ChangeKind::Slot(slot) => publish(slot),
                ChangeKind::Anywhere(slot) => {
                    overflows += 1;
                    [slot, Versions::beside(slot)].into_iter().for_each(&mut publish);
                }
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
        if overflows > 0 {
            store.counters().add(store.stripe(), Counter::CoarseOverflow, overflows);
        }
        self.forget(commit);
        redefined.are_some().then_some(redefined)
    }

    /// Moves the slots of what a commit redefines once more, when its invalidations have been sent.
    pub fn finish(&mut self, record: WalRecord<'_>, redefined: Definitions) {
        if let Some(store) = shmem::store_without_area()
            && let Some(commit) = record.end()
        {
            let (versions, definers) = (store.versions(), store.definers());
            for_each_slot(redefined, &commit, versions, |slot| {
                versions.slot(slot).bump(commit.time);
                waking::note_moved(&store, [slot]);
            });
            for_each_slot(redefined, &commit, versions, |slot| definers.leave(slot));
        }
    }

    /// Outdates what rests on changes of running transactions, which nobody will know of after the restart.
    ///
    /// Sessions may still read, so the cache is closed first: what they stored later would rest on the new versions.
    pub fn stop(&mut self) {
        let Some(store) = shmem::store_without_area() else { return };
        let (versions, now) = (store.versions(), backend::now());
        versions.close();
        let mut has_catalogs = false;
        self.changes.for_each_of_all(|change| match change.kind() {
            // Parts are noted beside their relations.
            ChangeKind::Slot(slot) | ChangeKind::Anywhere(slot) if !versions.is_of_value(slot) => {
                [slot, Versions::beside(slot)].into_iter().for_each(|slot| versions.slot(slot).bump(now));
            }
            ChangeKind::Slot(_) | ChangeKind::Anywhere(_) | ChangeKind::CatalogInPlace(_) => {}
            ChangeKind::Catalog(_) => has_catalogs = true,
        });
        if has_catalogs {
            begin_anew();
        }
    }

    fn forget(&mut self, ended: &Ended<'_>) {
        ended.all().for_each(|part| self.changes.forget(part));
    }
}
