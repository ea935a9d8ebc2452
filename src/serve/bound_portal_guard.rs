//! What a portal checks again before its first row. A portal is answered from an entry when it is started (at Bind or DECLARE), and read later
//! (at Execute). In between another portal may change settings that the answer depends on, and anybody may change definitions that no
//! lock protects (labels of enums, text search). An execution would show such changes. If the portal is left after a part of its rows, the
//! rows behind them are asked about, too: executing might compute them later, under what is current then. Belongs to one portal of this
//! backend.

use std::ffi::CString;

use arrow_cache_core::Pin;
use pgrx::pg_sys;

use crate::invalidation::own_writes;
use crate::pg::tree::Tree;
use crate::query::hashes::EnvironmentHash;
use crate::query::{environment, row_bound, settled_rows};
use crate::session;
use crate::shmem::SharedStore;

/// How much of an answer is read by the run that asks for the first row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FirstRun {
    /// All rows, and their end is seen.
    Whole,
    /// All rows, but their end is not seen: the server will ask for another one.
    AllRows,
    /// Some rows. What changes afterwards may have to show in the others.
    Part,
}

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
    /// Its parameters, which live as long; null for none.
    pub params: pg_sys::ParamListInfo,
    /// The snapshot that the statement was started with, which lives as long; null for none.
    pub snapshot: *const pg_sys::SnapshotData,
    /// There are row types in the answer, whose values are made of parts when they are read.
    pub has_row_types: bool,
    /// Rows may be read again.
    pub scrolls: bool,
    /// What the first run reads, as far as is known.
    pub first_run: FirstRun,
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
    /// Notes that up to `limit` rows (0: all) of an entry with `rows` rows are going to be read, forward or not.
    pub fn note_limit(&mut self, forward: bool, limit: u64, rows: u64) {
        self.first_run = match limit {
            _ if !forward => FirstRun::Part,
            0 => FirstRun::Whole,
            _ if limit > rows => FirstRun::Whole,
            _ if limit == rows => FirstRun::AllRows,
            _ => FirstRun::Part,
        };
    }

    /// Does the entry, which has so many rows, still answer the statement?
    pub fn holds(&self, store: &SharedStore, pin: &Pin, rows: u64) -> bool {
        self.outlasts_first_run(rows)
            && store.is_current(pin)
            && session::definition_changes() == self.definition_changes
            && self.catalogs.is_none_or(|version| version_of_catalogs(store) == version)
            && (self.foreign.is_empty() || own_writes::check_own_writes(&self.foreign).is_ok())
            && environment::hash(store.seed(), &self.settings) == Ok(self.environment)
    }

    /// Can it be told from the plan that rows which are read again are what they were, at least if all of them are read first?
    pub fn may_be_read_again(&self) -> bool {
        self.is_computed_in_plan() && settled_rows::keeps_rows(self.real_plan(), true)
    }

    /// Does the answer hold for what is read after the first run as well?
    fn outlasts_first_run(&self, rows: u64) -> bool {
        let plan = self.real_plan();
        let all_read = match self.first_run {
            FirstRun::Whole => true,
            FirstRun::AllRows => {
                row_bound::of(plan, self.params(), self.snapshot()) == Some(rows)
                    || settled_rows::ends_with_last_row(plan)
            }
            FirstRun::Part => false,
        };
        if self.scrolls {
            self.is_computed_in_plan() && settled_rows::keeps_rows(plan, all_read)
        } else {
            all_read || (self.is_computed_in_plan() && settled_rows::later_rows_are_settled(plan))
        }
    }

    /// Are the values of a row all there once its plan has given it? Those of row types are put together when they are read, those of
    /// foreign tables come from elsewhere.
    fn is_computed_in_plan(&self) -> bool {
        !self.has_row_types && self.foreign.is_empty()
    }

    fn params(&self) -> Option<Tree<'_, pg_sys::ParamListInfoData>> {
        // SAFETY: the parameters live as long as the portal, like the plan.
        unsafe { Tree::enter(self.params) }
    }

    fn snapshot(&self) -> Option<&pg_sys::SnapshotData> {
        // SAFETY: the statement has registered its snapshot, until the portal ends.
        unsafe { self.snapshot.as_ref() }
    }

    fn real_plan(&self) -> Tree<'_, pg_sys::PlannedStmt> {
        // SAFETY: a guard is made for a plan, which lives as long as its portal, and is changed by nobody.
        unsafe { Tree::enter(self.plan).unwrap_unchecked() }
    }
}

/// The present version of all definitions of this database.
fn version_of_catalogs(store: &SharedStore) -> u64 {
    let versions = store.versions();
    // SAFETY: a plain read of a backend global.
    versions.slot(versions.catalogs(unsafe { pg_sys::MyDatabaseId.to_u32() })).version()
}
