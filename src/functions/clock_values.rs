//! The values of the clock that stand in a query's key, as `arrow_cache.why` shows them. Keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Datum};

use crate::lookup::{Effort, RowBounds, snapshot_view};
use crate::pg::privileges;
use crate::pg::tree::Tree;
use crate::query::clock::{Clock, ClockTrees, Computed, Sight, Split, with_values};
use crate::query::{Cacheable, Verdict, plan_marker};
use crate::shmem::SharedStore;

/// The values of the clock in the key of a query with this plan, as texts; none if it does not ask for the time. Parameters count as NULL.
/// Its relations are locked, and the snapshot is active.
pub fn of_plan(
    store: &SharedStore,
    plan: Tree<'_, pg_sys::PlannedStmt>,
    snapshot: Option<&pg_sys::SnapshotData>,
) -> Vec<Vec<u8>> {
    let trees = trees_of(plan);
    if trees.is_none() {
        return Vec::new();
    }
    let view = snapshot_view(store, snapshot).ok();
    let bounds =
        snapshot.zip(view.as_ref()).map(|(data, view)| RowBounds::new(store, data, view, Effort::Look).of_plan(plan));
    let sight = bounds.as_ref().map(|bounds| bounds.sight(None));
    let clock = Clock { trees, params: None, one_message: true, sight };
    with_values(&clock, |values| values.iter().map(|value| shown(value, sight.as_ref())).collect()).unwrap_or_default()
}

fn trees_of(plan: Tree<'_, pg_sys::PlannedStmt>) -> ClockTrees {
    match plan_marker::read(plan) {
        Verdict::Cacheable(Cacheable { clock, .. }) => clock,
        _ => ClockTrees::NONE,
    }
}

/// A value as its type's output function shows it, or what stands in its place.
fn shown(computed: &Computed, sight: Option<&Sight<'_>>) -> Vec<u8> {
    let Computed { value, split, .. } = computed;
    if value.is_null {
        return b"NULL".to_vec();
    }
    let Some(split) = split else { return text_of(value.type_oid, value.datum) };
    if !is_readable(split) {
        return b"a time in rows that you may not read".to_vec();
    }
    match sight.map(|sight| computed.canonical_bound(split, sight)) {
        Some(Ok(Some(bound))) => [text_of(split.type_oid, bound), b" as the last row before".to_vec()].concat(),
        Some(Ok(None)) => b"no row before".to_vec(),
        _ => b"the last row before, which is found by reading the table".to_vec(),
    }
}

/// A column that is compared with a moving time, and that no index of its table begins with.
pub fn unindexed(
    plan: Tree<'_, pg_sys::PlannedStmt>,
    snapshot: Option<&pg_sys::SnapshotData>,
) -> Option<(pg_sys::Oid, i16)> {
    let sight = snapshot.map(|snapshot| Sight { snapshot, relations: None, plan: Some(plan), unindexed: None })?;
    let clock = Clock { trees: trees_of(plan), params: None, one_message: true, sight: Some(sight) };
    let is_unknown = |computed: &&Computed| {
        computed.split.is_some_and(|split| !computed.value.is_null && computed.canonical_bound(&split, &sight).is_err())
    };
    let unknown = with_values(&clock, |values| values.iter().find(is_unknown).and_then(|computed| computed.split));
    unknown.ok().flatten().map(|split| (split.relation, split.column))
}

/// May the user read all rows of the relation? A canonical bound is a value of any of them.
fn is_readable(split: &Split) -> bool {
    privileges::may_read_all_rows(split.relation)
}

fn text_of(type_oid: pg_sys::Oid, datum: Datum) -> Vec<u8> {
    let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
    // SAFETY: a value of that type, as the server's function computed it; the text is copied before its context is emptied.
    unsafe {
        kept!(pg_sys::getTypeOutputInfo(type_oid, &raw mut function, &raw mut is_varlena));
        CStr::from_ptr(kept!(pg_sys::OidOutputFunctionCall(function, datum))).to_bytes().to_vec()
    }
}
