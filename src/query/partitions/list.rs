//! Partitions by lists of values of one column.

use super::bound::Comparison;
use super::limits::{Fate, Limits};
use super::order::{Order, Place};

/// Decides what the comparisons mean for each partition by a list. NULL passes no comparison. The default partition has
/// none of the listed values; as in the planner, it may have rows for anything else.
pub fn decide(limits: &Limits<'_>, order: &Order, comparisons: &[Comparison], fates: &mut [Fate]) {
    if comparisons.is_empty() {
        return;
    }
    let all = comparisons.iter().fold(0, |bits, comparison| bits | comparison.bit);
    for (partition, fate) in fates.iter_mut().enumerate() {
        if limits.default_partition() != Some(partition) {
            *fate = Fate { is_empty: true, implied: all };
        }
    }
    let places: Vec<Place> = comparisons
        .iter()
        .map(|comparison| Place::search(limits.len(), |number| order.compare(limits.value(number), comparison.value)))
        .collect();
    for number in 0..limits.len() {
        let Some(fate) = limits.partition(number).and_then(|partition| fates.get_mut(partition)) else { continue };
        let passed = comparisons
            .iter()
            .zip(&places)
            .filter(|(comparison, place)| comparison.holds(place.of(number)))
            .fold(0, |bits, (comparison, _)| bits | comparison.bit);
        fate.is_empty &= passed != all;
        fate.implied &= passed;
    }
    if let Some(fate) = limits.null_partition().and_then(|partition| fates.get_mut(partition)) {
        fate.implied = 0;
    }
    if let Some(fate) = limits.default_partition().and_then(|partition| fates.get_mut(partition)) {
        let is_listed = |(comparison, place): (&Comparison, &Place)| {
            comparison.is_equality() && (0..limits.len()).any(|number| place.of(number).is_eq())
        };
        fate.is_empty = comparisons.iter().zip(&places).any(is_listed);
    }
}
