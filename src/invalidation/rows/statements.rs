//! Statements that change rows of tracked relations, from their start to their end. The node that changes the rows asks
//! the node below for each of them; so the node below tells when a row is to be changed next. Keeps nothing: `watched`
//! does.

use pgrx::pg_sys::{self, NodeTag};

use super::watched::Node;
use super::{expected, noted, routed, routine, watched};
use crate::pg::backend;
use crate::pg::error_passing::edge;
use crate::pg::lists::nodes;
use crate::pg::next_row;
use crate::pg::query_desc::QueryDesc;
use crate::settings;
use crate::shmem::{self, SharedStore};

/// Watches the nodes of a query that change rows of tracked relations. To be called when the query has been started,
/// and before the first row.
pub fn begin(query: QueryDesc<'_>) {
    let Some(state) = query.estate() else { return };
    let store = shmem::store().filter(|store| !store.registry().usage().is_none());
    let Some(store) = store.filter(|_| settings::precise_invalidation()) else { return };
    let top = query.plan_state();
    // SAFETY: the state of a query is valid with its nodes until the query is ended.
    unsafe {
        if !top.is_null() && (*top).type_ == NodeTag::T_ModifyTableState {
            watch(&store, top.cast());
        }
        // Those of WITH clauses.
        for node in nodes::<pg_sys::PlanState>(state.as_ref().es_auxmodifytables) {
            watch(&store, node.cast());
        }
    }
}

/// Watches a node if it may change rows of tracked relations.
///
/// # Safety
/// A valid node of a query that was started.
unsafe fn watch(store: &SharedStore, state: *mut pg_sys::ModifyTableState) {
    // SAFETY: the caller's promise; the targets are open.
    unsafe {
        let targets = std::slice::from_raw_parts((*state).resultRelInfo, (*state).mt_nrels as usize);
        let routes = !(*state).mt_partition_tuple_routing.is_null();
        let below = (*state).ps.lefttree;
        // The topmost node is listed as well if its query is one that a rule has added.
        let may_be_tracked = match routes {
            // Which leaves the rows go to is not known yet.
            true => routed::may_be_tracked(store, (*(*state).rootResultRelInfo).ri_RelationDesc),
            false => targets.iter().any(|target| {
                store.registry().may_track(backend::database(), (*target.ri_RelationDesc).rd_id.to_u32())
            }),
        };
        if !may_be_tracked {
            return;
        }
        let Some(next_row) = next_row::own_routine(below, next_watched_row) else { return };
        let is_alone = targets.len() == 1 && !routes;
        let node = Node { query: (*state).ps.state, state, below, next_row, is_alone, in_vain: 0 };
        noted::begin();
        // Without memory for that, its changes are not noted.
        if watched::add_node(node).is_ok() {
            next_row::put(below, next_watched_row);
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
        let (node, next_row) = edge(|| watched::before_row(below)).unwrap_unchecked();
        let slot = direct!(next_row(below));
        if !slot.is_null() && u32::from((*slot).tts_flags) & pg_sys::TTS_FLAG_EMPTY == 0 {
            edge(|| expected::expect_change(node, slot, routine::routine()));
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
