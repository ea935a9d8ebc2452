//! Statements that change rows of tracked relations, from their start to their end. The node that changes the rows asks
//! the node below for each of them; so the node below tells when a row is to be changed next. Keeps nothing: `watched`
//! does.

use arrow_cache_core::bit_of;
use pgrx::pg_sys::{self, NodeTag};

use super::watched::Watched;
use super::{noted, routine, watched};
use crate::pg::backend;
use crate::pg::compat::has_generated_columns;
use crate::pg::error_passing::edge;
use crate::pg::lists::{integers, nodes};
use crate::pg::query_desc::QueryDesc;
use crate::{settings, shmem};

/// Watches the nodes of a query that change rows of tracked relations. To be called when the query has been started,
/// and before the first row.
pub fn begin(query: QueryDesc<'_>) {
    let Some(state) = query.estate() else { return };
    let top = query.plan_state();
    // SAFETY: the state of a query is valid with its nodes until the query is ended.
    unsafe {
        if !top.is_null() && (*top).type_ == NodeTag::T_ModifyTableState {
            watch(top.cast());
        }
        // Those of WITH clauses.
        for node in nodes::<pg_sys::PlanState>(state.as_ref().es_auxmodifytables) {
            watch(node.cast());
        }
    }
}

/// Watches a node if it changes rows of one relation, which is tracked.
///
/// # Safety
/// A valid node of a query that was started.
unsafe fn watch(node: *mut pg_sys::ModifyTableState) {
    // SAFETY: the caller's promise; the target is open, and has its row of pg_class.
    unsafe {
        let target = (*node).resultRelInfo;
        let relation = (*target).ri_RelationDesc;
        let Some(tracked) = shmem::store()
            .and_then(|store| store.registry().columns_of(backend::database(), (*relation).rd_id.to_u32()))
            .filter(|_| settings::precise_invalidation())
        else {
            return;
        };
        // Rows for other relations than the one that is named are not noted: those of leaves, of children.
        let is_alone = (*node).mt_nrels == 1 && std::ptr::eq(target, (*node).rootResultRelInfo);
        // The routine may stand for a row of an outer statement.
        let is_heap =
            [watched::heap(), routine::routine()].iter().any(|one| std::ptr::eq((*relation).rd_tableam, *one));
        if !is_alone || !is_heap {
            return;
        }
        let Some((place, columns)) = noted::place_for(relation, tracked, changed_columns(node)) else { return };
        let below = (*node).ps.lefttree;
        // The topmost node is listed as well if its query is one that a rule has added.
        if watched::is_watched(below) {
            return;
        }
        let Some(next_row) = (*below).ExecProcNodeReal else { return };
        let query = (*node).ps.state;
        let watched = Watched { query, below, next_row, target, relation, place, columns, stands: false };
        // Without memory for that, its changes are not noted.
        if watched::add(watched).is_ok() {
            // The server calls it by this field, with or without measuring it. It has not been called yet.
            (*below).ExecProcNodeReal = Some(next_watched_row);
        }
    }
}

/// The columns, by their bits, that a node sets in rows which keep all others; all if these may change as well. The new
/// version of a row is made of the old one and of what is set (`ExecInitUpdateProjection`). Then triggers may change
/// it, and generated columns are computed.
///
/// # Safety
/// A valid node of a query that was started, with one target.
unsafe fn changed_columns(node: *const pg_sys::ModifyTableState) -> u64 {
    // SAFETY: the caller's promise; an UPDATE has a list of numbers for each target.
    unsafe {
        let target = (*node).resultRelInfo;
        let may_change_more = (*node).operation != pg_sys::CmdType::CMD_UPDATE
            || (*target).ri_TrigDesc.as_ref().is_some_and(|triggers| triggers.trig_update_before_row)
            || has_generated_columns((*(*target).ri_RelationDesc).rd_att);
        if may_change_more {
            return u64::MAX;
        }
        let plan = (*node).ps.plan.cast::<pg_sys::ModifyTable>();
        let mut lists = nodes::<pg_sys::List>((*plan).updateColnosLists);
        match (lists.next(), lists.next()) {
            (Some(list), None) => integers(list).fold(0, |set, column| set | bit_of(column as i16)),
            _ => u64::MAX,
        }
    }
}

/// Gives the next row of the node below a watched one, which is to be changed.
///
/// # Safety
/// Called by the server, for a node that `watch` has been at.
unsafe extern "C-unwind" fn next_watched_row(below: *mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the server calls this while the query runs, and the query is watched until it ends. What is kept over
    // the call is plain data.
    unsafe {
        let next_row = edge(|| watched::before_row(below)).unwrap_unchecked();
        let slot = direct!(next_row(below));
        if !slot.is_null() && u32::from((*slot).tts_flags) & pg_sys::TTS_FLAG_EMPTY == 0 {
            edge(|| watched::after_row(below, routine::routine()));
        }
        slot
    }
}

/// Watches a query no more, which is about to be ended, or has failed in a subtransaction that has not been rolled back
/// yet.
#[inline]
pub fn end(query: QueryDesc<'_>) {
    if !noted::is_idle()
        && let Some(state) = query.estate()
    {
        // SAFETY: the query has not been ended.
        unsafe { watched::remove(state.as_ptr()) };
    }
}
