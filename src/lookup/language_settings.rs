//! Under what this session compiles functions in PL/pgSQL: settings, role and path of schemas. The language does so when a session first calls a function, and keeps what it has
//! compiled and analysed, whatever these become: what literals and types mean, which bodies were inlined, what the role was allowed to execute. Nobody
//! tells under which of several settings or roles that was. State of this backend; no lock.

use std::cell::Cell;
use std::ffi::{CStr, c_char};

use arrow_cache_core::{Hash128, Reason};
use pgrx::pg_sys;

use super::definition_versions;
use crate::invalidation::{catalogs, own_writes};
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
/// Since when the session compiles functions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// It has run none yet, as far as is known.
    Never,
    /// It has run the first one under these versions of the definitions that no relation stands for, and of enums.
    Definitions(u64, u64),
    /// It has run some before the first that is known: nothing tells of event triggers, triggers of partitions, and functions of operator classes.
    Unknown,
}

static SINCE: Local<Cell<Since>> = Local::new(Cell::new(Since::Never));
/// Under what the session has run the first function in a procedural language, or met a query with functions that are declared pure.
static FIRST: Local<Cell<Option<Compiling>>> = Local::new(Cell::new(None));
/// It has met one under something else, or under settings of the language that it may refuse.
static DIFFER: Local<Cell<bool>> = Local::new(Cell::new(false));
/// The session has changed definitions itself: before it ran the first function, and after that. No version tells of those that it has taken back.
static CHANGED_BEFORE: Local<Cell<bool>> = Local::new(Cell::new(false));
static CHANGED_SINCE: Local<Cell<bool>> = Local::new(Cell::new(false));

/// A plan is being started that will not be run.
static IS_ONLY_SHOWN: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Is nothing to be noted of the next function that is run?
#[inline]
pub fn has_begun() -> bool {
    SINCE.get() != Since::Never
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

/// As `note_run`, for the triggers of the tables that a query changes, which has been started: the server does not tell of these.
pub fn note_triggers(query: QueryDesc<'_>) {
    let Some(state) = query.estate() else { return };
    // SAFETY: the state of a query is valid with its lists, and the targets are open with their triggers, until the query is ended.
    let runs_any = unsafe {
        nodes::<pg_sys::ResultRelInfo>(state.as_ref().es_opened_result_relations).any(|target| {
            (*target).ri_TrigDesc.as_ref().is_some_and(|all| {
                (0..all.numtriggers as usize).any(|place| is_procedural((*all.triggers.add(place)).tgfoid))
            })
        })
    };
    if runs_any {
        note_any_run();
    }
}

/// As `note_run`, for a block of code, or what runs a function in any case.
pub fn note_any_run() {
    if let Some(store) = shmem::store().filter(|_| !has_begun()) {
        begin(&store);
        // In a function that is SECURITY DEFINER, or in a check of a foreign key, the role is not that of the session.
        // SAFETY: reads a global of the backend.
        if !unsafe { pg_sys::InLocalUserIdChange() } {
            note_surroundings(&store);
        }
    }
}

/// Notes that the session has changed a definition. Relations and what belongs to them do not count: the language follows them. A type or schema that is new is in
/// nobody's body yet.
pub fn note_own_change(access: pg_sys::ObjectAccessType::Type, class: pg_sys::Oid, object: pg_sys::Oid) {
    let is_new = access == pg_sys::ObjectAccessType::OAT_POST_CREATE;
    let counts = match class {
        pg_sys::NamespaceRelationId => !is_new,
        pg_sys::TypeRelationId => !is_new && !is_temporary_type(object),
        _ => !catalogs::is_local_catalog(class.to_u32()),
    };
    if counts {
        if has_begun() { &CHANGED_SINCE } else { &CHANGED_BEFORE }.set(true);
    }
}

fn is_temporary_type(object: pg_sys::Oid) -> bool {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::TYPEOID, object);
    // SAFETY: compares the schema with that of the session.
    row.as_ref()
        .and_then(CatalogRow::data_type)
        .is_some_and(|form| unsafe { pg_sys::isTempNamespace(form.typnamespace) })
}

/// The session runs the first function, as far as is known.
fn begin(store: &SharedStore) {
    if keeps_casts() {
        return SINCE.set(Since::Unknown);
    }
    // In this order: what the session has not heard of yet, when these versions are read, moves them once more.
    let (ddl, enums) = definitions(store, definition_versions::current(store));
    SINCE.set(Since::Definitions(ddl, enums));
    // SAFETY: inside a transaction.
    unsafe { pg_sys::AcceptInvalidationMessages() };
    // What this transaction takes back would stay compiled.
    CHANGED_SINCE.set(CHANGED_SINCE.get() || (CHANGED_BEFORE.get() && own_writes::has_transaction_id()));
}

/// Has the session run any code in PL/pgSQL? The language makes a table of casts when it first does, in memory of the session.
fn keeps_casts() -> bool {
    // SAFETY: the contexts of the backend, each with the next one; names and idents are C strings, or null.
    unsafe {
        let mut context = (*pg_sys::TopMemoryContext).firstchild;
        while let Some(child) = context.as_ref() {
            let is_of_casts =
                |text: *const c_char| !text.is_null() && CStr::from_ptr(text).to_bytes().starts_with(b"PLpgSQL cast");
            if is_of_casts(child.name) || is_of_casts(child.ident) {
                return true;
            }
            context = child.nextchild;
        }
    }
    false
}

/// Notes the present settings, role and path beside the first ones.
fn note_surroundings(store: &SharedStore) {
    match now(store.seed()) {
        Ok(now) => {
            let first = FIRST.get().unwrap_or(now);
            FIRST.set(Some(first));
            DIFFER.set(DIFFER.get() || first != now);
        }
        Err(_) => DIFFER.set(true),
    }
}

/// Is the function written in a language that keeps what it has compiled?
fn is_procedural(function: pg_sys::Oid) -> bool {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, function);
    row.as_ref()
        .and_then(CatalogRow::function)
        .is_some_and(|form| ![INTERNAL_LANGUAGE, C_LANGUAGE, SQL_LANGUAGE].contains(&form.prolang.to_u32()))
}

fn now(seed: u64) -> Result<Compiling, Reason> {
    Ok((environment::compiling(seed)?, environment::planning(seed, environment::settings(seed))))
}

/// Are functions compiled under the present settings and by the present role, as far as the queries tell that this session has met? To be asked before each
/// query that calls functions that are declared pure.
///
/// # Errors
/// `SessionFunction` if they may not be.
pub fn check(store: &SharedStore) -> Result<(), Reason> {
    if !has_begun() {
        begin(store);
    }
    note_surroundings(store);
    if DIFFER.get() { Err(Reason::SessionFunction) } else { Ok(()) }
}

/// May a function that the session calls have been compiled under other definitions than the present ones? Labels of enums and rights, which have been looked up
/// then, may be others by now. (That types of columns stay the same, owners promise.) Asked after `check`.
pub fn may_be_from_before(store: &SharedStore, current: Versions) -> bool {
    let (ddl, enums) = definitions(store, current);
    CHANGED_SINCE.get() || SINCE.get() != Since::Definitions(ddl, enums)
}

fn definitions(store: &SharedStore, current: Versions) -> (u64, u64) {
    let versions = store.versions();
    // SAFETY: a plain global of the backend.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    (current.ddl, versions.slot(versions.enums(database)).version())
}
