//! What `arrow_cache.why` tells of a time that a query compares with a column. Keeps nothing.

use pgrx::pg_sys;

use crate::pg::tree::Tree;
use crate::query::clock::{Clock, Computed, Sight, with_values};
use crate::query::{Cacheable, Verdict, plan_marker};

/// A column that is compared with a moving time, and that no index of its table begins with. Parameters count as NULL. The relations of the plan are
/// locked, and the snapshot is active.
pub fn compared_column(
    plan: Tree<'_, pg_sys::PlannedStmt>,
    snapshot: Option<&pg_sys::SnapshotData>,
) -> Option<(pg_sys::Oid, i16)> {
    let Verdict::Cacheable(Cacheable { clock: trees, .. }) = plan_marker::read(plan) else { return None };
    let sight = snapshot.map(|snapshot| Sight { snapshot, relations: None, plan: Some(plan), unindexed: None })?;
    let clock = Clock { trees, params: None, one_message: true, sight: Some(sight) };
    let is_unknown = |computed: &&Computed| {
        computed.split.is_some_and(|split| !computed.value.is_null && computed.canonical_bound(&split, &sight).is_err())
    };
    let unknown = with_values(&clock, |values| values.iter().find(is_unknown).and_then(|computed| computed.split));
    unknown.ok().flatten().map(|split| (split.relation, split.column))
}
