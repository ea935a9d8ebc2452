//! The Custom Scan that reads a stored entry.

use pgrx::pg_sys::{self, NodeTag};

use super::explain;
use super::hold::Hold;
use super::rerun;
use super::straight::{self, Run};
use crate::error::{CacheError, or_raise};
use crate::pg::error_passing::edge;
use crate::pg::lists::{nodes, oids};
use crate::shmem;

/// The plan node: PostgreSQL's part first, ours behind it. Never copied: it exists only in plans
/// that `stub` made for one execution.
#[repr(C)]
pub struct CachedScan {
    /// What PostgreSQL sees.
    pub custom: pg_sys::CustomScan,
    /// The pinned entry.
    pub hold: *mut Hold,
    /// The tables to be held open: OIDs.
    pub tables: *mut pg_sys::List,
    /// The indexes to be held open: OIDs.
    pub indexes: *mut pg_sys::List,
    /// The real plan, if it is started beside the scan; else null. Lives as long as its portal.
    pub real: *mut pg_sys::PlannedStmt,
}

/// The executor node.
#[repr(C)]
pub struct CachedScanState {
    custom: pg_sys::CustomScanState,
    /// The pinned entry.
    pub hold: *mut Hold,
    /// The real plan, if it was started beside the scan; else null.
    real: *mut pg_sys::QueryDesc,
    /// It runs in the place of the entry.
    reruns: bool,
    /// The tables and indexes that are held open.
    open: *mut pg_sys::List,
    /// The executor's run that is under way.
    run: Run,
}

struct ScanMethods(pg_sys::CustomScanMethods);
struct ExecMethods(pg_sys::CustomExecMethods);

// SAFETY: constant tables of function pointers and literals.
unsafe impl Sync for ScanMethods {}
// SAFETY: as above.
unsafe impl Sync for ExecMethods {}

static SCAN_METHODS: ScanMethods = ScanMethods(pg_sys::CustomScanMethods {
    CustomName: c"ArrowCache".as_ptr(),
    CreateCustomScanState: Some(create_state),
});

/// Placeholders are never run: they are replaced when their query is started.
static PLACEHOLDER_METHODS: ScanMethods = ScanMethods(pg_sys::CustomScanMethods {
    CustomName: c"ArrowCachePlaceholder".as_ptr(),
    CreateCustomScanState: Some(run_placeholder),
});

static EXEC_METHODS: ExecMethods = ExecMethods(pg_sys::CustomExecMethods {
    CustomName: c"ArrowCache".as_ptr(),
    BeginCustomScan: Some(begin),
    ExecCustomScan: Some(next),
    EndCustomScan: Some(end),
    ReScanCustomScan: Some(rescan),
    MarkPosCustomScan: None,
    RestrPosCustomScan: None,
    EstimateDSMCustomScan: None,
    InitializeDSMCustomScan: None,
    ReInitializeDSMCustomScan: None,
    InitializeWorkerCustomScan: None,
    ShutdownCustomScan: None,
    ExplainCustomScan: Some(explain::show),
});

/// The method table that plan nodes point to.
pub fn methods() -> *const pg_sys::CustomScanMethods {
    &raw const SCAN_METHODS.0
}

