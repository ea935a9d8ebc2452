//! Foreign tables that their owners trust. Changes through this server are published like all others. A transaction
//! whose view of the remote data may be older than a change neither gets nor stores answers. Tables of other access
//! methods are found here, too, when a statement reaches them through a table above them. State of this backend; no
//! lock.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::invalidation::{publication, writer};
use crate::pg::backend_local::Local;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::lists::oids;
use crate::pg::object_ids::HEAP_TABLE_AM_OID;
use crate::pg::server;
use crate::pg::tree::{Tree, children};
use crate::pg::{attention, backend, inheritance, relcache_listener};
use crate::shmem::{self, SharedStore};

/// Returns true if the entry is a foreign table that is read or written itself.
fn is_foreign(entry: &pg_sys::RangeTblEntry) -> bool {
    entry.rtekind == pg_sys::RTEKind::RTE_RELATION && entry.relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE
}

/// Returns true if an answer over the plan's foreign tables may be given or stored in this transaction. Not if one of
/// them has changed since the transaction began. Returns whether there are any.
///
/// A wrapper may read under a remote snapshot that is as old as the transaction (postgres_fdw does), and no local
/// snapshot tells that. To be called after the versions were read: then a change that the versions contain is noticed
/// here, and a later change at the end of the fill.
///
/// # Errors
/// `WriterInProgress`.
pub fn check_settled(store: &SharedStore, plan: Tree<'_, pg_sys::PlannedStmt>) -> Result<bool, Reason> {
    let mut any = false;
    for entry in children!(plan.rtable as RangeTblEntry) {
        if is_foreign(entry.get()) {
            any = true;
            let started = server::GetCurrentTransactionStartTimestamp();
            let versions = store.versions();
            let slot = versions.slot(versions.relation(backend::database(), entry.relid.to_u32()));
            if slot.read().last_change >= started {
                return Err(Reason::WriterInProgress);
            }
        }
    }
    Ok(any)
}

/// Notes what a change of `relation`, of kind `kind`, may reach and the server may not list: foreign tables, and tables
/// of other access methods than the server's own.
///
/// A change of a foreign table assigns no transaction id, and without an id nothing is published. So the transaction
/// gets an id here, whatever the table's policy is: it may become `trusted` before this transaction commits. The change
/// is published at once and once more at the commit, because a wrapper may commit on the remote server long before this
/// transaction ends.
pub fn note_target(relation: pg_sys::Oid, kind: u8) {
    match kind {
        pg_sys::RELKIND_FOREIGN_TABLE => note(relation),
        pg_sys::RELKIND_PARTITIONED_TABLE => note_members(relation),
        _ => {}
    }
}

/// The same for the relation that COPY FROM or TRUNCATE names.
pub fn note_reached(relation: pg_sys::Oid) {
    // SAFETY: a search without a lock.
    match unsafe { kept!(pg_sys::get_rel_relkind(relation)) } as u8 {
        // TRUNCATE goes on to the children that inherit.
        pg_sys::RELKIND_RELATION => note_members(relation),
        kind => note_target(relation, kind),
    }
}

/// Notes those members of the family of `root` whose changes the server may not list.
fn note_members(root: pg_sys::Oid) {
    for (member, is_foreign) in reached_through(root) {
        if is_foreign {
            note(member);
        } else {
            publication::note_relation(member);
        }
    }
}

/// Notes and publishes that a foreign table may be changed, once in each transaction.
fn note(relation: pg_sys::Oid) {
    if CHANGED.with_borrow(|changed| changed.contains(&relation.to_u32())) {
        return;
    }
    // SAFETY: plain reads of the backend's state. A statement that may not write is refused by the server itself.
    unsafe {
        if server::RecoveryInProgress() || kept!(pg_sys::IsInParallelMode()) {
            return;
        }
        kept!(pg_sys::GetCurrentTransactionId());
    }
    attention::leave_for_end();
    CHANGED.with_borrow_mut(|changed| changed.insert(relation.to_u32()));
    publication::note_relation(relation);
    writer::publish_early(relation);
}

/// The transaction has committed, and its changes are published: forgets them.
pub fn committed() {
    if CHANGED.with_borrow(|changed| !changed.is_empty()) {
        CHANGED.with_borrow_mut(BTreeSet::clear);
    }
}

/// The transaction was rolled back. One of several remote servers may have committed before another refused, so results
/// over the changed tables are outdated. Atomics only; cannot raise.
pub fn rolled_back() {
    let changed = CHANGED.take();
    if changed.is_empty() {
        return;
    }
    let database = backend::database();
    if let Some(store) = shmem::store_without_area() {
        let (versions, now) = (store.versions(), backend::now());
        let slots = changed.into_iter().flat_map(|relation| versions.of_relation(database, relation));
        slots.for_each(|slot| versions.slot(slot).bump(now));
    }
}

/// A table with all that inherit from it, partitions included.
struct Family {
    /// All its relations, ascending.
    members: Vec<u32>,
    unlisted: Unlisted,
}

/// Members of a family whose changes the server may not list: foreign tables, which are marked, and tables of other
/// access methods, which need not count what they change.
type Unlisted = Vec<(pg_sys::Oid, bool)>;

/// Families by their roots. A family is forgotten when one of its members changes.
static FAMILIES: Local<RefCell<BTreeMap<u32, Family>>> = Local::new(RefCell::new(BTreeMap::new()));
/// Foreign tables that the present transaction may have changed.
static CHANGED: Local<RefCell<BTreeSet<u32>>> = Local::new(RefCell::new(BTreeSet::new()));

/// The description of a relation may have changed.
fn relation_changed(relation: pg_sys::Oid) {
    let number = relation.to_u32();
    FAMILIES.with_borrow_mut(|families| {
        families.retain(|_, family| number != 0 && family.members.binary_search(&number).is_err())
    });
}

/// What can be reached through a relation.
fn reached_through(root: pg_sys::Oid) -> Unlisted {
    let number = root.to_u32();
    if let Some(unlisted) = FAMILIES.with_borrow(|families| families.get(&number).map(|family| family.unlisted.clone()))
    {
        return unlisted;
    }
    relcache_listener::listen(relation_changed);
    let list = inheritance::all_inheritors(root);
    let mut family = Family { members: Vec::new(), unlisted: Vec::new() };
    // SAFETY: a list of OIDs, which was just made.
    for member in unsafe { oids(list) } {
        family.members.push(member.to_u32());
        let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, member);
        match row.as_ref().and_then(CatalogRow::relation).map(|class| (class.relkind as u8, class.relam.to_u32())) {
            Some((pg_sys::RELKIND_FOREIGN_TABLE, _)) => family.unlisted.push((member, true)),
            Some((pg_sys::RELKIND_RELATION, HEAP_TABLE_AM_OID) | (pg_sys::RELKIND_PARTITIONED_TABLE, _)) => {}
            Some(_) | None => family.unlisted.push((member, false)),
        }
    }
    family.members.sort_unstable();
    let unlisted = family.unlisted.clone();
    FAMILIES.with_borrow_mut(|families| families.insert(number, family));
    unlisted
}
