//! The Custom Scan of a placeholder, a plan that stands for a stored answer. It is never run: the plan is replaced when its query is
//! started. It carries one address, which only whoever made the placeholder knows the meaning of.

use std::ffi::c_void;
use std::mem::offset_of;

use pgrx::pg_sys::{self, NodeTag};

use crate::error::CacheError;
use crate::pg::error_passing::edge;
use crate::pg::lists::integers;
use crate::pg::memory_context::room_for;
use crate::pg::tree::{Tree, child};

struct ScanMethods(pg_sys::CustomScanMethods);

// SAFETY: a constant table of function pointers and literals.
unsafe impl Sync for ScanMethods {}

static METHODS: ScanMethods = ScanMethods(pg_sys::CustomScanMethods {
    CustomName: c"ArrowCachePlaceholder".as_ptr(),
    CreateCustomScanState: Some(run_placeholder),
});

/// The method table that placeholders point to.
pub fn methods() -> *const pg_sys::CustomScanMethods {
    &raw const METHODS.0
}

/// Makes the node type known by name.
pub fn register() {
    // SAFETY: a constant table, registered once while libraries are preloaded.
    unsafe { kept!(pg_sys::RegisterCustomScanMethods(methods())) };
}

unsafe extern "C-unwind" fn run_placeholder(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    let body = || {
        // Somebody has started the plan around the hooks.
        CacheError::placeholder_run().raise()
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

/// An address as a list that copying a plan leaves as it is: two numbers. In the current memory context. `None` when there is no memory.
pub fn list_of_address(address: *mut c_void) -> Option<*mut pg_sys::List> {
    /// A list with its cells behind it, as the server allocates short ones (nodes/pg_list.h).
    #[repr(C)]
    struct Two {
        list: pg_sys::List,
        cells: [pg_sys::ListCell; 2],
    }
    const { assert!(offset_of!(Two, cells) == offset_of!(pg_sys::List, initial_elements)) };
    let address = address as usize as u64;
    let cells = [(address >> 32) as i32, address as i32].map(|int_value| pg_sys::ListCell { int_value });
    // SAFETY: a live context, and room for what is written.
    unsafe {
        let place = room_for::<Two>(pg_sys::CurrentMemoryContext)?;
        let list = pg_sys::List {
            type_: NodeTag::T_IntList,
            length: 2,
            max_length: 2,
            elements: (&raw mut (*place).cells).cast(),
            ..pg_sys::List::default()
        };
        place.write(Two { list, cells });
        Some(place.cast())
    }
}

/// What a plan stands for, if it is a placeholder.
pub fn stands_for(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<*mut c_void> {
    let scan = child!(plan.planTree)?.as_a::<pg_sys::CustomScan>()?;
    if !std::ptr::eq(scan.methods, methods()) {
        return None;
    }
    // SAFETY: only placeholders have these methods, and they have a list of integers here.
    let mut words = unsafe { integers(scan.custom_private) }.map(|word| u64::from(word.cast_unsigned()));
    let address = words.next()? << 32 | words.next()?;
    Some(address as usize as *mut c_void)
}
