//! What a transaction has changed, and its publication before anybody can see it (protocol C; the
//! whole argument is in docs/architecture.md).
//!
//! The write set is the union of what the executor hooks saw and of the list that the heap access
//! method itself keeps for statistics, which names every relation whose tuples changed by any
//! path: cascades, leaves of partitions, COPY, triggers, logical apply, C code. A change to a
//! catalog in that list means DDL. While `track_counts` is off nothing is added to that list: a transaction in which it
//! was off at any moment publishes to a wildcard that every entry of the database rests on.
//!
//! Everything happens at PRE_COMMIT or PRE_PREPARE, where raising is still allowed. After the
//! commit there is one thing left, for DDL only: a second bump of its slots once the invalidations are sent, which
//! can neither raise nor wait.

use std::cell::Cell;

use arrow_cache_core::{Answers, Counter, Reason, RoomyVec, Slot, SlotId, Versions};
use pgrx::pg_sys;

use crate::invalidation::definitions::{Definitions, is_meaningful_catalog, may_carry_results};
use crate::invalidation::{foreign, write_set};
use crate::pg::backend_local::Local;
use crate::pg::compat::ChangedRelation;
use crate::pg::lists::{FIRST_USER_OID, integers, node_at, nodes};
use crate::pg::tree::Tree;
use crate::pg::{backend, compat, rights};
use crate::query::relations;
use crate::session;
use crate::shmem::{self, SharedStore};

/// Stands for the database of the catalogs that all databases share.
pub const SHARED: u32 = 0;

