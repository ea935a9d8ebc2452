//! Which relation a node is about to change a row of: it may be one of many, leaves and children among them. The
//! watching routine is put there, if the relation is tracked. Keeps nothing: `watched` does.

use arrow_cache_core::{TrackedColumns, bit_of};
use pgrx::pg_sys::{self, CmdType};

use super::contents::Columns;
use super::watched::Watched;
use super::{as_read, noted, watched};
use crate::invalidation::registration;
use crate::pg::compat::has_generated_columns;
use crate::pg::lists::{integers, node_at, nodes};
use crate::pg::{backend, server};
use crate::shmem::{self, SharedStore};

/// What is tracked of an open relation.
///
/// # Safety
/// The relation must be open.
pub unsafe fn tracked(store: &SharedStore, relation: pg_sys::Relation) -> Option<TrackedColumns> {
    // SAFETY: the caller's promise.
    store.registry().columns_of(backend::database(), unsafe { (*relation).rd_id.to_u32() })
}

/// A watched node is about to do what a row tells that it has got. May raise what that would raise.
///
/// # Safety
/// The query of the node must be under way, and the slot hold its row.
pub unsafe fn expect_change(
    node: *mut pg_sys::ModifyTableState,
    row: *mut pg_sys::TupleTableSlot,
    routine: &'static pg_sys::TableAmRoutine,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let target = target_of(node, row);
        if target.is_null() || !expect(node, target, routine) {
            watched::count_in_vain((*node).ps.lefttree);
        }
    }
}

/// An UPDATE has deleted a version of a row from one leaf, to insert another into a leaf where that belongs. May raise
/// what the insertion would raise.
///
/// # Safety
/// The query must be under way.
pub unsafe fn expect_moved(
    node: *mut pg_sys::ModifyTableState,
    target: *mut pg_sys::ResultRelInfo,
    version: pg_sys::ItemPointerData,
    routine: &'static pg_sys::TableAmRoutine,
) {
    // SAFETY: the caller's promise. The executor converts the row to that of the root, by the same slot, and finds the
    // leaf next.
    unsafe {
        let (row, root_row) = ((*target).ri_newTupleSlot, (*node).mt_root_tuple_slot);
        let is_own = (*node).operation == CmdType::CMD_UPDATE
            && as_read::holds((*target).ri_oldTupleSlot, version)
            && !(row.is_null() || root_row.is_null() || (*node).mt_partition_tuple_routing.is_null());
        if !is_own {
            return;
        }
        let map = kept!(pg_sys::ExecGetChildToRootMap(target));
        let row = if map.is_null() { row } else { kept!(pg_sys::execute_attr_map_slot((*map).attrMap, row, root_row)) };
        expect(node, leaf_for(node, row), routine);
    }
}

/// Has the routine stand in the description of a relation that a node is about to change a row of. Returns false if the
/// change is not to be noted.
///
/// # Safety
/// The query of the node must be under way, and the relation be one of its own.
unsafe fn expect(
    node: *mut pg_sys::ModifyTableState,
    target: *mut pg_sys::ResultRelInfo,
    routine: &'static pg_sys::TableAmRoutine,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        if watched::stand_for(node, target, routine) {
            return true;
        }
        let relation = (*target).ri_RelationDesc;
        // The routine may stand for a row of an outer statement.
        let is_heap = [watched::heap(), routine].iter().any(|one| std::ptr::eq((*relation).rd_tableam, *one));
        let Some(store) = shmem::store().filter(|_| is_heap) else { return false };
        let Some(tracked) = tracked(&store, relation) else { return false };
        let (number, changed) = ((*relation).rd_id.to_u32(), changed_columns(node, target));
        registration::note_update(&store, number, &tracked, changed);
        let Some(place) = noted::place_for(number, &tracked) else { return false };
        // The types are those that this statement finds: an earlier one may have found others, in a subtransaction that
        // was rolled back.
        let columns = Columns::of(relation, &tracked, changed);
        // UPDATE reads the row again for itself.
        let is_read = columns.have_values() && !matches!((*node).operation, CmdType::CMD_INSERT | CmdType::CMD_UPDATE);
        let read = if is_read { as_read::slot_of_scan(node, target) } else { std::ptr::null_mut() };
        let query = (*node).ps.state;
        let watched = Watched { query, node, target, relation, read, place, columns, stands: false };
        watched::add(watched).is_ok() && watched::stand_for(node, target, routine)
    }
}

