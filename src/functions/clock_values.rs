//! The values of the clock that stand in a query's key, as `arrow_cache.why` shows them. Keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::tree::Tree;
use crate::query::clock::{Clock, Value, with_values};
use crate::query::{Marked, plan_marker};

/// The values of the clock in the key of a query with this plan, as texts; none if it does not ask for the time. Parameters count as NULL.
pub fn of_plan(plan: Tree<'_, pg_sys::PlannedStmt>) -> Vec<Vec<u8>> {
    let Marked::Cacheable { asks_for_time: true, .. } = plan_marker::read(plan) else { return Vec::new() };
    let program = plan_marker::read_clock(plan);
    let clock = Clock { program, params: None, one_message: true };
    with_values(&clock, |values| values.iter().map(shown).collect()).unwrap_or_default()
}

/// A value as its type's output function shows it.
fn shown(value: &Value) -> Vec<u8> {
    if value.is_null {
        return b"NULL".to_vec();
    }
    let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
    // SAFETY: a value of that type, as the server's function computed it; the text is copied before its context is emptied.
    unsafe {
        pg_sys::getTypeOutputInfo(value.kind.type_oid(), &raw mut function, &raw mut is_varlena);
        CStr::from_ptr(pg_sys::OidOutputFunctionCall(function, value.datum)).to_bytes().to_vec()
    }
}
