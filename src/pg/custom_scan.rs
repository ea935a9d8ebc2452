//! Nodes that a library provides for plans (Custom Scan): what all kinds of them have in common.

use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag};

type Explain = unsafe extern "C-unwind" fn(*mut pg_sys::CustomScanState, *mut pg_sys::List, *mut pg_sys::ExplainState);
type Step<R> = unsafe extern "C-unwind" fn(*mut pg_sys::CustomScanState) -> R;

/// The functions that the server calls for a kind of scans. What they raise jumps over their frames.
pub struct Steps {
    /// Makes the node that runs of a node of the plan.
    pub create: unsafe extern "C-unwind" fn(*mut pg_sys::CustomScan) -> *mut pg_sys::Node,
    pub begin: unsafe extern "C-unwind" fn(*mut pg_sys::CustomScanState, *mut pg_sys::EState, i32),
    pub next: Step<*mut pg_sys::TupleTableSlot>,
    pub end: Step<()>,
    pub rescan: Step<()>,
    pub explain: Option<Explain>,
}

/// A kind of scans: the tables that its nodes point to.
pub struct ScanKind {
    planned: pg_sys::CustomScanMethods,
    running: pg_sys::CustomExecMethods,
}

// SAFETY: constant tables of function pointers and literals.
unsafe impl Sync for ScanKind {}

impl ScanKind {
    /// A kind of scans with this name.
    pub const fn new(name: &'static CStr, steps: &Steps) -> Self {
        Self {
            planned: pg_sys::CustomScanMethods { CustomName: name.as_ptr(), CreateCustomScanState: Some(steps.create) },
            running: pg_sys::CustomExecMethods {
                CustomName: name.as_ptr(),
                BeginCustomScan: Some(steps.begin),
                ExecCustomScan: Some(steps.next),
                EndCustomScan: Some(steps.end),
                ReScanCustomScan: Some(steps.rescan),
                MarkPosCustomScan: None,
                RestrPosCustomScan: None,
                EstimateDSMCustomScan: None,
                InitializeDSMCustomScan: None,
                ReInitializeDSMCustomScan: None,
                InitializeWorkerCustomScan: None,
                ShutdownCustomScan: None,
                ExplainCustomScan: steps.explain,
            },
        }
    }

    /// Makes the kind known by name, so that plans with such a scan can be read.
    pub fn register(&'static self) {
        // SAFETY: a constant table, registered once while libraries are preloaded.
        unsafe { kept!(pg_sys::RegisterCustomScanMethods(self.methods())) };
    }

    /// What such a scan of a plan points to.
    pub const fn methods(&'static self) -> *const pg_sys::CustomScanMethods {
        &raw const self.planned
    }

    /// A node that runs, of zeroes behind its head. What `palloc0` raises jumps over this frame.
    ///
    /// # Safety
    /// Zeroes must be a valid `S`, which begins with a `CustomScanState`.
    pub unsafe fn new_state<S>(&'static self) -> *mut S {
        // SAFETY: the caller's promise.
        unsafe {
            let state: *mut S = direct!(pg_sys::palloc0(size_of::<S>())).cast();
            let head = state.cast::<pg_sys::CustomScanState>();
            (*head).ss.ps.type_ = NodeTag::T_CustomScanState;
            (*head).methods = &raw const self.running;
            state
        }
    }

    /// Returns true if a node of a plan under way is such a scan. Reads two words and calls nothing.
    ///
    /// # Safety
    /// A valid node.
    pub unsafe fn is_of(&'static self, node: *const pg_sys::PlanState) -> bool {
        // SAFETY: the caller's promise; the tag tells the type.
        unsafe {
            (*node).type_ == NodeTag::T_CustomScanState
                && std::ptr::eq((*node.cast::<pg_sys::CustomScanState>()).methods, &raw const self.running)
        }
    }
}
