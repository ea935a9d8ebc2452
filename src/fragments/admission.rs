//! Decides whether a statement is worth being combined of parts: statements of its form were executed before, and took
//! long.
//! Reads shared memory. State of this backend: forms of which a plan was made to wait.

use std::cell::Cell;

use arrow_cache_core::{CacheKey, Speed};
use pgrx::pg_sys;

use crate::pg::backend_local::Local;
use crate::query::hashes::FormId;
use crate::shmem::SharedStore;
use crate::{settings, shmem};

/// Combined runs after which it shows, since the first of them have to store the parts, whether they are quicker than
/// plain ones.
const RUNS_TO_LEARN: u32 = 8;
/// If they are not, one in so many executions is combined nevertheless, the fewer the slower it is: more parts may be
/// stored by then.
const TRY_EVERY: u32 = 16;

/// What being combined of parts is worth to statements of a form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Worth {
    /// They are to be combined.
    Combined,
    /// They are not.
    Plain,
    /// How long they take is not known yet.
    Unknown,
}

/// What is known of statements of this form. A plan that is kept needs two runs to go by: the first one may have been
/// slow by itself. Not combined while the session's temporary files are limited: parts with many groups are sorted, and
/// their rows once more.
pub fn worth(form: FormId, is_kept: bool) -> Worth {
    // SAFETY: a plain global of the backend.
    if unsafe { pg_sys::temp_file_limit >= 0 } {
        return Worth::Plain;
    }
    if settings::debug_force_fragments() {
        return Worth::Combined;
    }
    let Some(store) = shmem::store() else { return Worth::Plain };
    let Speed { executions, combined_runs, plain_micros, combined_micros, .. } = store.speed(form.0);
    let plain_runs = executions - combined_runs;
    if combined_runs == 0 && plain_runs < if is_kept { 2 } else { 1 } {
        return Worth::Unknown;
    }
    let is_slow = plain_micros > 0 && u128::from(plain_micros) >= settings::fragment_min_time().as_micros();
    // How many times as long as a plain one a combined run takes: planning all parts may take much longer than a run.
    let times =
        combined_micros.checked_div(plain_micros).and_then(|times| u32::try_from(times).ok()).unwrap_or(u32::MAX);
    let has_paid = combined_micros <= plain_micros || combined_runs < RUNS_TO_LEARN;
    let is_tried = || !is_kept && executions.is_multiple_of(TRY_EVERY.saturating_mul(times.max(1)));
    let is_worth = is_slow && (has_paid || is_tried());
    if is_worth { Worth::Combined } else { Worth::Plain }
}

/// How many forms are remembered of which plans were made to wait.
const FORMS: usize = 32;
static WAITED: Local<Cell<[(u64, u8); FORMS]>> = Local::new(Cell::new([(0, 0); FORMS]));

/// Returns true if a plan of this form may wait until it is known what it is worth: twice in a session, since that may
/// never be known of statements that are always bypassed.
pub fn may_wait(form: FormId) -> bool {
    let mut forms = WAITED.get();
    let place = &mut forms[form.0 as usize % FORMS];
    let waited = if place.0 == form.0 { place.1 } else { 0 };
    *place = (form.0, 2.min(waited + 1));
    WAITED.set(forms);
    waited < 2
}

/// Returns true if the question of a statement's zones, by this key, was asked before. If not, it is noted: parts of
/// one that is never asked again would be computed and stored in vain.
pub fn was_asked(store: &SharedStore, key: CacheKey) -> bool {
    let is_known = store.speed(key.0.lo).executions > 0;
    if !is_known {
        store.note_run(key.0.lo, 0, false);
    }
    is_known || settings::debug_force_fragments()
}

/// Returns true if a table with so many leaves is worth being taken apart.
pub fn has_enough(leaves: usize) -> bool {
    leaves >= if settings::debug_force_fragments() { 1 } else { 2 }
}
