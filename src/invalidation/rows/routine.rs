//! The watching routine: a copy of the heap's access routine, of which those functions that change one row do what the
//! heap's do, and note the change. A scan that begins takes the routine back. All other functions are the heap's own.
//! A constant; keeps nothing.

use std::ffi::c_int;
use std::sync::OnceLock;

use arrow_cache_core::versions::noted_rows::RowChange;
use pgrx::pg_sys;

use super::watched::{Watched, heap};
use super::{expected, noted, watched};
use crate::pg::compat::UpdatedIndexes;
use crate::pg::error_passing::edge;

/// The routine.
pub fn routine() -> &'static pg_sys::TableAmRoutine {
    static ROUTINE: OnceLock<pg_sys::TableAmRoutine> = OnceLock::new();
    ROUTINE.get_or_init(|| pg_sys::TableAmRoutine {
        scan_begin: Some(scan_begin),
        tuple_insert: Some(tuple_insert),
        tuple_insert_speculative: Some(tuple_insert_speculative),
        tuple_complete_speculative: Some(tuple_complete_speculative),
        tuple_delete: Some(tuple_delete),
        tuple_update: Some(tuple_update),
        ..*heap()
    })
}

/// The heap's function behind a field, which every routine has.
macro_rules! of_heap {
    ($function:ident) => {
        heap().$function.unwrap_unchecked()
    };
}

/// Notes a change. If nothing more is to be noted, the node is told.
///
/// # Safety
/// As `noted::note`. No statement begins or ends while values of a row are read, so what is watched stays where it is.
unsafe fn note(
    watched: *const Watched,
    change: RowChange,
    new: *mut pg_sys::TupleTableSlot,
    old: Option<pg_sys::ItemPointerData>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let below = (*(*watched).node).ps.lefttree;
        if !noted::note(&*watched, change, new, old) {
            watched::count_in_vain(below);
        }
    }
}

/// The heap has made the change for which a row was given: notes it, where the routine stands for it. Returns the node
/// and the target for which it stood.
///
/// # Safety
/// As `noted::note`, of an open relation.
unsafe fn note_last(
    relation: pg_sys::Relation,
    change: RowChange,
    new: *mut pg_sys::TupleTableSlot,
    old: Option<pg_sys::ItemPointerData>,
) -> Option<(*mut pg_sys::ModifyTableState, *mut pg_sys::ResultRelInfo)> {
    // SAFETY: the caller's promise.
    unsafe {
        let watched = watched::take_standing(relation)?;
        note(watched, change, new, old);
        Some(((*watched).node, (*watched).target))
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
        edge(|| watched::take_back_from(relation));
        direct!(of_heap!(scan_begin)(relation, snapshot, key_count, keys, parallel, flags))
    }
}

unsafe extern "C-unwind" fn tuple_insert(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    options: c_int,
    state: *mut pg_sys::BulkInsertStateData,
) {
    // SAFETY: the server's own arguments, passed on unchanged; the relation is open, and the slot holds the new row.
    unsafe {
        direct!(of_heap!(tuple_insert)(relation, slot, command, options, state));
        edge(|| _ = note_last(relation, RowChange::Insert, slot, None));
    }
}

/// A row is inserted that will be taken back if it is in conflict with another one.
unsafe extern "C-unwind" fn tuple_insert_speculative(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    options: c_int,
    state: *mut pg_sys::BulkInsertStateData,
    token: u32,
) {
    // SAFETY: as in `tuple_insert`.
    unsafe {
        direct!(of_heap!(tuple_insert_speculative)(relation, slot, command, options, state, token));
        edge(|| {
            if let Some(watched) = watched::standing(relation) {
                note(&raw const watched, RowChange::Insert, slot, None);
            }
        });
    }
}

/// It stays, or goes; then the executor tries again.
unsafe extern "C-unwind" fn tuple_complete_speculative(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    token: u32,
    stays: bool,
) {
    // SAFETY: as in `tuple_insert`.
    unsafe {
        direct!(of_heap!(tuple_complete_speculative)(relation, slot, token, stays));
        edge(|| {
            if stays {
                watched::take_standing(relation);
            } else if let Some(watched) = watched::standing(relation) {
                // The server counts that one row has gone. Its values are noted.
                note(&raw const watched, RowChange::Delete, std::ptr::null_mut(), None);
            }
        });
    }
}

unsafe extern "C-unwind" fn tuple_delete(
    relation: pg_sys::Relation,
    place: pg_sys::ItemPointer,
    command: pg_sys::CommandId,
    snapshot: pg_sys::Snapshot,
    crosscheck: pg_sys::Snapshot,
    waits: bool,
    failure: *mut pg_sys::TM_FailureData,
    moves: bool,
) -> pg_sys::TM_Result::Type {
    // SAFETY: the server's own arguments, passed on unchanged; the relation is open.
    unsafe {
        let version = *place;
        let result =
            direct!(of_heap!(tuple_delete)(relation, place, command, snapshot, crosscheck, waits, failure, moves));
        // Otherwise the executor may try again, with a newer version.
        if result == pg_sys::TM_Result::TM_Ok {
            edge(|| {
                let changed = note_last(relation, RowChange::Delete, std::ptr::null_mut(), Some(version));
                if let Some((node, target)) = changed.filter(|_| moves) {
                    expected::expect_moved(node, target, version, routine());
                }
            });
        }
        result
    }
}

unsafe extern "C-unwind" fn tuple_update(
    relation: pg_sys::Relation,
    place: pg_sys::ItemPointer,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    snapshot: pg_sys::Snapshot,
    crosscheck: pg_sys::Snapshot,
    waits: bool,
    failure: *mut pg_sys::TM_FailureData,
    lock_mode: *mut pg_sys::LockTupleMode::Type,
    indexes: *mut UpdatedIndexes,
) -> pg_sys::TM_Result::Type {
    // SAFETY: the server's own arguments, passed on unchanged; the relation is open, and the slot holds the new row.
    unsafe {
        let version = *place;
        let result = direct!(of_heap!(tuple_update)(
            relation, place, slot, command, snapshot, crosscheck, waits, failure, lock_mode, indexes
        ));
        if result == pg_sys::TM_Result::TM_Ok {
            edge(|| _ = note_last(relation, RowChange::Update, slot, Some(version)));
        }
        result
    }
}
