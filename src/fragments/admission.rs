//! Is a statement worth being combined of parts? Only if statements of its form were executed before, and took long. Reads shared memory;
//! keeps nothing.

use arrow_cache_core::Speed;
use pgrx::pg_sys;

use crate::query::hashes::FormId;
use crate::{settings, shmem};

/// Combined runs after which it shows, since the first of them have to store the parts, whether they are quicker than plain ones.
const RUNS_TO_LEARN: u32 = 8;
/// If they are not, one in so many executions is combined nevertheless: more parts may be stored by then.
const TRY_EVERY: u32 = 16;

/// May the session's temporary files be too small for another plan than the server's? Parts with many groups are sorted, and their rows once more; the part of a
/// query without the clock may sort wider rows than the query.
pub fn limits_files() -> bool {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::temp_file_limit >= 0 }
}

/// Are statements of this form worth being combined of parts? Not while the session's temporary files are limited.
pub fn is_worth(form: FormId) -> bool {
    if limits_files() {
        return false;
    }
    if settings::debug_force_fragments() {
        return true;
    }
    let Some(store) = shmem::store() else { return false };
    let Speed { executions, combined_runs, plain_micros, combined_micros, .. } = store.speed(form.0);
    let is_slow = plain_micros > 0 && u128::from(plain_micros) >= settings::fragment_min_time().as_micros();
    let has_paid = combined_micros <= plain_micros || combined_runs < RUNS_TO_LEARN;
    is_slow && (has_paid || executions.is_multiple_of(TRY_EVERY))
}

/// Is a table with so many leaves worth being taken apart?
pub fn has_enough(leaves: usize) -> bool {
    leaves >= if settings::debug_force_fragments() { 1 } else { 2 }
}
