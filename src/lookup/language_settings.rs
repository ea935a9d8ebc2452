//! Under what this session compiles functions in PL/pgSQL: settings, role and path of schemas. The language does so when a session first calls a function, and keeps what it has
//! compiled and analysed, whatever these become: what literals and types mean, which bodies were inlined, what the role was allowed to execute. Nobody
//! tells under which of several settings or roles that was. State of this backend; no lock.

use std::cell::Cell;

use arrow_cache_core::{Hash128, Reason};
use pgrx::pg_sys;

use super::definition_versions;
use crate::pg::backend_local::Local;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::lists::nodes;
use crate::pg::object_ids::{C_LANGUAGE, INTERNAL_LANGUAGE, SQL_LANGUAGE};
use crate::pg::query_desc::QueryDesc;
use crate::query::hashes::PlanningHash;
use crate::query::{Versions, environment};
use crate::shmem::{self, SharedStore};

/// What the language goes by: its own settings with the path of schemas; and those that functions may read, with the role.
type Compiling = (Hash128, PlanningHash);
/// Under what the session first ran a function in a procedural language, or met a query with functions that are declared pure; `None` before, and after
/// the first run under settings of the language that it may refuse.
static FIRST: Local<Cell<Option<Compiling>>> = Local::new(Cell::new(None));
/// The versions of the definitions that no relation stands for, and of enums, at that moment. `None` before.
static DEFINITIONS: Local<Cell<Option<(u64, u64)>>> = Local::new(Cell::new(None));
/// It has met one under something else.
static DIFFER: Local<Cell<bool>> = Local::new(Cell::new(false));

/// A plan is being started that will not be run.
static IS_ONLY_SHOWN: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Is nothing to be noted of the next function that is run?
#[inline]
pub fn has_begun() -> bool {
    DEFINITIONS.get().is_some()
}

/// The plan that is being started will not be run.
pub fn set_only_shown(is_only_shown: bool) {
    IS_ONLY_SHOWN.set(is_only_shown);
}

/// Notes that a function of a user is going to be run, whether or not the statement is looked up: if it is the first in a procedural language, what the session
/// compiles from now on is compiled under what is current now.
pub fn note_run(function: pg_sys::Oid) {
    if !has_begun() && !IS_ONLY_SHOWN.get() && is_procedural(function) {
        note_any_run();
    }
}

/// As `note_run`, for the triggers of the tables that a query changes, which has been started: the server does not tell of these. Partitions that rows are sent to,
/// and their triggers, are not known yet.
pub fn note_triggers(query: QueryDesc<'_>) {
    let Some(state) = query.estate().filter(|_| !has_begun()) else { return };
    // SAFETY: the state of a query is valid with its lists, and the targets are open with their triggers, until the query is ended.
    let runs_any = unsafe {
        nodes::<pg_sys::ResultRelInfo>(state.as_ref().es_opened_result_relations).any(|target| {
            let kind = (*(*(*target).ri_RelationDesc).rd_rel).relkind as u8;
            let triggers = (*target).ri_TrigDesc.as_ref();
            kind == pg_sys::RELKIND_PARTITIONED_TABLE
                || triggers.is_some_and(|all| {
                    (0..all.numtriggers as usize).any(|place| is_procedural((*all.triggers.add(place)).tgfoid))
                })
        })
    };
    if runs_any {
        note_any_run();
    }
}

/// As `note_run`, for a statement that may run any function.
pub fn note_any_run() {
    if let Some(store) = shmem::store().filter(|_| !has_begun()) {
        begin(&store, definition_versions::current(&store), now(store.seed()).ok());
    }
}

/// Is the function written in a language that keeps what it has compiled?
fn is_procedural(function: pg_sys::Oid) -> bool {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, function);
    row.as_ref()
        .and_then(CatalogRow::function)
        .is_some_and(|form| ![INTERNAL_LANGUAGE, C_LANGUAGE, SQL_LANGUAGE].contains(&form.prolang.to_u32()))
}

fn begin(store: &SharedStore, current: Versions, compiling: Option<Compiling>) {
    FIRST.set(compiling);
    DEFINITIONS.set(Some(definitions(store, current)));
}

fn now(seed: u64) -> Result<Compiling, Reason> {
    Ok((environment::compiling(seed)?, environment::planning(seed, environment::settings(seed))))
}

/// Are functions compiled under the present settings and by the present role, as far as the queries tell that this session has met? To be asked before each
/// query that calls functions that are declared pure.
///
/// # Errors
/// `SessionFunction` if they may not be.
pub fn check(store: &SharedStore, current: Versions) -> Result<(), Reason> {
    let now = now(store.seed())?;
    if !has_begun() {
        begin(store, current, None);
    }
    let first = FIRST.get().unwrap_or(now);
    FIRST.set(Some(first));
    DIFFER.set(DIFFER.get() || first != now);
    if DIFFER.get() { Err(Reason::SessionFunction) } else { Ok(()) }
}

/// May a function that the session calls have been compiled under other definitions than the present ones? Labels of enums and rights, which have been looked up
/// then, may be others by now. (That types of columns stay the same, owners promise.) Asked after `check`.
pub fn may_be_from_before(store: &SharedStore, current: Versions) -> bool {
    DEFINITIONS.get() != Some(definitions(store, current))
}

fn definitions(store: &SharedStore, current: Versions) -> (u64, u64) {
    let versions = store.versions();
    // SAFETY: a plain global of the backend.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    (current.ddl, versions.slot(versions.enums(database)).version())
}
