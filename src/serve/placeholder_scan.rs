//! The Custom Scan of a placeholder, a plan that stands for a stored answer. It is never run: the plan is replaced when
//! its query is started.

use pgrx::pg_sys;

use crate::error::CacheError;
use crate::pg::error_passing::edge;

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