/// Has this transaction an id, without which it cannot have written anything?
pub fn has_transaction_id() -> bool {
    backend::top_transaction_id() != 0
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
    if is_unlisted() {
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
    if found.is_ok() && relations.iter().any(|relation| write_set::holds(*relation)) {
        found = Err(Reason::OwnWrites);
    }
    found
}

/// Is there anything left to run when a plan has returned its last row: triggers, or the rest of a WITH clause?
///
/// # Safety
/// `query_desc` must be a started query.
pub unsafe fn leaves_work(query_desc: *const pg_sys::QueryDesc) -> bool {
    // SAFETY: as the caller promises; the lists hold what the query has opened.
    unsafe {
        let state = (*query_desc).estate;
        !(*state).es_auxmodifytables.is_null()
            || !(*state).es_tuple_routing_result_relations.is_null()
            || !(*state).es_trig_target_relations.is_null()
            || nodes::<pg_sys::ResultRelInfo>((*state).es_opened_result_relations)
                .any(|target| !(*target).ri_TrigDesc.is_null())
    }
}

/// Notes the targets of a data-modifying plan, at any nesting level: when the server has found that the user may change
/// them, and before its first row.
///
/// # Safety
/// `plan` must be valid, and started.
pub unsafe fn note_plan(plan: *const pg_sys::PlannedStmt) {
    // SAFETY: as the caller promises; `resultRelations` holds positions in `rtable`, from 1.
    unsafe {
        let targets = (*plan).resultRelations;
        if targets.is_null() {
            return;
        }
        for index in integers(targets) {
            if let Some(entry) = node_at::<pg_sys::RangeTblEntry>((*plan).rtable, index as usize - 1) {
                note_relation((*entry).relid);
                foreign::note_target((*entry).relid, (*entry).relkind as u8);
            }
        }
    }
}

/// Has a query sent rows to leaves of partitioned tables? Looks at two words and calls nothing.
///
/// # Safety
/// `query_desc` must be a query that was run.
pub unsafe fn has_routed(query_desc: *const pg_sys::QueryDesc) -> bool {
    // SAFETY: as the caller promises.
    unsafe { !(*(*query_desc).estate).es_tuple_routing_result_relations.is_null() }
}

/// Notes the foreign tables among the leaves that a query has sent rows to: one may have been attached since the query was started.
///
/// # Safety
/// As `has_routed`, before the query is ended.
pub unsafe fn note_routed(query_desc: *const pg_sys::QueryDesc) {
    // SAFETY: as the caller promises; the leaves are open until the end of the query.
    unsafe {
        for leaf in nodes::<pg_sys::ResultRelInfo>((*(*query_desc).estate).es_tuple_routing_result_relations) {
            let relation = (*leaf).ri_RelationDesc;
            foreign::note_target((*relation).rd_id, (*(*relation).rd_rel).relkind as u8);
        }
    }
}

/// `note_counting` is called whenever the setting changes.
static COUNTING_WATCHED: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Says that `note_counting` will be called. Once, in the postmaster.
pub fn watch_counting() {
    COUNTING_WATCHED.set(true);
}

/// Notes that the server is about to list changes from here on, or no more. Can be called at any moment; neither raises nor
/// allocates.
///
/// Whether a change is listed was decided when its relation was last opened, in the same transaction (pgstat_init_relation), by
/// the setting of that moment. So all changes of a transaction are listed if the setting was on from its beginning to its end:
/// if it is on at the end, and was never set while off, or to off, before. What the end of a subtransaction or a function sets back
/// was set before, in this transaction; what the end of the transaction itself sets back comes after its changes.
pub fn note_counting(on: bool) {
    if !(on && compat::counts_changes()) && backend::in_transaction() {
        write_set::note_unknown();
    }
}

/// May this transaction have changed relations that neither the server nor the hooks have listed?
fn is_unlisted() -> bool {
    write_set::is_unknown() || !compat::counts_changes() || !COUNTING_WATCHED.get()
}

/// Notes a change of one relation, which the user was allowed to make: who may not change a relation must not outdate
/// results over it either. After this transaction's publication (a deferred action of
/// another library, say) the change is published at once.
pub fn note_relation(relation: pg_sys::Oid) {
    let relation = relation.to_u32();
    if relation < FIRST_USER_OID {
        session::note_definition_change();
    }
    if write_set::note(relation) && write_set::is_published() {
        publish(false);
    }
}

/// The relation that a statement names, to change it in a way that takes this privilege; `None` if the statement will be
/// refused. A name that stands for nothing is left to the statement to complain about.
///
/// # Safety
/// `name` must be null or valid.
pub unsafe fn changeable(name: *const pg_sys::RangeVar, privilege: u32) -> Option<pg_sys::Oid> {
    // SAFETY: as the caller promises.
    let relation = unsafe { Tree::enter(name) }.map_or(pg_sys::InvalidOid, relations::named);
    let exists = relation != pg_sys::InvalidOid;
    (exists && rights::has(rights::current_role(), relation, privilege)).then_some(relation)
}

/// Lists that a publication fills. Kept from one to the next, so that they are not allocated each time.
#[derive(Default)]
struct Lists {
    /// What the server lists.
    changed: Vec<ChangedRelation>,
    /// OIDs of relations whose rows have changed.
    relations: Vec<u32>,
    /// What there is to publish.
    slots: Vec<SlotId>,
}

/// Empty lists, unless a publication is under way.
static LISTS: Local<Cell<Lists>> =
    Local::new(Cell::new(Lists { changed: Vec::new(), relations: Vec::new(), slots: Vec::new() }));

impl Lists {
    /// Gives the lists back to the next publication.
    fn keep(mut self) {
        write_set::empty(&mut self.changed);
        write_set::empty(&mut self.relations);
        write_set::empty(&mut self.slots);
        LISTS.set(self);
    }
}

/// Publishes everything this transaction has changed so far. At PRE_COMMIT and, then `preparing`, at PRE_PREPARE.
pub fn publish(preparing: bool) {
    let xid = backend::top_transaction_id();
    if xid == 0 {
        return;
    }
    let Some(store) = shmem::store() else { return };
    let mut lists = LISTS.take();
    let Lists { changed, relations, slots } = &mut lists;
    // What there is no memory to list counts as unknown, which stands for any relation.
    let mut listed = write_set::list_into(relations);
    // A statement that writes to a catalog itself need not send the invalidations that DDL does.
    let by_hand = relations.iter().any(|relation| is_meaningful_catalog(*relation));
    let seen = relations.len();
    compat::for_each_changed_relation(|relation| {
        // Most were seen by the hooks as well.
        if relations[..seen].binary_search(&relation.oid).is_err() {
            listed = listed.and(relations.add(relation.oid));
        }
        listed = listed.and(changed.add(relation));
    });
    if relations.len() > seen {
        relations.sort_unstable();
        relations.dedup();
    }
    let unknown = listed.is_err() || is_unlisted();
    let definitions = Definitions::of_transaction(changed, unknown || by_hand);

    let writer = Writer::new(&store, xid);
    if definitions.any && preparing {
        store.note_prepared_definitions();
    }
    let redefined = if definitions.any { writer.redefined(&definitions) } else { Vec::new() };
    redefined.iter().for_each(|slot| {
        if slots.add(*slot).is_err() {
            writer.publish(*slot);
        }
    });
    for relation in relations {
        if may_carry_results(*relation) {
            let slot = writer.versions.relation(writer.database, *relation);
            // The list only sees to it that each is published once.
            if slots.add(slot).is_err() {
                writer.publish(slot);
            }
        }
    }
    if unknown {
        let slot = writer.versions.wildcard(writer.database);
        if slots.add(slot).is_err() {
            writer.publish(slot);
        }
    }
    slots.sort_unstable_by_key(|slot| slot.0);
    slots.dedup();
    for slot in &*slots {
        writer.publish(*slot);
    }
    store.counters().add(store.stripe(), Counter::Invalidations, slots.len() as u64);
    write_set::set_published(redefined);
    lists.keep();
}

/// Publishes that this transaction, which has an id, changes a relation: nobody is given or stores an answer over it before the
/// transaction has ended.
pub fn publish_early(relation: pg_sys::Oid) {
    let xid = backend::top_transaction_id();
    if let Some(store) = shmem::store()
        && xid != 0
    {
        let writer = Writer::new(&store, xid);
        writer.publish(writer.versions.relation(writer.database, relation.to_u32()));
    }
}

/// What a publication says about the transaction that makes it.
struct Writer<'a> {
    versions: Versions<'a>,
    database: u32,
    xid: u64,
    /// Every running transaction has at least this id.
    oldest_running: u64,
    now: i64,
    /// Which transactions run, as far as it was asked.
    running: Cell<Answers>,
}

