//! The Custom Scan that reads a stored entry.

use pgrx::pg_sys::{self, NodeTag};

use super::explain;
use super::hold::Hold;

/// The plan node: PostgreSQL's part first, ours behind it. Never copied: it exists only in plans
/// that `stub` made for one execution.
#[repr(C)]
pub struct CachedScan {
    /// What PostgreSQL sees.
    pub custom: pg_sys::CustomScan,
    /// The pinned entry.
    pub hold: *mut Hold,
}

/// The executor node.
#[repr(C)]
pub struct CachedScanState {
    custom: pg_sys::CustomScanState,
    /// The pinned entry.
    pub hold: *mut Hold,
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

/// Makes the node type known by name.
pub fn register() {
    // SAFETY: a constant table, registered once while libraries are preloaded.
    unsafe { pg_sys::RegisterCustomScanMethods(methods()) };
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

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn begin(_node: *mut pg_sys::CustomScanState, _estate: *mut pg_sys::EState, _flags: i32) {}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn next(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the node was made by `create_state`; its slot is a virtual one with one value per
    // column of the entry. By-reference values live until the next row, as a slot's must.
    unsafe {
        let slot = (*node).ss.ss_ScanTupleSlot;
        pg_sys::ExecClearTuple(slot);
        let hold = &mut *(*node.cast::<CachedScanState>()).hold;
        let natts = (*(*slot).tts_tupleDescriptor).natts as usize;
        let (values, nulls) = slot_values(slot, natts);
        let forward = (*(*node).ss.ps.state).es_direction != pg_sys::ScanDirection::BackwardScanDirection;
        let filled = hold
            .rows()
            .is_some_and(|rows| if forward { rows.next(values, nulls) } else { rows.previous(values, nulls) });
        if filled {
            pg_sys::ExecStoreVirtualTuple(slot);
        }
        slot
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

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the node was made by `create_state`; the hold lives in the context of the query
    // descriptor, which is still there.
    unsafe { (*(*node.cast::<CachedScanState>()).hold).release() };
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
