//! SQL functions that look at this session or change the cache.

use std::ffi::CStr;

use arrow_cache_core::RoomyVec;
use arrow_cache_core::shown;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error::{CacheError, or_raise};
use crate::invalidation::{publication, queried_relations};
use crate::pg::{compat, privileges};
use crate::session;
use crate::shmem::{self, SharedStore};

/// The cache, or the error that says what is missing.
pub fn required_store() -> SharedStore {
    shmem::store().unwrap_or_else(|| CacheError::NotPreloaded.raise())
}

/// Drops every entry of this database and returns how many there were.
#[pg_extern(sql = false)]
fn flush() -> i64 {
    let store = required_store();
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    store.retire_matching(|entry| entry.database() == database) as i64
}

/// Drops every entry that rests on a relation and returns how many there were.
#[pg_extern(sql = false)]
fn invalidate(relation: pg_sys::Oid) -> i64 {
    let store = required_store();
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    let relation = relation.to_u32();
    if relation == 0 {
        return 0;
    }
    // A result that is being computed must not be stored after this.
    // SAFETY: reads the clock.
    let now = unsafe { pg_sys::GetCurrentTimestamp() };
    let versions = store.versions();
    versions.slot(versions.relation(database, relation)).bump(now);
    let rests_on_it = |dependency: &arrow_cache_core::Dependency| dependency.relation == relation;
    store.retire_matching(|entry| entry.database() == database && entry.dependencies().iter().any(rests_on_it)) as i64
}

/// Says how the trigger function is called (fmgr.h, PG_FUNCTION_INFO_V1).
#[unsafe(no_mangle)]
pub extern "C" fn pg_finfo_arrow_cache_invalidate_on_change() -> &'static pg_sys::Pg_finfo_record {
    const VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
    &VERSION_1
}

/// Trigger function for tables whose changes the server cannot see: publishes a change of the
/// table, and of the relations that its arguments name, when the transaction commits.
///
/// Who fires it has changed the table. The other relations must be such that this role, or the owner of the table, who stands
/// for the triggers on it, may change them as well.
///
/// Written by hand, because a trigger function must return a null pointer that is not NULL.
///
/// # Safety
/// Called by PostgreSQL, as the function that sql/functions.sql declares.
#[pg_guard]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn arrow_cache_invalidate_on_change(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    required_store();
    // SAFETY: as the caller promises; the trigger's data and strings live as long as the call.
    unsafe {
        let context = (*call).context;
        if context.is_null() || (*context).type_ != pg_sys::NodeTag::T_TriggerData {
            CacheError::NotATrigger.raise();
        }
        let data: *mut pg_sys::TriggerData = context.cast();
        let table = (*data).tg_relation;
        let trigger = (*data).tg_trigger;
        let named = (0..(*trigger).tgnargs as usize)
            .map(|index| relation_named(CStr::from_ptr(*(*trigger).tgargs.add(index)), table));
        let named = or_raise(Vec::collected(named));
        // A change of a foreign table assigns no transaction id, and without one nothing is published.
        pg_sys::GetCurrentTransactionId();
        publication::note_relation((*table).rd_id);
        named.into_iter().for_each(publication::note_relation);
        // Meant for statement level; at row level the row must come through as it is.
        let event = (*data).tg_event;
        if event & pg_sys::TRIGGER_EVENT_ROW == 0 {
            pg_sys::Datum::from(0)
        } else if event & pg_sys::TRIGGER_EVENT_OPMASK == pg_sys::TRIGGER_EVENT_UPDATE {
            pg_sys::Datum::from((*data).tg_newtuple)
        } else {
            pg_sys::Datum::from((*data).tg_trigtuple)
        }
    }
}

/// The relation that a possibly qualified name stands for, if a trigger on `table` may speak for it. A name without a schema is one
/// in the schema of `table`: whoever fires the trigger may have any `search_path`.
///
/// # Safety
/// `table` must be open.
unsafe fn relation_named(name: &CStr, table: pg_sys::Relation) -> pg_sys::Oid {
    let word = || shown(name.to_bytes());
    // SAFETY: as the caller promises; the parser copies what it needs of the name; a missing schema or relation gives InvalidOid.
    unsafe {
        let range = &*pg_sys::makeRangeVarFromNameList(compat::qualified_name(name));
        let here =
            range.catalogname.is_null() || pg_sys::get_database_oid(range.catalogname, true) == pg_sys::MyDatabaseId;
        let schema = match range.schemaname {
            name if name.is_null() => (*(*table).rd_rel).relnamespace,
            name => pg_sys::get_namespace_oid(name, true),
        };
        let relation = pg_sys::get_relname_relid(range.relname, schema);
        if !here || schema == pg_sys::InvalidOid || relation == pg_sys::InvalidOid {
            CacheError::UnknownRelation { name: word() }.raise();
        }
        let roles = [privileges::current_role(), (*(*table).rd_rel).relowner];
        if !roles.into_iter().any(|role| privileges::may_change(role, relation)) {
            CacheError::NotYoursToChange { name: word() }.raise();
        }
        if !queried_relations::may_carry_results(relation.to_u32()) {
            CacheError::NothingRestsOn { name: word() }.raise();
        }
        relation
    }
}

/// Zeroes the counters.
#[pg_extern(sql = false)]
fn reset_stats() {
    let store = required_store();
    // SAFETY: reads the clock.
    store.reset_stats(unsafe { pg_sys::GetCurrentTimestamp() });
}

/// What became of this session's last top-level statement that was not itself a call of this.
#[pg_extern(sql = false)]
fn last_status() -> Option<&'static str> {
    required_store();
    session::last_status().map(session::Status::name)
}

/// Why that statement was bypassed or its result not stored.
#[pg_extern(sql = false)]
fn last_reason() -> Option<&'static str> {
    required_store();
    session::last_status()?.reason().map(arrow_cache_core::Reason::name)
}
