//! Writing to the slots of versions: which transaction publishes, and which others still run. Slots are atomics, so no
//! lock.

use std::cell::Cell;

use arrow_cache_core::{AskedXids, SlotId, Versions, widen_xid};
use pgrx::pg_sys;

use crate::pg::{backend, transaction_changes};
use crate::shmem::{self, SharedStore};

/// Publishes that this transaction, which has an id, changes a relation: nobody gets or stores an answer over it before
/// the transaction has ended.
pub fn publish_early(relation: pg_sys::Oid) {
    let xid = backend::top_transaction_id();
    if let Some(store) = shmem::store()
        && xid != 0
    {
        let writer = Writer::new(&store, xid);
        writer.of_relation(relation.to_u32()).into_iter().for_each(|slot| writer.publish(slot));
    }
}

/// Every running transaction has at least this id. `xid` is that of the transaction under way.
#[inline]
fn oldest_running(xid: u64) -> u64 {
    // SAFETY: a plain read of the backend's own state. RecentXmin is the oldest id that ran when this backend last took
    // a snapshot: all transactions with older ids have finished.
    let recent = unsafe { pg_sys::RecentXmin };
    if recent == pg_sys::FirstNormalTransactionId { 0 } else { widen_xid(xid, recent.into_inner()) }
}

/// The transaction that publishes, as the slots have to know it.
pub struct Writer<'a> {
    versions: Versions<'a>,
    database: u32,
    xid: u64,
    /// Every running transaction has at least this id.
    oldest_running: u64,
    now: i64,
    /// Which transactions run, as far as it was asked.
    running: Cell<AskedXids>,
    /// How often it has published.
    published: Cell<u64>,
}

impl<'a> Writer<'a> {
    /// The transaction under way, which has this id.
    pub fn new(store: &'a SharedStore, xid: u64) -> Self {
        // The id after this transaction's own will do in place of the next id: no transaction from before the start has
        // a later id.
        let versions = store.versions();
        versions.ensure_floor(xid + 1);
        look_for_the_past(store, xid);
        let database = backend::database();
        let oldest_running = oldest_running(xid);
        let running = Cell::new(AskedXids::from(oldest_running));
        Self { versions, database, xid, oldest_running, now: backend::now(), running, published: Cell::new(0) }
    }

    /// The slots to which each change of a relation is published, unless it is known which values it concerns.
    pub fn of_relation(&self, relation: u32) -> [SlotId; 2] {
        self.versions.of_relation(self.database, relation)
    }

    /// The slot of the rows of a relation of which it is not known which value they have in a column.
    pub fn unknown(&self, relation: u32, column: i16) -> SlotId {
        self.versions.unknown(self.database, relation, column)
    }

    /// Publishes to the slots of values, by their places.
    pub fn publish_values(&self, places: &[u64]) {
        self.count(places.len());
        self.versions.publish_values(places, self.xid, self.oldest_running, |xid| self.is_running(xid));
    }

    /// Publishes to one slot.
    pub fn publish(&self, slot: SlotId) {
        self.count(1);
        self.versions.publish(slot, self.xid, self.oldest_running, |xid| self.is_running(xid), self.now);
    }

    fn count(&self, more: usize) {
        self.published.set(self.published.get() + more as u64);
    }

    /// How often it has published.
    pub fn published(&self) -> u64 {
        self.published.get()
    }

    fn is_running(&self, xid: u64) -> bool {
        if xid < self.oldest_running {
            return false;
        }
        let mut answers = self.running.get();
        // SAFETY: asks the process array; no lock of ours is held.
        let ask = |xid| unsafe { kept!(pg_sys::TransactionIdIsInProgress(pg_sys::TransactionId::from(xid as u32))) };
        let running = answers.get(xid, ask);
        self.running.set(answers);
        running
    }
}

/// Notes it when no transaction from before the start is left. `xid` is the id of a running one, or the next one; the
/// floor is set.
pub fn look_for_the_past(store: &SharedStore, xid: u64) {
    if store.past_is_unknown()
        && widen_xid(xid, transaction_changes::oldest_active_transaction()) > store.versions().base_floor()
    {
        store.note_past_is_over();
    }
}