impl<'a> Writer<'a> {
    fn new(store: &'a SharedStore, xid: u64) -> Self {
        // The id after this transaction's own is as good as the next one: nothing from before the start has a later id.
        let versions = store.versions();
        versions.ensure_floor(xid + 1);
        look_for_the_past(store, xid);
        // SAFETY: plain reads of the backend's own state. RecentXmin is the oldest id that ran when this backend last took
        // a snapshot: all older ones have finished since.
        let (database, recent) = unsafe { (pg_sys::MyDatabaseId.to_u32(), pg_sys::RecentXmin) };
        let known = recent != pg_sys::FirstNormalTransactionId;
        let oldest_running = if known { widen(recent.into_inner(), xid) } else { 0 };
        let running = Cell::new(Answers::from(oldest_running));
        Self { versions, database, xid, oldest_running, now: backend::now(), running }
    }

    /// The slots of what was redefined, that of all catalogs first: `bump_definitions_again` says why.
    fn redefined(&self, definitions: &Definitions) -> Vec<SlotId> {
        let versions = self.versions;
        let mut slots = Vec::with_capacity(definitions.relations.len() + 4);
        for (changed, slot) in [
            (definitions.any, versions.catalogs(self.database)),
            (definitions.database, versions.ddl(self.database)),
            (definitions.shared, versions.ddl(SHARED)),
            (definitions.enums, versions.enums(self.database)),
        ] {
            if changed {
                slots.push(slot);
            }
        }
        slots.extend(definitions.relations.iter().map(|relation| versions.relation(self.database, *relation)));
        slots
    }

    fn publish(&self, slot: SlotId) {
        let slot: &Slot = self.versions.slot(slot);
        slot.publish(self.xid, self.oldest_running, |xid| self.is_running(xid), self.now);
    }

    fn is_running(&self, xid: u64) -> bool {
        if xid < self.oldest_running {
            return false;
        }
        let mut answers = self.running.get();
        // SAFETY: asks the process array; no lock of ours is held.
        let ask = |xid| unsafe { pg_sys::TransactionIdIsInProgress(pg_sys::TransactionId::from(xid as u32)) };
        let running = answers.get(xid, ask);
        self.running.set(answers);
        running
    }
}

/// Notes when no transaction from before the start is left. `xid` is the id of a running one.
fn look_for_the_past(store: &SharedStore, xid: u64) {
    if store.past_is_unknown() && widen(compat::oldest_active_transaction(), xid) > store.versions().base_floor() {
        store.note_past_is_over();
    }
}

/// The 64-bit id whose low half is `xid` and that is nearest to `reference`.
fn widen(xid: u32, reference: u64) -> u64 {
    let distance = (reference as u32).wrapping_sub(xid) as i32;
    reference.wrapping_sub(i64::from(distance) as u64)
}

/// Bumps the versions of the definitions that the ending transaction has changed once more, when its invalidations were
/// sent. Atomics only: it runs after the commit.
///
/// The slot of all catalogs is bumped before those of relations. A reader reads them the other way round: if it tags
/// its result with a relation's last version, it finds that its plan is older than the catalogs, should that be so.
///
/// Kept out of the callback, which is called many times and hardly ever comes here.
#[inline(never)]
pub fn bump_definitions_again() {
    if write_set::has_bumps_due() {
        let slots = write_set::take_bumps_due();
        bump(|_| slots);
    }
    // Apply workers commit prepared transactions inside others of their own, and no hook sees that.
    if backend::is_logical_worker() && shmem::may_have_prepared_definitions() {
        bump_all_definitions();
    }
}

/// Bumps the versions of all definitions that a transaction of this database can have changed.
pub fn bump_all_definitions() {
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    bump(|versions| {
        [versions.catalogs(database), versions.ddl(database), versions.ddl(SHARED), versions.enums(database)]
    });
}

fn bump<S: IntoIterator<Item = SlotId>>(slots: impl FnOnce(Versions<'_>) -> S) {
    let now = backend::now();
    shmem::with_versions(|versions| {
        for slot in slots(versions) {
            versions.slot(slot).bump(now);
        }
    });
}
