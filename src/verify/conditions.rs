//! Which hits are executed as well, and what must stay the same for a comparison to make sense.

use std::ffi::CString;

use arrow_cache_core::Counter;
use pgrx::pg_sys;

use crate::query::eligibility::QueryTraits;
use crate::query::environment;
use crate::query::hashes::EnvironmentHash;
use crate::shmem::{self, SharedStore};
use crate::{session, settings};

/// Under which conditions a stored answer and an execution can be compared.
pub struct Conditions {
    /// No two right answers differ.
    repeatable: bool,
    /// The settings that the query was started under.
    environment: EnvironmentHash,
    /// The custom settings among them.
    settings: Vec<CString>,
    /// How often the session had changed a definition by then.
    definition_changes: u64,
}

impl Conditions {
    /// Counts a hit that was drawn. Returns the conditions if its answer can be compared.
    pub fn counted(self, store: &SharedStore) -> Option<Self> {
        store.counters().add(store.stripe(), Counter::VerifySamples, 1);
        self.repeatable.then_some(self)
    }

    /// Are the settings those that the query was started under, and has the session changed no definition since?
    pub(super) fn are_met(&self) -> bool {
        session::definition_changes() == self.definition_changes
            && shmem::seed().is_some_and(|seed| environment::hash(seed, &self.settings) == Ok(self.environment))
    }
}

/// The conditions of a comparison, if a hit is drawn to be executed as well: by chance, at the rate that is set.
pub fn draw(traits: &QueryTraits, environment: EnvironmentHash, settings: &[CString]) -> Option<Conditions> {
    let rate = settings::verify_sample_rate();
    if rate <= 0.0 {
        return None;
    }
    // SAFETY: the backend's own generator, which random() does not use; it gives numbers from 0 to below 1.
    let drawn = unsafe { kept!(pg_sys::pg_prng_double(&raw mut pg_sys::pg_global_prng_state)) };
    (drawn < rate).then(|| Conditions {
        repeatable: traits.repeatable,
        environment,
        settings: settings.to_vec(),
        definition_changes: session::definition_changes(),
    })
}
