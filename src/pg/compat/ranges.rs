//! What the server's cache tells of range types.

use pgrx::pg_sys;

/// The operator family with whose operators the planner compares elements with the bounds of a constant range; `None` before 17, when it
/// calls the functions of the range type only.
pub fn family_of_bounds(range: &pg_sys::TypeCacheEntry) -> Option<pg_sys::Oid> {
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    {
        Some(range.rng_opfamily)
    }
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    {
        let _ = range;
        None
    }
}
