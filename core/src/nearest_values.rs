//! The values of a column around a limit: gathered while a table is read, and written as bytes that an entry keeps. What is kept are *runs*:
//! ascending values between the first and the last of which the table has no others. A run that is open at an end is followed by no others there.
//! Pure functions.
//!
//! As bytes, in the order of the machine: a tag (what values they are, 4 bytes), the number of runs (4), and for each run its open ends (4), the number of its values (4),
//! and the values (8 each).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::room::{OutOfMemory, RoomyVec};

/// Most values that are gathered on each side of the limit.
pub const MOST_VALUES: usize = 1024;
/// Most runs that are kept, the newest first.
pub const MOST_RUNS: u32 = 4;

/// Flags of a run.
const OPEN_BELOW: u32 = 1;
const OPEN_ABOVE: u32 = 2;

/// Values that are being gathered: those next to the limit, on each side of it.
#[derive(Debug)]
pub struct Nearest {
    below: BinaryHeap<Reverse<i64>>,
    above: BinaryHeap<i64>,
    lost: u32,
}

impl Nearest {
    /// None yet.
    ///
    /// # Errors
    /// There is no memory for as many as may be gathered.
    pub fn new() -> Result<Self, OutOfMemory> {
        let below = BinaryHeap::from(Vec::with_room(MOST_VALUES)?);
        Ok(Self { below, above: BinaryHeap::from(Vec::with_room(MOST_VALUES)?), lost: 0 })
    }

    /// Adds a value, which lies beyond the limit or not. Neither allocates nor panics.
    #[inline]
    pub fn add(&mut self, value: i64, is_beyond: bool) {
        let (lost, side) = if is_beyond {
            (keep(&mut self.above, value), OPEN_ABOVE)
        } else {
            (keep(&mut self.below, Reverse(value)), OPEN_BELOW)
        };
        if lost {
            self.lost |= side;
        }
    }

    /// The greatest value on the near side of the limit; `None` if there is none.
    #[must_use]
    pub fn lower(&self) -> Option<i64> {
        self.below.iter().map(|value| value.0).max()
    }

    /// The bytes to be kept: these values, and the newest runs of `older`, which have the same tag. All must be of the same state of the table.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn written(&self, tag: u32, older: Option<&[u8]>) -> Result<Vec<u8>, OutOfMemory> {
        let mut values = Vec::with_room(self.below.len() + self.above.len())?;
        values.extend(self.below.iter().map(|value| value.0).chain(self.above.iter().copied()));
        values.sort_unstable();
        values.dedup();
        let open = (OPEN_BELOW | OPEN_ABOVE) & !self.lost;
        let is_complete = open == OPEN_BELOW | OPEN_ABOVE;
        let older = older.filter(|_| !is_complete).and_then(|older| Runs::read(older, tag));
        let kept = older.map_or(0, |older| older.first(MOST_RUNS - 1).count());
        let old_bytes = |run: Run<'_>| 8 + run.values.len();
        let room: usize = older.map_or(0, |older| older.first(MOST_RUNS - 1).map(old_bytes).sum());
        let mut bytes = Vec::with_room(8 + 8 + values.len() * 8 + room)?;
        let count = kept as u32 + 1;
        for word in [tag, count, open, values.len() as u32] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        values.iter().for_each(|value| bytes.extend_from_slice(&value.to_ne_bytes()));
        for run in older.into_iter().flat_map(|older| older.first(MOST_RUNS - 1)) {
            bytes.extend_from_slice(&run.open.to_ne_bytes());
            bytes.extend_from_slice(&((run.values.len() / 8) as u32).to_ne_bytes());
            bytes.extend_from_slice(run.values);
        }
        Ok(bytes)
    }
}

/// Keeps a value among the `MOST_VALUES` least ones; says whether one that is not among them was left out.
fn keep<T: Ord>(heap: &mut BinaryHeap<T>, value: T) -> bool {
    if heap.len() < MOST_VALUES {
        heap.push(value);
        return false;
    }
    match heap.peek_mut() {
        Some(mut greatest) if value < *greatest => *greatest = value,
        Some(greatest) if value == *greatest => return false,
        _ => {}
    }
    true
}

/// The greatest value up to the limit, or below it if it is `excluded`, as kept bytes with this tag say: `Some(None)` if there is none, `None` if they do not tell.
#[must_use]
pub fn lower(bytes: &[u8], tag: u32, limit: i64, excluded: bool) -> Option<Option<i64>> {
    Runs::read(bytes, tag)?.first(MOST_RUNS).find_map(|run| run.lower(limit, excluded))
}

/// Kept runs.
#[derive(Clone, Copy)]
struct Runs<'b> {
    count: u32,
    bytes: &'b [u8],
}

/// One of them.
#[derive(Clone, Copy)]
struct Run<'b> {
    open: u32,
    values: &'b [u8],
}

impl<'b> Runs<'b> {
    /// `None` if the bytes have another tag.
    fn read(bytes: &'b [u8], tag: u32) -> Option<Self> {
        let (found, rest) = word(bytes)?;
        let (count, bytes) = word(rest)?;
        (found == tag).then_some(Self { count, bytes })
    }

