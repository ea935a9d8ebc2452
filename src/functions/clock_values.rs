//! The values of the clock that stand in a query's key, as `arrow_cache.why` shows them. Keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Datum};

use crate::pg::tree::{Tree, child};
use crate::query::clock::{Clock, ClockTrees, Computed, too_dear, with_values};
use crate::query::{Cacheable, Verdict, plan_marker};

/// The values of the clock in the key of a query with this plan, as texts, and what stands for those that are not; none if it does not ask
/// for the time. Parameters count as NULL.
pub fn of_plan(plan: Tree<'_, pg_sys::PlannedStmt>) -> Vec<Vec<u8>> {
    let trees = trees_of(plan);
    if trees.is_none() {
        return Vec::new();
    }
    let clock = Clock { trees, params: None, one_message: true };
    with_values(&clock, |values| values.iter().map(shown).collect()).unwrap_or_default()
}

fn trees_of(plan: Tree<'_, pg_sys::PlannedStmt>) -> ClockTrees {
    match plan_marker::read(plan) {
        Verdict::Cacheable(Cacheable { clock, .. }) => clock,
        _ => ClockTrees::NONE,
    }
}

/// A value as its type's output function shows it, or what stands in its place.
fn shown(Computed { value, split, .. }: &Computed) -> Vec<u8> {
    match split {
        _ if value.is_null => b"NULL".to_vec(),
        None => text_of(value.type_oid, value.datum),
        Some(_) => b"a time between two rows".to_vec(),
    }
}

/// A column that is compared with a moving time, and in which the rows around that cost too much to find.
pub fn unindexed(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<(pg_sys::Oid, i16)> {
    let clock = Clock { trees: trees_of(plan), params: None, one_message: true };
    too_dear(&clock, child!(plan.planTree)?.total_cost)
}

fn text_of(type_oid: pg_sys::Oid, datum: Datum) -> Vec<u8> {
    let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
    // SAFETY: a value of that type, as the server's function computed it; the text is copied before its context is emptied.
    unsafe {
        kept!(pg_sys::getTypeOutputInfo(type_oid, &raw mut function, &raw mut is_varlena));
        CStr::from_ptr(kept!(pg_sys::OidOutputFunctionCall(function, datum))).to_bytes().to_vec()
    }
}
