//! The values of the clock that stand in a query's key, as `arrow_cache.why` shows them. Keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Datum};

use crate::pg::privileges;
use crate::pg::tree::Tree;
use crate::query::clock::{Clock, Computed, Sight, Split, with_values};
use crate::query::{Marked, plan_marker};

/// The values of the clock in the key of a query with this plan, as texts; none if it does not ask for the time. Parameters count as NULL.
/// Its relations are locked, and the snapshot is active.
pub fn of_plan(plan: Tree<'_, pg_sys::PlannedStmt>, snapshot: Option<&pg_sys::SnapshotData>) -> Vec<Vec<u8>> {
    let Marked::Cacheable { asks_for_time: true, .. } = plan_marker::read(plan) else { return Vec::new() };
    let program = plan_marker::read_clock(plan);
    let sight = snapshot.map(|snapshot| Sight { snapshot, relations: None });
    let clock = Clock { program, params: None, one_message: true, sight };
    with_values(&clock, |values| values.iter().map(|value| shown(value, sight.as_ref())).collect()).unwrap_or_default()
}

/// A value as its type's output function shows it, or what stands in its place.
fn shown(computed: &Computed, sight: Option<&Sight<'_>>) -> Vec<u8> {
    let Computed { value, split, .. } = computed;
    if value.is_null {
        return b"NULL".to_vec();
    }
    let Some(split) = split else { return text_of(value.kind.type_oid(), value.datum) };
    if !is_readable(split) {
        return b"a time in rows that you may not read".to_vec();
    }
    match sight.map(|sight| computed.canonical_bound(split, sight)) {
        Some(Ok(Some(bound))) => [text_of(value.kind.type_oid(), bound), b" as the last row before".to_vec()].concat(),
        Some(Ok(None)) => b"no row before".to_vec(),
        _ => b"unknown".to_vec(),
    }
}

/// May the user read all rows of the relation? A canonical bound is a value of any of them.
fn is_readable(split: &Split) -> bool {
    privileges::may_read_all_rows(split.relation)
}

fn text_of(type_oid: pg_sys::Oid, datum: Datum) -> Vec<u8> {
    let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
    // SAFETY: a value of that type, as the server's function computed it; the text is copied before its context is emptied.
    unsafe {
        pg_sys::getTypeOutputInfo(type_oid, &raw mut function, &raw mut is_varlena);
        CStr::from_ptr(pg_sys::OidOutputFunctionCall(function, datum)).to_bytes().to_vec()
    }
}
