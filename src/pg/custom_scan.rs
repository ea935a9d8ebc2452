//! Nodes that a library provides for plans (Custom Scan): what all kinds of them have in common.

use std::ffi::{CStr, c_void};
use std::mem::offset_of;

use pgrx::pg_sys::{self, Datum, NodeTag};

use super::lists::node_at;
use super::memory_context::room_for;

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

    /// Such a scan, like `custom`, in the current memory context. It hands a pointer and a list to the node that runs,
    /// as does a copy of it: other libraries may start a copy of a plan. `None` when there is no memory.
    pub fn planned(
        &'static self,
        custom: pg_sys::CustomScan,
        pointer: *mut c_void,
        list: *mut pg_sys::List,
    ) -> Option<*mut pg_sys::Plan> {
        /// The node with what the server copies with it, in one chunk: a hit makes it anew.
        #[repr(C)]
        struct Planned {
            custom: pg_sys::CustomScan,
            handed: pg_sys::List,
            cells: [pg_sys::ListCell; 2],
            pointer: pg_sys::Const,
        }
        const { assert!(offset_of!(Planned, cells) - offset_of!(Planned, handed) == size_of::<pg_sys::List>()) };
        // SAFETY: a live context, and room for what is written. The list has its cells behind it, as the server
        // allocates short ones.
        unsafe {
            let place = room_for::<Planned>(pg_sys::CurrentMemoryContext)?;
            let custom =
                pg_sys::CustomScan { methods: self.methods(), custom_private: &raw mut (*place).handed, ..custom };
            let handed = pg_sys::List {
                type_: NodeTag::T_List,
                length: 2,
                max_length: 2,
                elements: (&raw mut (*place).cells).cast(),
                ..Default::default()
            };
            let cells = [&raw mut (*place).pointer as *mut c_void, list.cast()];
            let cells = cells.map(|node| pg_sys::ListCell { ptr_value: node });
            // A constant by value, of which the server copies the value.
            let pointer = pg_sys::Const {
                xpr: pg_sys::Expr { type_: NodeTag::T_Const },
                consttype: pg_sys::INT8OID,
                consttypmod: -1,
                constlen: size_of::<Datum>() as i32,
                constvalue: Datum::from(pointer),
                constbyval: true,
                location: -1,
                ..Default::default()
            };
            place.write(Planned { custom, handed, cells, pointer });
            Some(place.cast())
        }
    }

    /// What such a scan of a plan hands to the node that runs.
    ///
    /// # Safety
    /// A scan that `planned` has made, or a copy of it.
    pub unsafe fn handed(scan: *const pg_sys::CustomScan) -> (*mut c_void, *mut pg_sys::List) {
        // SAFETY: the caller's promise.
        unsafe {
            let handed = (*scan).custom_private;
            let pointer = node_at::<pg_sys::Const>(handed, 0)
                .map_or(std::ptr::null_mut(), |value| (*value).constvalue.cast_mut_ptr());
            (pointer, node_at(handed, 1).unwrap_or(std::ptr::null_mut()))
        }
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