/// The method table that placeholders point to.
pub fn placeholder_methods() -> *const pg_sys::CustomScanMethods {
    &raw const PLACEHOLDER_METHODS.0
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn run_placeholder(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // Somebody has started the plan around the hooks.
    CacheError::PlaceholderRun.raise()
}

/// Makes the node type known by name.
pub fn register() {
    // SAFETY: a constant table, registered once while libraries are preloaded.
    unsafe {
        pg_sys::RegisterCustomScanMethods(methods());
        pg_sys::RegisterCustomScanMethods(placeholder_methods());
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn create_state(scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: only nodes made by `stub` have our methods, so `scan` is the head of a CachedScan.
    unsafe {
        let state: *mut CachedScanState = pg_sys::palloc0(std::mem::size_of::<CachedScanState>()).cast();
        (*state).custom.ss.ps.type_ = NodeTag::T_CustomScanState;
        (*state).custom.methods = &raw const EXEC_METHODS.0;
        (*state).hold = (*scan.cast::<CachedScan>()).hold;
        state.cast()
    }
}

/// Holds open what the real plan would, so that the server refuses what it would refuse: TRUNCATE or ALTER TABLE in this
/// session between two fetches, say. Or starts that plan, whose errors jump over this frame.
unsafe extern "C-unwind" fn begin(node: *mut pg_sys::CustomScanState, estate: *mut pg_sys::EState, flags: i32) {
    // SAFETY: the node was made by `create_state` from a CachedScan; planning has locked the tables, and indexes are locked
    // as any scan locks them. The references are given back by `end`, or by the resource owner of the portal.
    unsafe {
        let scan = node.cast::<CachedScanState>();
        let plan = (*node).ss.ps.plan.cast::<CachedScan>();
        edge(|| {
            let locks = [((*plan).tables, pg_sys::NoLock), ((*plan).indexes, pg_sys::AccessShareLock)];
            for (relations, lock) in locks {
                for relation in oids(relations) {
                    let open = pg_sys::relation_open(relation, lock as _);
                    (*scan).open = pg_sys::lappend((*scan).open, open.cast());
                }
            }
        });
        if !(*plan).real.is_null() && flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY == 0 {
            (*scan).real = rerun::start(estate, (*plan).real);
        }
    }
}

/// The next row: of the entry, or of the real plan if a guarded hit turns out not to hold. That plan's errors jump over
/// this frame.
unsafe extern "C-unwind" fn next(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the node was made by `create_state`; its slot is a virtual one with one value per
    // column of the entry. By-reference values live until the next row, as a slot's must.
    unsafe {
        let scan = node.cast::<CachedScanState>();
        let slot = (*node).ss.ss_ScanTupleSlot;
        if !(*scan).reruns {
            (*scan).reruns = !(*scan).real.is_null() && edge(|| rerun::must_rerun(&mut *(*scan).hold));
        }
        if !(*scan).reruns {
            if !straight::deliver(&raw mut (*scan).run, (*scan).hold, &raw const (*node).ss.ps) {
                edge(|| next_of_entry(scan, slot));
            } else {
                edge(|| pg_sys::ExecClearTuple(slot));
            }
            return slot;
        }
        let row = rerun::next((*scan).real);
        edge(|| {
            pg_sys::ExecClearTuple(slot);
            if !row.is_null() {
                let natts = (*(*slot).tts_tupleDescriptor).natts as usize;
                let (values, nulls) = slot_values(slot, natts);
                let (row_values, row_nulls) = slot_values(row, natts);
                values.copy_from_slice(row_values);
                nulls.copy_from_slice(row_nulls);
                pg_sys::ExecStoreVirtualTuple(slot);
            }
        });
        slot
    }
}

/// Puts the entry's next row into the slot, or nothing at its end.
///
/// # Safety
/// The node must be one of `create_state`, the slot its own.
unsafe fn next_of_entry(node: *mut CachedScanState, slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: as the caller promises.
    unsafe {
        pg_sys::ExecClearTuple(slot);
        let hold = &mut *(*node).hold;
        let natts = (*(*slot).tts_tupleDescriptor).natts as usize;
        let (values, nulls) = slot_values(slot, natts);
        let forward = (*(*node).custom.ss.ps.state).es_direction != pg_sys::ScanDirection::BackwardScanDirection;
        let filled =
            hold.rows().map(|rows| if forward { rows.next(values, nulls) } else { rows.previous(values, nulls) });
        if filled.is_some_and(or_raise) {
            pg_sys::ExecStoreVirtualTuple(slot);
        }
    }
}

/// Is the query answered from an entry? Looks at two words and calls nothing.
///
/// # Safety
/// `query_desc` must be a started query.
pub unsafe fn is_served(query_desc: *const pg_sys::QueryDesc) -> bool {
    // SAFETY: as the caller promises; only our nodes have our methods.
    unsafe {
        let state = (*query_desc).planstate;
        !state.is_null()
            && (*state).type_ == NodeTag::T_CustomScanState
            && std::ptr::eq((*state.cast::<pg_sys::CustomScanState>()).methods, &raw const EXEC_METHODS.0)
    }
}

/// Notes that up to `limit` rows (0: all) of a query are going to be read.
///
/// # Safety
/// `query_desc` must be a query that `is_served`.
pub unsafe fn note_run(query_desc: *const pg_sys::QueryDesc, direction: pg_sys::ScanDirection::Type, limit: u64) {
    // SAFETY: as the caller promises.
    unsafe {
        let custom: *mut pg_sys::CustomScanState = (*query_desc).planstate.cast();
        let scan = custom.cast::<CachedScanState>();
        (*scan).run = Run::new(query_desc, direction, limit);
        let hold = &mut *(*scan).hold;
        if hold.guard().is_none() {
            return;
        }
        let (Some(pin), Some(store)) = (hold.pin(), shmem::store()) else { return };
        let rows = store.view(&pin).rows();
        if let Some(guard) = hold.guard() {
            guard.note_limit(limit, rows);
        }
    }
}

/// The value arrays of a slot with `natts` attributes, to be written.
///
/// # Safety
/// The slot must be valid and used by nobody else meanwhile.
pub unsafe fn slot_values<'a>(
    slot: *mut pg_sys::TupleTableSlot,
    natts: usize,
) -> (&'a mut [pg_sys::Datum], &'a mut [bool]) {
    if natts == 0 {
        return (&mut [], &mut []);
    }
    // SAFETY: as the caller promises; both arrays have one element per attribute.
    unsafe {
        (
            std::slice::from_raw_parts_mut((*slot).tts_values, natts),
            std::slice::from_raw_parts_mut((*slot).tts_isnull, natts),
        )
    }
}

unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the node was made by `create_state`; the hold lives in the context of the query
    // descriptor, which is still there.
    unsafe {
        let scan = node.cast::<CachedScanState>();
        edge(|| {
            (*(*scan).hold).release();
            for relation in nodes::<pg_sys::RelationData>((*scan).open) {
                pg_sys::relation_close(relation, pg_sys::NoLock as _);
            }
        });
        if !(*scan).real.is_null() {
            rerun::end((*scan).real);
        }
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the node was made by `create_state`.
    unsafe {
        if let Some(rows) = (*(*node.cast::<CachedScanState>()).hold).rows() {
            rows.rewind();
        }
    }
}

// PostgreSQL sees only the head of each node.
const _: () = assert!(std::mem::offset_of!(CachedScan, custom) == 0);
const _: () = assert!(std::mem::offset_of!(CachedScanState, custom) == 0);