/// The relation that a node will change a row of, when it has got this row from the node below; null if that cannot be
/// told yet.
///
/// # Safety
/// As `expect_change`.
unsafe fn target_of(
    node: *mut pg_sys::ModifyTableState,
    row: *mut pg_sys::TupleTableSlot,
) -> *mut pg_sys::ResultRelInfo {
    // SAFETY: the caller's promise. Rows for several targets have a column that tells which.
    unsafe {
        let column = (*node).mt_resultOidAttno;
        if (*node).operation == CmdType::CMD_INSERT && !(*node).mt_partition_tuple_routing.is_null() {
            leaf_for(node, row)
        } else if column == 0 {
            (*node).resultRelInfo
        } else {
            if (*row).tts_nvalid < column as i16 {
                kept!(pg_sys::slot_getsomeattrs_int(row, column));
            }
            let place = column as usize - 1;
            // MERGE inserts what matches nothing.
            if *(*row).tts_isnull.add(place) {
                return std::ptr::null_mut();
            }
            let relation = pg_sys::Oid::from((*(*row).tts_values.add(place)).value() as u32);
            kept!(pg_sys::ExecLookupResultRelByOid(node, relation, true, false))
        }
    }
}

/// The leaf that a row of the root is inserted into. The executor finds the same one next: the search opens the leaf
/// for it, and raises what it would raise.
///
/// # Safety
/// A node that routes rows, whose query is under way, and a row of its root.
unsafe fn leaf_for(
    node: *mut pg_sys::ModifyTableState,
    row: *mut pg_sys::TupleTableSlot,
) -> *mut pg_sys::ResultRelInfo {
    // SAFETY: the caller's promise.
    unsafe {
        let routing = (*node).mt_partition_tuple_routing;
        kept!(server::ExecFindPartition(node, (*node).rootResultRelInfo, routing, row, (*node).ps.state))
    }
}

/// The columns, by their bits, that a node sets in rows of a relation which keep all others; all if these may change as
/// well. The new version of a row is made of the old one and of what is set (`ExecInitUpdateProjection`). Then triggers
/// may change it, and generated columns are computed.
///
/// # Safety
/// A valid node of a query that was started, and a relation of its own.
unsafe fn changed_columns(node: *const pg_sys::ModifyTableState, target: *const pg_sys::ResultRelInfo) -> u64 {
    // SAFETY: the caller's promise; an UPDATE has a list of numbers for each target that its plan names.
    unsafe {
        let mut targets = std::slice::from_raw_parts((*node).resultRelInfo, (*node).mt_nrels as usize).iter();
        let place = targets.position(|own| std::ptr::eq(own, target));
        let may_change_more = (*node).operation != CmdType::CMD_UPDATE
            || (*target).ri_TrigDesc.as_ref().is_some_and(|triggers| triggers.trig_update_before_row)
            || has_generated_columns((*(*target).ri_RelationDesc).rd_att);
        let plan = (*node).ps.plan.cast::<pg_sys::ModifyTable>();
        let lists = (*plan).updateColnosLists;
        // The run may have left targets out (18).
        match place {
            Some(place) if !may_change_more && nodes::<pg_sys::List>(lists).len() == (*node).mt_nrels as usize => {
                let list = node_at(lists, place).unwrap_unchecked();
                integers(list).fold(0, |set, column| set | bit_of(column as i16))
            }
            _ => u64::MAX,
        }
    }
}
