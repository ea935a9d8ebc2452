//! The way back from a hit. A portal is answered from an entry when it is started (at Bind), and read
//! later (at Execute); in between another portal may change settings that the answer depends on, and anybody may
//! change definitions that no lock protects (labels of enums, text search). Executing would notice. So, before its first
//! row, a guarded scan looks again, and if something has changed, or may change while the portal is suspended, it runs
//! the real plan in its own place.
//!
//! That plan is started with the scan, since much of what the server does is done then: permissions are checked, partitions are left
//! out, functions and types are looked up, tables are opened.

use arrow_cache_core::{Pin, Reason};
use pgrx::pg_sys;
use std::ffi::CString;

use super::hold::Hold;
use crate::invalidation::own_writes;
use crate::pg::error_passing::direct;
use crate::pg::server;
use crate::query::environment;
use crate::query::hashes::EnvironmentHash;
use crate::report::{decision_log, tally};
use crate::session::{self, Status};
use crate::shmem;
use crate::shmem::SharedStore;

/// What a guarded scan has to check before its first row.
pub struct Guard {
    /// The settings that the entry was chosen for.
    pub environment: EnvironmentHash,
    /// The custom settings among them.
    pub settings: Vec<CString>,
    /// Number of the statement.
    pub statement: u64,
    /// The real plan, which lives as long as its portal.
    pub plan: *mut pg_sys::PlannedStmt,
    /// The portal will be left in the middle of its rows, as far as is known.
    pub suspends: bool,
    /// How often the session had changed a definition by then.
    pub definition_changes: u64,
    /// The relations of the plan, ascending, if there are foreign tables among them: these are read when the first row is asked for.
    pub foreign: Vec<u32>,
}

impl Guard {
    /// Notes that up to `limit` rows (0: all) of an entry with `rows` rows are going to be read.
    pub fn note_limit(&mut self, limit: u64, rows: u64) {
        self.suspends = limit != 0 && limit <= rows;
    }

    fn holds(&self, store: &SharedStore, pin: &Pin) -> bool {
        !self.suspends
            && store.is_current(pin)
            && session::definition_changes() == self.definition_changes
            && (self.foreign.is_empty() || own_writes::check_own_writes(&self.foreign).is_ok())
            && environment::hash(store.seed(), &self.settings) == Ok(self.environment)
    }
}

/// Settles a guarded hit: counts it, or says that the real plan has to run instead.
pub fn must_rerun(hold: &mut Hold) -> bool {
    // SAFETY: the hold keeps its pin, and this copy is not released.
    let (Some(guard), Some(store), Some(pin)) = (hold.take_guard(), shmem::store(), unsafe { hold.pin() }) else {
        return false;
    };
    if guard.holds(&store, &pin) {
        tally::count_hit(&store, &pin);
        // SAFETY: the plan of the query that was hit outlives its execution.
        unsafe { decision_log::note(Status::Hit, guard.plan) };
        return false;
    }
    hold.release();
    tally::count_bypass(&store, Reason::SettingsInCursor);
    let status = Status::Bypass(Reason::SettingsInCursor);
    session::set_status_of(guard.statement, status);
    // SAFETY: as above.
    unsafe { decision_log::note(status, guard.plan) };
    true
}

/// Starts the real plan under the snapshot and with the parameters of the scan, which is being started. What it raises jumps over this
/// frame.
///
/// # Safety
/// `state` must be the executor state of the scan, the plan a valid one for the same query.
pub unsafe fn start(state: *const pg_sys::EState, plan: *mut pg_sys::PlannedStmt) -> *mut pg_sys::QueryDesc {
    // SAFETY: as the caller promises. Other libraries see this execution start already, so they are not told again.
    unsafe {
        let query_desc = direct!(server::CreateQueryDesc(
            plan,
            (*state).es_sourceText,
            (*state).es_snapshot,
            std::ptr::null_mut(),
            pg_sys::None_Receiver,
            (*state).es_param_list_info,
            std::ptr::null_mut(),
            0,
        ));
        direct!(server::standard_ExecutorStart(query_desc, 0));
        query_desc
    }
}

/// The next row of a plan that `start` has started, without its junk columns; null at the end. Raises as `start` does.
///
/// # Safety
/// `query_desc` must come from `start`.
pub unsafe fn next(query_desc: *mut pg_sys::QueryDesc) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as the caller promises; the steps of the server's own ExecutePlan.
    unsafe {
        let state = (*query_desc).estate;
        let per_tuple = (*state).es_per_tuple_exprcontext;
        if !per_tuple.is_null() {
            direct!(server::MemoryContextReset((*per_tuple).ecxt_per_tuple_memory));
        }
        let node = (*query_desc).planstate;
        let Some(step) = (*node).ExecProcNode else { return std::ptr::null_mut() };
        let slot = direct!(step(node));
        if slot.is_null() || (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0 {
            return std::ptr::null_mut();
        }
        let filter = (*state).es_junkFilter;
        let slot = if filter.is_null() { slot } else { direct!(server::ExecFilterJunk(filter, slot)) };
        let natts = (*(*slot).tts_tupleDescriptor).natts;
        if i32::from((*slot).tts_nvalid) < natts {
            direct!(server::slot_getsomeattrs_int(slot, natts));
        }
        slot
    }
}

/// Ends a plan that `start` has started. Raises as `start` does.
///
/// # Safety
/// `query_desc` must come from `start` and is gone afterwards.
pub unsafe fn end(query_desc: *mut pg_sys::QueryDesc) {
    // SAFETY: as the caller promises.
    unsafe {
        direct!(server::standard_ExecutorFinish(query_desc));
        direct!(server::standard_ExecutorEnd(query_desc));
        direct!(server::FreeQueryDesc(query_desc));
    }
}
