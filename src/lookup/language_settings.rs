//! The settings under which this session compiles functions in PL/pgSQL. The language does so when a session first calls a function, and keeps what it has
//! compiled, whatever the settings become. Nobody tells under which of several settings that was. State of this backend; no lock.

use std::cell::Cell;

use arrow_cache_core::{Hash128, Reason};

use crate::pg::backend_local::Local;
use crate::query::environment;
use crate::shmem::SharedStore;

/// The settings under which the session first met a query with functions that are declared pure.
static FIRST: Local<Cell<Option<Hash128>>> = Local::new(Cell::new(None));
/// It has met one under others.
static DIFFER: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Are functions compiled under the present settings, as far as the queries tell that this session has met? To be asked before each query that calls
/// functions that are declared pure.
///
/// # Errors
/// `SessionFunction` if they may not be.
pub fn check(store: &SharedStore) -> Result<(), Reason> {
    let now = environment::compiling(store.seed())?;
    match FIRST.get() {
        None => FIRST.set(Some(now)),
        Some(first) => DIFFER.set(DIFFER.get() || first != now),
    }
    if DIFFER.get() { Err(Reason::SessionFunction) } else { Ok(()) }
}
