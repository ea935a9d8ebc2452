//! Which hits are executed as well, and what must stay the same for a comparison to make sense.

use arrow_cache_core::Counter;
use pgrx::pg_sys;

use crate::query::eligibility::QueryTraits;
use crate::serve::StartedUnder;
use crate::settings;
use crate::shmem::{self, SharedStore};

/// Under which conditions a stored answer and an execution can be compared.
pub struct Conditions {
    /// No two right answers differ.
    repeatable: bool,
    /// What the query was started under.
    started: StartedUnder,
}

impl Conditions {
    /// Counts a hit that was drawn. Returns the conditions if its answer can be compared.
    pub fn counted(self, store: &SharedStore) -> Option<Self> {
        store.counters().add(store.stripe(), Counter::VerifySamples, 1);
        self.repeatable.then_some(self)
    }

    /// Returns true if settings and definitions are those that the query was started under.
    pub(super) fn are_met(&self) -> bool {
        shmem::store().is_some_and(|store| self.started.check(&store).is_ok())
    }
}

/// The conditions of a comparison, if a hit is drawn to be executed as well. `is_whole` tells whether no LIMIT has left
/// rows out of its answer.
pub fn draw(traits: &QueryTraits, started: &StartedUnder, is_whole: impl FnOnce() -> bool) -> Option<Conditions> {
    is_drawn().then(|| Conditions { repeatable: traits.repeatable && is_whole(), started: started.clone() })
}

/// Draws by chance, at the rate that is set.
#[inline]
pub(super) fn is_drawn() -> bool {
    let rate = settings::verify_sample_rate();
    // SAFETY: the backend's own generator, which random() does not use; it gives numbers from 0 to below 1.
    rate > 0.0 && unsafe { kept!(pg_sys::pg_prng_double(&raw mut pg_sys::pg_global_prng_state)) } < rate
}
