//! The trigger function for tables whose changes the server cannot see. What it notes is published when the transaction commits; nothing
//! is kept here.

use std::ffi::CStr;

use arrow_cache_core::{RoomyVec, shown};
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error::{CacheError, or_raise};
use crate::invalidation::{publication, queried_relations};
use crate::pg::tree::Tree;
use crate::pg::{compat, privileges};
use crate::shmem;

/// Tells how the trigger function is called (fmgr.h, PG_FUNCTION_INFO_V1).
#[unsafe(no_mangle)]
pub extern "C" fn pg_finfo_arrow_cache_invalidate_on_change() -> &'static pg_sys::Pg_finfo_record {
    const VERSION_1: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
    &VERSION_1
}

/// Trigger function for tables whose changes the server cannot see: publishes a change of the table, and of the relations that its
/// arguments name, when the transaction commits.
///
/// The role that fires it has changed the table. The other relations must be ones that this role, or the owner of the table (who is
/// responsible for the triggers on it), may change as well.
///
/// It is written by hand, because a trigger function must return a null pointer that is not an SQL NULL.
///
/// # Safety
/// Called by PostgreSQL, as the function that sql/functions.sql declares.
#[pg_guard]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn arrow_cache_invalidate_on_change(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    shmem::required();
    // SAFETY: PostgreSQL's own call; the trigger's data, table and strings live as long as the call.
    unsafe {
        let context = (*call).context;
        if context.is_null() || (*context).type_ != pg_sys::NodeTag::T_TriggerData {
            CacheError::NotATrigger.raise();
        }
        let data: *mut pg_sys::TriggerData = context.cast();
        let Some(table) = Tree::enter((*data).tg_relation) else { CacheError::NotATrigger.raise() };
        let trigger = (*data).tg_trigger;
        let named = (0..(*trigger).tgnargs as usize)
            .map(|index| relation_named(CStr::from_ptr(*(*trigger).tgargs.add(index)), table));
        let named = or_raise(Vec::collected(named));
        // A change of a foreign table assigns no transaction id, and without one nothing is published.
        pg_sys::GetCurrentTransactionId();
        publication::note_relation(table.rd_id);
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

/// The relation that a possibly qualified name stands for, if a trigger on `table` may publish a change of it. A name without a schema
/// means the schema of `table`, because the role that fires the trigger may have any `search_path`.
fn relation_named(name: &CStr, table: Tree<'_, pg_sys::RelationData>) -> pg_sys::Oid {
    let word = || shown(name.to_bytes());
    // SAFETY: an open relation has its row of pg_class; the parser copies what it needs of the name; a missing schema or relation gives
    // InvalidOid.
    unsafe {
        // A copy: the catalog searches below may have the server read the description again, in its place.
        let class = *table.rd_rel;
        let range = &*pg_sys::makeRangeVarFromNameList(compat::qualified_name(name));
        let here =
            range.catalogname.is_null() || pg_sys::get_database_oid(range.catalogname, true) == pg_sys::MyDatabaseId;
        let schema = match range.schemaname {
            name if name.is_null() => class.relnamespace,
            name => pg_sys::get_namespace_oid(name, true),
        };
        let relation = pg_sys::get_relname_relid(range.relname, schema);
        if !here || schema == pg_sys::InvalidOid || relation == pg_sys::InvalidOid {
            CacheError::UnknownRelation { name: word() }.raise();
        }
        let roles = [privileges::current_role(), class.relowner];
        if !roles.into_iter().any(|role| privileges::may_change(role, relation)) {
            CacheError::NotYoursToChange { name: word() }.raise();
        }
        if !queried_relations::may_carry_results(relation.to_u32()) {
            CacheError::NothingRestsOn { name: word() }.raise();
        }
        relation
    }
}
