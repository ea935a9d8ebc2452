//! Under what this session compiles functions in PL/pgSQL: settings and role. The language does so when a session first calls a function, and keeps what it has
//! compiled and analysed, whatever the settings and the role become: what literals mean, which bodies were inlined, what the role was allowed to execute. Nobody
//! tells under which of several settings or roles that was. State of this backend; no lock.

use std::cell::Cell;

use arrow_cache_core::{Hash128, Reason};
use pgrx::pg_sys;

use crate::pg::backend_local::Local;
use crate::query::hashes::PlanningHash;
use crate::query::{Versions, environment};
use crate::shmem::SharedStore;

/// What the language goes by: its own settings; and those that functions may read, with the role.
type Compiling = (Hash128, PlanningHash);
/// Under what the session first met a query with functions that are declared pure.
static FIRST: Local<Cell<Option<Compiling>>> = Local::new(Cell::new(None));
/// The versions of the definitions that no relation stands for, and of enums, at that moment.
static DEFINITIONS: Local<Cell<(u64, u64)>> = Local::new(Cell::new((0, 0)));
/// It has met one under something else.
static DIFFER: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Are functions compiled under the present settings and by the present role, as far as the queries tell that this session has met? To be asked before each
/// query that calls functions that are declared pure.
///
/// # Errors
/// `SessionFunction` if they may not be.
pub fn check(store: &SharedStore, current: Versions) -> Result<(), Reason> {
    let seed = store.seed();
    let now = (environment::compiling(seed)?, environment::planning(seed, environment::settings(seed)));
    match FIRST.get() {
        None => {
            FIRST.set(Some(now));
            DEFINITIONS.set(definitions(store, current));
        }
        Some(first) => DIFFER.set(DIFFER.get() || first != now),
    }
    if DIFFER.get() { Err(Reason::SessionFunction) } else { Ok(()) }
}

/// May a function that the session calls have been compiled under other definitions than the present ones? Labels of enums and rights, which have been looked up
/// then, may be others by now. (That types of columns stay the same, owners promise.) Asked after `check`.
pub fn may_be_from_before(store: &SharedStore, current: Versions) -> bool {
    DEFINITIONS.get() != definitions(store, current)
}

fn definitions(store: &SharedStore, current: Versions) -> (u64, u64) {
    let versions = store.versions();
    // SAFETY: a plain global of the backend.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    (current.ddl, versions.slot(versions.enums(database)).version())
}
