//! What a portal checks again before its first row. A portal is answered from an entry when it is started (at Bind or
//! DECLARE), and read later (at Execute). In between another portal may change settings that the answer depends on, and
//! anybody may change definitions that no lock protects (labels of enums, text search). An execution would show such
//! changes. From the first row on the answer is fixed: a plan may compute all rows before it gives the first one.
//! Belongs to one portal of this backend.

use std::ffi::CString;

use arrow_cache_core::Pin;
use pgrx::pg_sys;

use crate::invalidation::own_writes;
use crate::pg::backend;
use crate::query::environment;
use crate::query::hashes::EnvironmentHash;
use crate::session;
use crate::shmem::SharedStore;

/// What a guarded scan has to check before its first row.
pub struct Guard {
    /// The settings that the entry was chosen for.
    pub environment: EnvironmentHash,
    /// The custom settings among them.
    pub settings: Vec<CString>,
    /// Number of the statement.
    pub statement: u64,
    /// The real plan, which lives as long as its portal.
    pub plan: *mut pg_sys::PlannedStmt,
    /// The role that the statement was started as.
    pub role: pg_sys::Oid,
    /// The plan may be started when it is needed, as far as the query tells: it calls nothing but the server's own functions, and reads no
    /// foreign table, row type or enum.
    pub may_start_late: bool,
    /// How often the session had changed a definition by then.
    pub definition_changes: u64,
    /// The version of all definitions, if the plan resolves names in bodies of functions when it runs.
    pub catalogs: Option<u64>,
    /// The relations of the plan, ascending, if there are foreign tables among them: these are read when the first row is asked for.
    pub foreign: Vec<u32>,
}

impl Guard {
    /// Returns true if the entry still answers the statement.
    pub fn holds(&self, store: &SharedStore, pin: &Pin) -> bool {
        store.is_current(pin)
            && session::definition_changes() == self.definition_changes
            && self.catalogs.is_none_or(|version| version_of_catalogs(store) == version)
            && (self.foreign.is_empty() || own_writes::check_own_writes(&self.foreign).is_ok())
            && environment::hash(store.seed(), &self.settings) == Ok(self.environment)
    }
}

/// The present version of all definitions of this database.
fn version_of_catalogs(store: &SharedStore) -> u64 {
    let versions = store.versions();
    versions.slot(versions.catalogs(backend::database())).version()
}
