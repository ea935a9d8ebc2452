//! Aggregates, computed in two steps as in the server's own parallel plans. A part computes the transition state of
//! each (in a form that can be stored, if it is `internal`), and the combined query makes the result of the states. So
//! all aggregates can be combined that have a combine function, and the result is what the server makes of its own
//! states.
//!
//! A query cannot say so. Here the two queries get aggregates of the right types; `fragments::split_aggregates`
//! marks their plans.

use pgrx::pg_sys;

use super::columns::Columns;
use super::obstacle::{Obstacle, SUB_QUERY};
use crate::pg::catalog_row::CatalogRow;
use crate::pg::server;
use crate::pg::tree::{Tree, children};
use crate::pg::tree_making::{copy, list_of};

/// The kind of aggregates that are not ordered-set (catalog/pg_aggregate.h).
const AGGKIND_NORMAL: u8 = b'n';
/// Columns of pg_aggregate (catalog/pg_aggregate.h): its combine function, those that write and read an internal state,
/// and the type of the state.
const COMBINES: i16 = 6;
const WRITES: i16 = 7;
const READS: i16 = 8;
const STATE: i16 = 17;

/// What stands in the combined query in the place of an aggregate of the site's own level. Adds the column of the parts
/// that it needs.
///
/// # Errors
/// Why the aggregate is not made of parts.
///
/// # Safety
/// The aggregate must be valid, and changed by nobody as long as the columns are used.
pub(super) unsafe fn combination(
    aggregate: Tree<'_, pg_sys::Aggref>,
    columns: &mut Columns,
) -> Result<*mut pg_sys::Node, Obstacle> {
    check_call(aggregate)?;
    let state = stored_state(aggregate).ok_or("An aggregate cannot be computed from the results of partitions.")?;
    // SAFETY: copies of a valid aggregate, which are changed before anybody else knows of them.
    unsafe {
        let part = copy(aggregate.as_ptr());
        (*part).aggtype = state;
        let column = columns.add(part.cast());
        let combined = copy(aggregate.as_ptr());
        (*combined).args = list_of([kept!(pg_sys::makeTargetEntry(column.cast(), 1, std::ptr::null_mut(), false))]);
        (*combined).aggfilter = std::ptr::null_mut();
        Ok(combined.cast())
    }
}

/// Checks what stands in the call beside the function.
fn check_call(aggregate: Tree<'_, pg_sys::Aggref>) -> Result<(), Obstacle> {
    let has_more =
        [aggregate.aggorder, aggregate.aggdistinct, aggregate.aggdirectargs].into_iter().any(|list| !list.is_null());
    if has_more || aggregate.aggvariadic || aggregate.aggkind as u8 != AGGKIND_NORMAL {
        return Err("A call of an aggregate has DISTINCT, ORDER BY, WITHIN GROUP or VARIADIC.");
    }
    // SAFETY: an expression of a valid tree.
    if unsafe { kept!(pg_sys::contain_subplans(aggregate.as_node().as_ptr())) } {
        return Err(SUB_QUERY);
    }
    Ok(())
}

/// The type of the states of an aggregate, as the server hands them to other processes; `None` if it does not.
fn stored_state(aggregate: Tree<'_, pg_sys::Aggref>) -> Option<pg_sys::Oid> {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::AGGFNOID, aggregate.aggfnoid)?;
    row.oid(COMBINES)?;
    let declared = row.oid(STATE)?;
    if declared == pg_sys::INTERNALOID {
        let is_written = row.oid(WRITES).and(row.oid(READS)).is_some() && has_binary_arguments(aggregate);
        return is_written.then_some(pg_sys::BYTEAOID);
    }
    let mut types = [pg_sys::InvalidOid; pg_sys::FUNC_MAX_ARGS as usize];
    let place = types.as_mut_ptr();
    // SAFETY: a valid aggregate, and room for as many types as a function may have arguments.
    unsafe {
        let count = kept!(server::get_aggregate_argtypes(aggregate.as_ptr(), place));
        Some(kept!(server::resolve_aggregate_transtype(aggregate.aggfnoid, declared, place, count)))
    }
}

/// Returns true if the values that an internal state may hold have a binary form, in which it is written and read. A
/// record has none that can be read (`agg_args_support_sendreceive`, which the server has since 16).
fn has_binary_arguments(aggregate: Tree<'_, pg_sys::Aggref>) -> bool {
    children!(aggregate.args as TargetEntry).all(|argument| {
        // SAFETY: an expression of a valid tree.
        let type_oid = unsafe { server::exprType(argument.expr.cast()) };
        let row = CatalogRow::find(pg_sys::SysCacheIdentifier::TYPEOID, type_oid);
        let is_binary = |form: &pg_sys::FormData_pg_type| {
            form.typbyval || ![form.typsend, form.typreceive].contains(&pg_sys::InvalidOid)
        };
        type_oid != pg_sys::RECORDOID && row.is_some_and(|row| row.data_type().is_some_and(is_binary))
    })
}
