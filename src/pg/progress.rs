//! How far a COPY is, as `pg_stat_progress_copy` shows it. This backend's own place among the statistics.

use pgrx::pg_sys;

/// Shows that a COPY has sent so many rows, and bytes, in all.
pub fn note_copied(rows: i64, bytes: i64) {
    // SAFETY: writes to this backend's own place among the statistics.
    unsafe {
        kept!(pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_COPY_BYTES_PROCESSED as i32, bytes));
        kept!(pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_COPY_TUPLES_PROCESSED as i32, rows));
    }
}

/// The bytes that it shows.
pub fn copied_bytes() -> i64 {
    // SAFETY: this backend's own place, which only it writes to; null if it has none.
    unsafe {
        let own = pg_sys::MyBEEntry.as_ref();
        own.map_or(0, |own| own.st_progress_param[pg_sys::PROGRESS_COPY_BYTES_PROCESSED as usize])
    }
}
