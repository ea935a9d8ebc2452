//! What a portal checks again before its first row. A portal is answered from an entry when it is started (at Bind or
//! DECLARE), and read later (at Execute). In between another portal may change settings that the answer depends on, and
//! anybody may change definitions. An execution would show such changes. From the first row on the answer is fixed: a
//! plan may compute all rows before it gives the first one. Belongs to one portal of this backend.

use arrow_cache_core::Pin;
use pgrx::pg_sys;

use super::started_under::StartedUnder;
use crate::invalidation::own_writes;
use crate::shmem::SharedStore;

/// What a guarded scan has to check before its first row.
pub struct Guard {
    /// What the entry was chosen under.
    pub started: StartedUnder,
    /// The real plan, which lives as long as its portal.
    pub plan: *mut pg_sys::PlannedStmt,
    /// The relations of the plan, ascending, if there are foreign tables among them: these are read when the first row
    /// is asked for.
    pub foreign: Vec<u32>,
}

impl Guard {
    /// Returns true if the entry still answers the statement.
    pub fn holds(&self, store: &SharedStore, pin: &Pin) -> bool {
        store.is_current(pin)
            && self.started.check(store).is_ok()
            && (self.foreign.is_empty() || own_writes::check_own_writes(&self.foreign).is_ok())
    }
}
