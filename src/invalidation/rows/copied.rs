//! COPY to a tracked table: its rows come without a node of a plan. So the relation's description has a routine of its
//! own for as long as the statement runs, whose functions insert as the heap's do, and note the rows. A scan of the
//! table that begins takes it back: then the rest is not noted. State of this backend, for one statement; no lock.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::OnceLock;

use pgrx::pg_sys;

use super::contents::Columns;
use super::expected::tracked;
use super::noted;
use super::watched::heap;
use crate::pg::backend_local::Local;
use crate::pg::error_passing::edge;
use crate::{settings, shmem};

/// The table that rows are copied to.
#[derive(Clone, Copy)]
struct Copied {
    relation: pg_sys::Relation,
    /// Where its changes are noted.
    place: usize,
    columns: Columns,
}

static COPIED: Local<Cell<Option<Copied>>> = Local::new(Cell::new(None));

/// Notes the rows that are copied to a table from now on, if it is tracked. It is locked as the statement itself will
/// lock it. Returns true if `end` is to be called, after an error too.
pub fn begin(relation: pg_sys::Oid) -> bool {
    let Some(store) = shmem::store().filter(|store| !store.registry().usage().is_none()) else { return false };
    if !settings::precise_invalidation() || COPIED.get().is_some() {
        return false;
    }
    // SAFETY: a relation that the statement names; an error leaves the reference to the resource owner.
    unsafe {
        let open = kept!(pg_sys::try_relation_open(relation, pg_sys::RowExclusiveLock as _));
        if open.is_null() {
            return false;
        }
        let tracked = tracked(&store, open).filter(|_| std::ptr::eq((*open).rd_tableam, heap()));
        noted::begin();
        let place = tracked.and_then(|tracked| noted::place_for(relation.to_u32(), &tracked));
        let Some((tracked, place)) = tracked.zip(place) else {
            kept!(pg_sys::relation_close(open, pg_sys::NoLock as _));
            return false;
        };
        let columns = Columns::of(open, &tracked, 0);
        (*open).rd_tableam = routine();
        COPIED.set(Some(Copied { relation: open, place, columns }));
    }
    true
}

/// The statement has ended. `raised`: by an error, which lets the relation go by itself. Cannot raise.
pub fn end(raised: bool) {
    if let Some(Copied { relation, .. }) = COPIED.take() {
        // SAFETY: opened by `begin`. Closing it without giving the lock back only counts down.
        unsafe {
            (*relation).rd_tableam = heap();
            if !raised {
                direct!(pg_sys::relation_close(relation, pg_sys::NoLock as _));
            }
        }
    }
}

fn routine() -> &'static pg_sys::TableAmRoutine {
    static ROUTINE: OnceLock<pg_sys::TableAmRoutine> = OnceLock::new();
    ROUTINE.get_or_init(|| pg_sys::TableAmRoutine {
        scan_begin: Some(scan_begin),
        tuple_insert: Some(tuple_insert),
        multi_insert: Some(multi_insert),
        ..*heap()
    })
}

/// Notes rows that have been inserted, if they are those that are copied.
///
/// # Safety
/// An open relation, and slots that hold rows of it.
unsafe fn note(relation: pg_sys::Relation, slots: &[*mut pg_sys::TupleTableSlot]) {
    let Some(copied) = COPIED.get().filter(|copied| std::ptr::eq(copied.relation, relation)) else { return };
    // SAFETY: the caller's promise.
    unsafe {
        if !noted::note_inserted(relation, copied.place, &copied.columns, slots) {
            (*relation).rd_tableam = heap();
        }
    }
}

unsafe extern "C-unwind" fn scan_begin(
    relation: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    key_count: c_int,
    keys: *mut pg_sys::ScanKeyData,
    parallel: pg_sys::ParallelTableScanDesc,
    flags: u32,
) -> pg_sys::TableScanDesc {
    // SAFETY: the server's own arguments, passed on unchanged; the relation is open.
    unsafe {
        (*relation).rd_tableam = heap();
        direct!(heap().scan_begin.unwrap_unchecked()(relation, snapshot, key_count, keys, parallel, flags))
    }
}

unsafe extern "C-unwind" fn tuple_insert(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    options: c_int,
    state: *mut pg_sys::BulkInsertStateData,
) {
    // SAFETY: the server's own arguments, passed on unchanged; the slot holds the new row.
    unsafe {
        direct!(heap().tuple_insert.unwrap_unchecked()(relation, slot, command, options, state));
        edge(|| note(relation, &[slot]));
    }
}

unsafe extern "C-unwind" fn multi_insert(
    relation: pg_sys::Relation,
    slots: *mut *mut pg_sys::TupleTableSlot,
    count: c_int,
    command: pg_sys::CommandId,
    options: c_int,
    state: *mut pg_sys::BulkInsertStateData,
) {
    // SAFETY: the server's own arguments, passed on unchanged; as many slots hold the new rows.
    unsafe {
        direct!(heap().multi_insert.unwrap_unchecked()(relation, slots, count, command, options, state));
        edge(|| note(relation, std::slice::from_raw_parts(slots, count.max(0) as usize)));
    }
}
