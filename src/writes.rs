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
//! commit there is one thing left, for DDL only: a second bump once the invalidations are sent,
//! which is an atomic add.

use arrow_cache_core::{Counter, Reason, Slot, SlotId};
use pgrx::pg_sys;

use crate::query::types::{FIRST_USER_OID, integers, nodes};
use crate::session::{self, Catalogs};
use crate::shmem::{self, SharedStore};
use crate::{compat, foreign};

/// Stands for the database of the catalogs that all databases share.
pub const SHARED: u32 = 0;

/// Shared catalogs whose change can change an answer, or who may see it, in every database: roles and their
/// memberships (pg_authid, pg_auth_members). Ascending.
const SHARED_CATALOGS: &[u32] = &[1260, 1261];

/// Catalogs whose change cannot change a query's answer, with their TOAST tables: statistics,
/// comments, security labels, dependencies, large objects, replication progress, databases and tablespaces as such, and settings that are in the key
/// when they take effect. Ascending.
const HARMLESS_CATALOGS: &[u32] = &[
    1213, // pg_tablespace
    1214, // pg_shdepend
    1262, // pg_database
    2396, // pg_shdescription
    2608, // pg_depend
    2609, // pg_description
    2613, // pg_largeobject
    2619, // pg_statistic
    2834, // pg_description, TOAST
    2840, // pg_statistic, TOAST
    2846, // pg_shdescription, TOAST
    2964, // pg_db_role_setting
    2966, // pg_db_role_setting, TOAST
    2995, // pg_largeobject_metadata
    3429, // pg_statistic_ext_data
    3430, // pg_statistic_ext_data, TOAST
    3592, // pg_shseclabel
    3596, // pg_seclabel
    3598, // pg_seclabel, TOAST
    4060, // pg_shseclabel, TOAST
    4177, // pg_database, TOAST
    4185, // pg_tablespace, TOAST
    6000, // pg_replication_origin
    6102, // pg_subscription_rel
    6243, // pg_parameter_acl
    6244, // pg_parameter_acl, TOAST
];

/// Does a change of this relation change the meaning of statements?
fn is_meaningful_catalog(relation: u32) -> bool {
    relation < FIRST_USER_OID && HARMLESS_CATALOGS.binary_search(&relation).is_err()
}

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
        let relation = relation.to_u32();
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
        let targets = (*plan).resultRelations;
        if targets.is_null() {
            return;
        }
        note_counting();
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
    if session::note_write(relation) && session::writes_published() {
        publish();
    }
}

/// Publishes everything this transaction has changed so far. At PRE_COMMIT and PRE_PREPARE.
pub fn publish() {
    if !has_transaction_id() {
        return;
    }
    let Some(store) = shmem::store() else { return };
    let mut relations = session::written_relations();
    compat::for_each_changed_relation(|relation| relations.push(relation.to_u32()));
    let mut catalogs = relations.iter().any(|relation| is_meaningful_catalog(*relation));
    let shared = relations.iter().any(|relation| SHARED_CATALOGS.binary_search(relation).is_ok());
    relations.retain(|relation| *relation >= FIRST_USER_OID);
    relations.sort_unstable();
    relations.dedup();
    let unknown = session::wrote_unknown() || !compat::counts_changes();
    catalogs |= unknown;
    let shared = shared || unknown;

    let writer = Writer::new(&store);
    let versions = store.versions();
    for relation in &relations {
        writer.publish(versions.relation(writer.database, *relation));
    }
    if unknown {
        writer.publish(versions.wildcard(writer.database));
    }
    if catalogs {
        writer.publish(versions.ddl(writer.database));
    }
    if shared {
        writer.publish(versions.ddl(SHARED));
    }
    let changes = relations.len() as u64 + u64::from(unknown) + u64::from(catalogs);
    store.counters().add(store.stripe(), Counter::Invalidations, changes);
    session::set_writes_published(Catalogs { own: catalogs, shared });
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

/// The 64-bit id whose low half is `xid` and that is nearest to `next`.
fn widen(xid: u32, next: u64) -> u64 {
    let distance = (next as u32).wrapping_sub(xid) as i32;
    next.wrapping_sub(i64::from(distance) as u64)
}

/// Bumps the versions of the catalogs that the ending transaction has changed once more, now that its invalidations
/// were sent. Atomics only: it runs after the commit.
pub fn bump_catalogs_again() {
    bump_catalogs(session::take_catalogs_published());
}

/// Bumps the versions of catalogs.
pub fn bump_catalogs(catalogs: Catalogs) {
    if !(catalogs.own || catalogs.shared) {
        return;
    }
    // SAFETY: a plain read of a backend global, and the clock.
    let (database, now) = unsafe { (pg_sys::MyDatabaseId.to_u32(), pg_sys::GetCurrentTimestamp()) };
    shmem::with_versions(|versions| {
        if catalogs.own {
            versions.slot(versions.ddl(database)).bump(now);
        }
        if catalogs.shared {
            versions.slot(versions.ddl(SHARED)).bump(now);
        }
    });
}
