//! How long a snapshot sees its rows.

/// Returns true if the server may remove rows that a snapshot sees, and raise an error when its query reads them
/// (`old_snapshot_threshold`). From 17 on there is no such setting.
#[inline]
pub fn snapshots_grow_old() -> bool {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    {
        // SAFETY: a plain global of the backend, set when the server starts.
        unsafe { pgrx::pg_sys::old_snapshot_threshold >= 0 }
    }
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        false
    }
}
