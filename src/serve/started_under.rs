//! What an answer depends on that must not change between the start of its statement and the reading of its rows:
//! settings, and definitions that no lock protects (labels of enums, text search). Asked again before a stored answer
//! is read, before rows are stored, and before they are compared. Belongs to one statement of this backend.

use std::ffi::CString;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::pg::backend;
use crate::query::eligibility::QueryTraits;
use crate::query::hashes::EnvironmentHash;
use crate::query::{asker, environment};
use crate::session;
use crate::shmem::SharedStore;

/// Under what a statement was started.
#[derive(Clone)]
pub struct StartedUnder {
    /// Its number.
    pub statement: u64,
    /// The role that it was started as.
    pub role: pg_sys::Oid,
    /// The settings, which are in its key.
    environment: EnvironmentHash,
    /// The custom settings among them.
    settings: Vec<CString>,
    /// How often the session had changed a definition by then.
    definition_changes: u64,
    /// The version of all definitions, if names in functions are resolved while it runs.
    catalogs: Option<u64>,
    /// How many messages about roles this backend had received by then.
    heard: u64,
    /// It may read what the role is, or ask what that may do, while it runs.
    asks_for_role: bool,
}

impl StartedUnder {
    /// That of a statement with these traits, which reads no setting by name.
    pub fn in_environment(environment: EnvironmentHash, traits: &QueryTraits) -> Self {
        Self {
            statement: session::statement_number(),
            role: backend::user_id(),
            environment,
            settings: Vec::new(),
            definition_changes: session::definition_changes(),
            catalogs: None,
            heard: asker::heard(),
            asks_for_role: traits.reads_session || traits.asks_for_rights(),
        }
    }

    /// That of a statement with these traits, which reads these settings by name. `catalogs` is the version of all
    /// definitions.
    pub fn with(environment: EnvironmentHash, settings: Vec<CString>, traits: &QueryTraits, catalogs: u64) -> Self {
        let catalogs = traits.resolves_names().then_some(catalogs);
        Self { settings, catalogs, ..Self::in_environment(environment, traits) }
    }

    /// All of it, with the names of the settings, which are left to nobody else.
    pub fn taken(&mut self) -> Self {
        Self { settings: std::mem::take(&mut self.settings), ..*self }
    }

    /// Returns true if what the role is, or may do, can have changed and changed back since. A single change shows in
    /// the settings.
    fn may_have_had_other_rights(&self) -> bool {
        asker::heard() > self.heard + 1
    }

    /// Checks that everything is as it was.
    ///
    /// # Errors
    /// `SettingsChanged`, `OwnDdl` or `DdlInProgress`.
    pub fn check(&self, store: &SharedStore) -> Result<(), Reason> {
        if environment::hash(store.seed(), &self.settings) != Ok(self.environment) {
            return Err(Reason::SettingsChanged);
        }
        if session::definition_changes() != self.definition_changes {
            // Rows may be computed under definitions that are not committed yet, or never will be.
            return Err(Reason::OwnDdl);
        }
        if self.asks_for_role && self.may_have_had_other_rights() {
            return Err(Reason::DdlInProgress);
        }
        let versions = store.versions();
        let catalogs = || versions.version(versions.catalogs(backend::database()));
        if self.catalogs.is_some_and(|version| version != catalogs()) {
            return Err(Reason::DdlInProgress);
        }
        Ok(())
    }
}
