//! Which hits are executed as well, and what must stay the same for a comparison to make sense.

use std::ffi::CString;

use pgrx::pg_sys;

use crate::query::eligibility::QueryTraits;
use crate::query::environment;
use crate::query::hashes::EnvironmentHash;
use crate::query::ordering::OrderedPrefix;
use crate::{session, settings, shmem};

/// Under which conditions a stored answer and an execution can be compared.
pub struct Conditions {
    /// The columns that the query orders its rows by.
    pub(super) ordered_by: OrderedPrefix,
    /// The settings that the query was started under.
    environment: EnvironmentHash,
    /// The custom settings among them.
    settings: Vec<CString>,
    /// How often the session had changed a definition by then.
    definition_changes: u64,
}

impl Conditions {
    /// Are the settings those that the query was started under, and has the session changed no definition since?
    pub(super) fn are_met(&self) -> bool {
        session::definition_changes() == self.definition_changes
            && shmem::seed().is_some_and(|seed| environment::hash(seed, &self.settings) == Ok(self.environment))
    }
}

/// The conditions of a comparison, if a hit is to be executed as well: by chance, at the rate that is set.
pub fn choose(traits: &QueryTraits, environment: EnvironmentHash, settings: &[CString]) -> Option<Conditions> {
    let rate = settings::verify_sample_rate();
    let ordered_by = traits.repeatable.filter(|_| rate > 0.0)?;
    // SAFETY: the backend's own generator, which random() does not use; it gives numbers from 0 to below 1.
    let drawn = unsafe { pg_sys::pg_prng_double(&raw mut pg_sys::pg_global_prng_state) };
    (drawn < rate).then(|| Conditions {
        ordered_by,
        environment,
        settings: settings.to_vec(),
        definition_changes: session::definition_changes(),
    })
}
