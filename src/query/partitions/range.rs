//! Partitions by ranges of one column.

use std::cmp::Ordering;

use pgrx::pg_sys;

use super::bound::{Comparison, Interval};
use super::limits::{Fate, Limits};
use super::order::{Order, Place};

/// Decides what the comparisons mean for each partition by a range. Such a partition holds no NULL; a default partition holds what is in
/// no range, and is empty if the comparisons leave nothing between the ranges, as the planner finds it.
pub fn decide(limits: &Limits<'_>, order: &Order, comparisons: &[Comparison], fates: &mut [Fate]) {
    let mut ends = (0, limits.len());
    for comparison in comparisons {
        let place = Place::search(limits.len(), |number| match limits.kind(number) {
            pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MINVALUE => Ordering::Less,
            pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MAXVALUE => Ordering::Greater,
            _ => order.compare(limits.value(number), comparison.value),
        });
        let (first, last) = without_infinities(limits, comparison.ends(&place, limits.len()));
        ends = (first.max(ends.0), last.min(ends.1));
        // A partition ends before the value that leads to it, and begins with the one before that.
        for end in 1..limits.len() {
            let Some(fate) = limits.partition(end).and_then(|partition| fates.get_mut(partition)) else { continue };
            let is_finite = limits.kind(end) == pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_VALUE;
            let last = if is_finite { order.compare_last_before(limits.value(end), comparison.value) } else { None };
            let values = Interval { first: place.of(end - 1), end: place.of(end), last };
            fate.is_empty |= comparison.excludes(&values);
            if comparison.is_implied_by(&values) {
                fate.implied |= comparison.bit;
            }
        }
    }
    if !comparisons.is_empty()
        && limits.len() > 0
        && let Some(fate) = limits.default_partition().and_then(|partition| fates.get_mut(partition))
    {
        fate.is_empty = !(ends.0..=ends.1).any(|end| limits.partition(end).is_none());
    }
}

/// The ends of ranges without those before MINVALUE and after MAXVALUE, where there are no values.
fn without_infinities(limits: &Limits<'_>, (first, last): (usize, usize)) -> (usize, usize) {
    let is_first = first == 0 && limits.len() > 0 && limits.partition(0).is_none();
    let is_last = last >= 1 && last == limits.len() && limits.partition(last).is_none();
    let minimum = pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MINVALUE;
    let maximum = pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MAXVALUE;
    let first = if is_first && limits.kind(0) == minimum { first + 1 } else { first };
    let last = if is_last && limits.kind(last - 1) == maximum { last - 1 } else { last };
    (first, last)
}
