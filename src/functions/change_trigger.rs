//! The trigger function for tables whose changes the server cannot see. What it notes is published when the transaction
//! commits; nothing is kept here.

use std::ffi::CStr;

use arrow_cache_core::{RoomyVec, shown};
use pgrx::pg_sys;

use crate::error::{CacheError, or_raise};
use crate::invalidation::{publication, queried_relations};
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::Unchanged;
use crate::pg::sql_function::sql_function;
use crate::pg::tree::Tree;
use crate::pg::{compat, privileges};
use crate::shmem;

/// Trigger function for tables whose changes the server cannot see: publishes a change of the table, and of the
/// relations that its arguments name, when the transaction commits.
///
/// The role that fires it has changed the table. The other relations must be ones that this role, or the owner of the
/// table (who is responsible for the triggers on it), may change as well.
///
/// A trigger function returns no row as a null pointer, which is no SQL NULL.
fn invalidate_on_change(call: FunctionCall<'_>) -> Unchanged {
    shmem::required();
    let Some(data) = call.trigger() else { CacheError::not_a_trigger().raise() };
    // SAFETY: the trigger's data, table and strings live as long as the call.
    unsafe {
        let Some(table) = Tree::enter(data.tg_relation) else { CacheError::not_a_trigger().raise() };
        let trigger = data.tg_trigger;
        let named = (0..(*trigger).tgnargs as usize)
            .map(|index| relation_named(CStr::from_ptr(*(*trigger).tgargs.add(index)), table));
        let named = or_raise(Vec::collected(named));
        // A change of a foreign table assigns no transaction id, and without one nothing is published.
        kept!(pg_sys::GetCurrentTransactionId());
        publication::note_relation(table.rd_id);
        named.into_iter().for_each(publication::note_relation);
        // Meant for statement level; at row level the row must come through as it is.
        let event = data.tg_event;
        let row = if event & pg_sys::TRIGGER_EVENT_ROW == 0 {
            std::ptr::null_mut()
        } else if event & pg_sys::TRIGGER_EVENT_OPMASK == pg_sys::TRIGGER_EVENT_UPDATE {
            data.tg_newtuple
        } else {
            data.tg_trigtuple
        };
        Unchanged(pg_sys::Datum::from(row))
    }
}

sql_function!(invalidate_on_change, "arrow_cache_invalidate_on_change");

/// The relation that a possibly qualified name stands for, if a trigger on `table` may publish a change of it. A name
/// without a schema means the schema of `table`, because the role that fires the trigger may have any `search_path`.
fn relation_named(name: &CStr, table: Tree<'_, pg_sys::RelationData>) -> pg_sys::Oid {
    let word = || shown(name.to_bytes());
    // SAFETY: an open relation has its row of pg_class; the parser copies what it needs of the name; a missing schema
    // or relation gives InvalidOid.
    unsafe {
        // A copy: the catalog searches below may have the server read the description again, in its place.
        let class = *table.rd_rel;
        let range = &*kept!(pg_sys::makeRangeVarFromNameList(compat::qualified_name(name)));
        let here = range.catalogname.is_null()
            || kept!(pg_sys::get_database_oid(range.catalogname, true)) == pg_sys::MyDatabaseId;
        let schema = match range.schemaname {
            name if name.is_null() => class.relnamespace,
            name => kept!(pg_sys::get_namespace_oid(name, true)),
        };
        let relation = kept!(pg_sys::get_relname_relid(range.relname, schema));
        if !here || schema == pg_sys::InvalidOid || relation == pg_sys::InvalidOid {
            CacheError::unknown_relation(word()).raise();
        }
        let roles = [privileges::current_role(), class.relowner];
        if !roles.into_iter().any(|role| privileges::may_change(role, relation)) {
            CacheError::not_yours_to_change(word()).raise();
        }
        if !queried_relations::may_carry_results(relation.to_u32()) {
            CacheError::nothing_rests_on(word()).raise();
        }
        relation
    }
}
