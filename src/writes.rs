//! What a transaction has changed, and its publication before anybody can see it (protocol C; the
//! whole argument is in docs/architecture.md).
//!
//! The write set is the union of what the executor hooks saw and of the list that the heap access
//! method itself keeps for statistics, which names every relation whose tuples changed by any
//! path: cascades, leaves of partitions, COPY, triggers, logical apply, C code. A change to a
//! catalog in that list means DDL. While `track_counts` is off that list stays empty: then the
//! transaction publishes to a wildcard that every entry of the database rests on.
//!
//! Everything happens at PRE_COMMIT or PRE_PREPARE, where raising is still allowed. After the
//! commit there is one thing left, for DDL only: a second bump of its slots once the invalidations are sent, which
//! can neither raise nor wait.

use arrow_cache_core::{Counter, Reason, Slot, SlotId, Versions};
use pgrx::pg_sys;

use crate::definitions::{Definitions, is_meaningful_catalog, may_carry_results};
use crate::query::relations;
use crate::query::types::{FIRST_USER_OID, integers, nodes};
use crate::session;
use crate::shmem::{self, SharedStore};
use crate::{compat, foreign};

/// Stands for the database of the catalogs that all databases share.
pub const SHARED: u32 = 0;

/// Has this transaction an id, without which it cannot have written anything?
fn has_transaction_id() -> bool {
    compat::top_transaction_id() != 0
}

/// May this transaction be given or store an answer that rests on `relations`? Its own changes are
/// in no published version, so it must execute whatever they touch.
///
/// # Errors
/// `OwnDdl` or `OwnWrites`.
pub fn check_own_writes(relations: &[u32]) -> Result<(), Reason> {
    if !has_transaction_id() {
        return Ok(());
    }
    if session::wrote_unknown() || !compat::counts_changes() {
        return Err(Reason::OwnWrites);
    }
    let mut found = Ok(());
    compat::for_each_changed_relation(|relation| {
        let relation = relation.oid;
        if is_meaningful_catalog(relation) {
            found = Err(Reason::OwnDdl);
        } else if relations.binary_search(&relation).is_ok() && found.is_ok() {
            found = Err(Reason::OwnWrites);
        }
    });
    if found.is_ok() && relations.iter().any(|relation| session::wrote(*relation)) {
        found = Err(Reason::OwnWrites);
    }
    found
}

/// Does the plan change data?
///
/// # Safety
/// `plan` must be valid.
pub unsafe fn may_write(plan: *const pg_sys::PlannedStmt) -> bool {
    // SAFETY: as the caller promises.
    unsafe { !(*plan).resultRelations.is_null() }
}

/// Notes the targets of a data-modifying plan, at any nesting level, before its first row.
///
/// # Safety
/// `plan` must be valid.
pub unsafe fn note_plan(plan: *const pg_sys::PlannedStmt) {
    // SAFETY: as the caller promises; `resultRelations` holds positions in `rtable`, from 1.
    unsafe {
        // For read-only plans too: functions that they call may write, and change the setting.
        note_counting();
        let targets = (*plan).resultRelations;
        if targets.is_null() {
            return;
        }
        let entries = nodes::<pg_sys::RangeTblEntry>((*plan).rtable).collect::<Vec<_>>();
        for index in integers(targets) {
            if let Some(entry) = entries.get(index as usize - 1) {
                note_relation((**entry).relid);
                foreign::note_target((**entry).relid, (**entry).relkind as u8);
            }
        }
    }
}

/// Notes that whatever runs now may change relations that the server does not count.
pub fn note_counting() {
    if !compat::counts_changes() {
        session::note_unknown_write();
    }
}

/// Notes a change of one relation. After this transaction's publication (a deferred action of
/// another library, say) the change is published at once.
pub fn note_relation(relation: pg_sys::Oid) {
    let relation = relation.to_u32();
    if relation < FIRST_USER_OID {
        session::note_definition_change();
    }
    if session::note_write(relation) && session::writes_published() {
        publish(false);
    }
}

/// Notes a change of a relation that a statement names. A name that stands for nothing is left to the statement to
/// complain about.
///
/// # Safety
/// `name` must be null or valid.
pub unsafe fn note_named(name: *const pg_sys::RangeVar) {
    // SAFETY: as the caller promises.
    let relation = unsafe { if name.is_null() { pg_sys::InvalidOid } else { relations::named(name) } };
    if relation != pg_sys::InvalidOid {
        note_relation(relation);
    }
}