    /// So many of them, at most.
    fn first(self, most: u32) -> impl Iterator<Item = Run<'b>> {
        let mut rest = self.bytes;
        (0..self.count.min(most)).map_while(move |_| {
            let (open, after) = word(rest)?;
            let (count, after) = word(after)?;
            let (values, after) = after.split_at_checked(count as usize * 8)?;
            rest = after;
            Some(Run { open, values })
        })
    }
}

impl Run<'_> {
    fn value(&self, place: usize) -> Option<i64> {
        let bytes = self.values.get(place.checked_mul(8)?..)?.first_chunk()?;
        Some(i64::from_ne_bytes(*bytes))
    }

    fn lower(&self, limit: i64, excluded: bool) -> Option<Option<i64>> {
        let count = self.values.len() / 8;
        let is_near = |value: i64| if excluded { value < limit } else { value <= limit };
        // The first value beyond the limit.
        let (mut first, mut end) = (0, count);
        while first < end {
            let middle = first + (end - first) / 2;
            if is_near(self.value(middle)?) { first = middle + 1 } else { end = middle }
        }
        let is_bounded_above = first < count || self.open & OPEN_ABOVE != 0;
        match first.checked_sub(1) {
            _ if !is_bounded_above => None,
            Some(place) => self.value(place).map(Some),
            None => (self.open & OPEN_BELOW != 0).then_some(None),
        }
    }
}

/// A number, and what follows.
fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u32::from_ne_bytes(*word), rest))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn gathered(values: &[i64], limit: i64, excluded: bool) -> Nearest {
        let mut nearest = Nearest::new().unwrap();
        for value in values {
            nearest.add(*value, if excluded { *value >= limit } else { *value > limit });
        }
        nearest
    }

    fn expected(values: &[i64], limit: i64, excluded: bool) -> Option<i64> {
        values.iter().copied().filter(|value| if excluded { *value < limit } else { *value <= limit }).max()
    }

    #[test]
    fn a_few_values_tell_for_all_limits() {
        let bytes = gathered(&[5, 3, 3, 9], 4, false).written(7, None).unwrap();
        for (limit, excluded, lower_value) in
            [(2, false, None), (3, true, None), (3, false, Some(3)), (9, true, Some(5)), (i64::MAX, false, Some(9))]
        {
            assert_eq!(lower(&bytes, 7, limit, excluded), Some(lower_value), "{limit}");
        }
        assert_eq!(lower(&bytes, 8, 4, false), None);
        assert_eq!(lower(&gathered(&[], 4, false).written(7, None).unwrap(), 7, 4, false), Some(None));
    }

    #[test]
    fn many_tell_near_the_limit_alone() {
        let most = MOST_VALUES as i64;
        let values: Vec<i64> = (0..most * 10).map(|value| value * 2).collect();
        let middle = most * 10 + 1;
        let first = gathered(&values, middle, false).written(7, None).unwrap();
        assert_eq!(lower(&first, 7, middle, false), Some(Some(middle - 1)));
        let last = middle - 1 + most * 2;
        for (limit, excluded, tells) in [
            (last - 1, false, true),
            (last, true, true),
            (last, false, false),
            (middle - most * 2, false, false),
            (0, false, false),
        ] {
            let found = lower(&first, 7, limit, excluded);
            assert_eq!(found, tells.then(|| expected(&values, limit, excluded)), "{limit}");
        }
        // Another limit adds a run; the fifth one displaces the first.
        let mut bytes = first;
        for place in 1..=4 {
            assert_eq!(lower(&bytes, 7, middle, false), Some(Some(middle - 1)));
            bytes = gathered(&values, place, false).written(7, Some(&bytes)).unwrap();
            assert_eq!(lower(&bytes, 7, place, false), Some(expected(&values, place, false)));
        }
        assert_eq!(lower(&bytes, 7, middle, false), None);
    }

    #[test]
    fn any_bytes_are_read() {
        for length in 0..40 {
            let _ = lower(&vec![0xFF; length], u32::MAX, 5, false);
            let _ = lower(&[[7, 0, 0, 0].as_slice(), &vec![3; length]].concat(), 7, 5, true);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_is_told_is_so(
            values in vec(prop_oneof![-60..60i64, Just(i64::MAX), Just(i64::MIN)], 0..3000),
            limits in vec((-70..70i64, any::<bool>()), 1..6),
            asked in vec((prop_oneof![-70..70i64, Just(i64::MAX), Just(i64::MIN)], any::<bool>()), 1..20),
        ) {
            // So many values that some are left out, apart from their neighbours.
            let spread: Vec<i64> = values.iter().enumerate().map(|(place, value)| value.saturating_mul(1 + place as i64 % 50)).collect();
            let mut bytes: Option<Vec<u8>> = None;
            for (limit, excluded) in limits {
                let nearest = gathered(&spread, limit, excluded);
                prop_assert_eq!(nearest.lower(), expected(&spread, limit, excluded));
                bytes = Some(nearest.written(3, bytes.as_deref()).unwrap());
                prop_assert_eq!(lower(bytes.as_deref().unwrap(), 3, limit, excluded), Some(expected(&spread, limit, excluded)));
            }
            for (limit, excluded) in asked {
                if let Some(told) = lower(bytes.as_deref().unwrap(), 3, limit, excluded) {
                    prop_assert_eq!(told, expected(&spread, limit, excluded));
                }
            }
        }
    }
}
