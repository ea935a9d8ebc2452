//! Partitions by ranges of one column.

use std::cmp::Ordering;

use pgrx::pg_sys;

use super::bound::{Comparison, Interval};
use super::limits::{Fate, Limits};
use super::order::{Order, Place};

/// Decides what the comparisons mean for each partition by a range. Such a partition holds no NULL; a default partition is left as it is.
pub fn decide(limits: &Limits<'_>, order: &Order, comparisons: &[Comparison], fates: &mut [Fate]) {
    for comparison in comparisons {
        let place = Place::search(limits.len(), |number| match limits.kind(number) {
            pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MINVALUE => Ordering::Less,
            pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MAXVALUE => Ordering::Greater,
            _ => order.compare(limits.value(number), comparison.value),
        });
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
}