/// Publishes everything this transaction has changed so far. At PRE_COMMIT and, then `preparing`, at PRE_PREPARE.
pub fn publish(preparing: bool) {
    if !has_transaction_id() {
        return;
    }
    let Some(store) = shmem::store() else { return };
    let mut changed = session::written_relations();
    // A statement that writes to a catalog itself need not send the invalidations that DDL does.
    let by_hand = changed.iter().any(|relation| *relation < FIRST_USER_OID);
    let mut listed = Vec::new();
    compat::for_each_changed_relation(|relation| listed.push(relation));
    let unknown = session::wrote_unknown() || !compat::counts_changes();
    let definitions = Definitions::of_transaction(&listed, unknown || by_hand);
    changed.extend(listed.iter().map(|relation| relation.oid));
    changed.sort_unstable();
    changed.dedup();
    changed.retain(|relation| may_carry_results(*relation));

    let writer = Writer::new(&store);
    let versions = store.versions();
    if definitions.any && preparing {
        store.note_prepared_definitions();
    }
    // The slot of all catalogs comes first: `bump_definitions_again` says why.
    let mut redefined = Vec::new();
    for (changed, slot) in [
        (definitions.any, versions.catalogs(writer.database)),
        (definitions.database, versions.ddl(writer.database)),
        (definitions.shared, versions.ddl(SHARED)),
        (definitions.enums, versions.enums(writer.database)),
    ] {
        if changed {
            redefined.push(slot);
        }
    }
    redefined.extend(definitions.relations.iter().map(|relation| versions.relation(writer.database, *relation)));
    let mut slots = redefined.clone();
    slots.extend(changed.iter().map(|relation| versions.relation(writer.database, *relation)));
    if unknown {
        slots.push(versions.wildcard(writer.database));
    }
    slots.sort_unstable_by_key(|slot| slot.0);
    slots.dedup();
    for slot in &slots {
        writer.publish(*slot);
    }
    store.counters().add(store.stripe(), Counter::Invalidations, slots.len() as u64);
    session::set_writes_published(redefined);
}

/// What a publication says about the transaction that makes it.
struct Writer<'a> {
    store: &'a SharedStore,
    database: u32,
    xid: u64,
    /// Every running transaction has at least this id.
    oldest_running: u64,
    now: i64,
}

impl<'a> Writer<'a> {
    fn new(store: &'a SharedStore) -> Self {
        // SAFETY: reads of the backend's own state and of the id counter; a transaction with an
        // id asks. RecentXmin is the oldest id that ran when this backend last took a snapshot:
        // all older ones have finished since.
        unsafe {
            let next = pg_sys::ReadNextFullTransactionId().value;
            store.versions().ensure_floor(next);
            look_for_the_past(store, next);
            let recent = pg_sys::RecentXmin;
            let known = recent != pg_sys::FirstNormalTransactionId;
            Self {
                store,
                database: pg_sys::MyDatabaseId.to_u32(),
                xid: pg_sys::GetTopFullTransactionIdIfAny().value,
                oldest_running: if known { widen(recent.into_inner(), next) } else { 0 },
                now: pg_sys::GetCurrentTimestamp(),
            }
        }
    }

    fn publish(&self, slot: SlotId) {
        let versions = self.store.versions();
        let slot: &Slot = versions.slot(slot);
        slot.publish(self.xid, self.oldest_running, |xid| self.is_running(xid), self.now);
    }

    fn is_running(&self, xid: u64) -> bool {
        if xid < self.oldest_running {
            return false;
        }
        // SAFETY: asks the process array; no lock of ours is held.
        unsafe { pg_sys::TransactionIdIsInProgress(pg_sys::TransactionId::from(xid as u32)) }
    }
}

/// Notes when no transaction from before the start is left. `next` is the next id to be given.
fn look_for_the_past(store: &SharedStore, next: u64) {
    if store.past_is_unknown() && widen(compat::oldest_active_transaction(), next) > store.versions().base_floor() {
        store.note_past_is_over();
    }
}

/// The 64-bit id whose low half is `xid` and that is nearest to `next`.
fn widen(xid: u32, next: u64) -> u64 {
    let distance = (next as u32).wrapping_sub(xid) as i32;
    next.wrapping_sub(i64::from(distance) as u64)
}

/// Bumps the versions of the definitions that the ending transaction has changed once more, when its invalidations were
/// sent. Atomics only: it runs after the commit.
///
/// The slot of all catalogs is bumped before those of relations. A reader reads them the other way round: if it tags
/// its result with a relation's last version, it finds that its plan is older than the catalogs, should that be so.
pub fn bump_definitions_again() {
    let slots = session::take_bumps_due();
    if !slots.is_empty() {
        bump(|_| slots);
    }
    // Apply workers commit prepared transactions inside others of their own, and no hook sees that.
    // SAFETY: tells what kind of process this is.
    if unsafe { pg_sys::IsLogicalWorker() } && shmem::may_have_prepared_definitions() {
        bump_all_definitions();
    }
}

/// Bumps the versions of all definitions that a transaction of this database can have changed.
pub fn bump_all_definitions() {
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    bump(|versions| {
        vec![versions.catalogs(database), versions.ddl(database), versions.ddl(SHARED), versions.enums(database)]
    });
}

fn bump(slots: impl FnOnce(Versions<'_>) -> Vec<SlotId>) {
    // SAFETY: reads the clock.
    let now = unsafe { pg_sys::GetCurrentTimestamp() };
    shmem::with_versions(|versions| {
        for slot in slots(versions) {
            versions.slot(slot).bump(now);
        }
    });
}
