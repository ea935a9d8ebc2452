//! Compares two results of any size in constant memory: each is reduced to a digest, row by row. Pure values: nothing here is shared.
//!
//! The hashes of the rows are added, so the order of the rows does not matter, but the number of times each row came does. Where the query
//! fixes a part of the order, the hashes of those parts are combined by position as well. Hashes are 128 bits wide and seeded with a
//! secret, so equal digests stand for equal results.

use crate::hash::Hash128;

/// Odd, so that multiplying never loses the hash of an earlier position. The digits of the golden ratio; another odd number would do.
const STEP: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;

/// The digest of a result.
#[derive(Clone, Copy, Default, Debug)]
pub struct Digest {
    rows: u64,
    sum: u128,
    sequence: u128,
}

/// How two results differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Difference {
    /// One has more rows.
    RowCount,
    /// The number of rows is the same, the rows are not.
    Values,
    /// The same rows, in an order that the query does not allow for one of them.
    Order,
}

impl Digest {
    /// Adds a row by its hash, and by the hash of those of its values that fix its place (the same for all rows if none do).
    pub fn add(&mut self, row: Hash128, place: Hash128) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(number(row));
        self.sequence = self.sequence.wrapping_mul(STEP).wrapping_add(number(place));
    }

    /// Rows added so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The first difference between two results, in the order of [`Difference`].
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        if self.rows != other.rows {
            Some(Difference::RowCount)
        } else if self.sum != other.sum {
            Some(Difference::Values)
        } else if self.sequence != other.sequence {
            Some(Difference::Order)
        } else {
            None
        }
    }
}

fn number(key: Hash128) -> u128 {
    u128::from(key.hi) << 64 | u128::from(key.lo)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::StreamHasher;
    use proptest::prelude::*;

    fn hash(value: u32) -> Hash128 {
        let mut hasher = StreamHasher::new();
        hasher.u32(value);
        hasher.finish()
    }

    /// Of rows whose values are given and whose place is fixed by the tens.
    fn digest(rows: &[u32]) -> Digest {
        let mut digest = Digest::default();
        for row in rows {
            digest.add(hash(*row), hash(*row / 10));
        }
        digest
    }

    fn difference(left: &[u32], right: &[u32]) -> Option<Difference> {
        let found = digest(left).difference(&digest(right));
        assert_eq!(found, digest(right).difference(&digest(left)), "the sides may be exchanged");
        found
    }

    #[test]
    fn counts_rows() {
        assert_eq!(digest(&[]).rows(), 0);
        assert_eq!(digest(&[7, 7]).rows(), 2);
        assert_eq!(difference(&[], &[]), None);
        assert_eq!(difference(&[], &[1]), Some(Difference::RowCount));
        assert_eq!(difference(&[1], &[1, 1]), Some(Difference::RowCount));
    }

    #[test]
    fn tells_values_apart() {
        assert_eq!(difference(&[1, 2, 3], &[1, 2, 4]), Some(Difference::Values));
        assert_eq!(difference(&[1, 1, 2], &[1, 2, 2]), Some(Difference::Values));
        // What a combination by exclusive or would not see.
        assert_eq!(difference(&[1, 1], &[2, 2]), Some(Difference::Values));
    }

    #[test]
    fn order_matters_where_it_is_fixed() {
        assert_eq!(difference(&[11, 12, 25], &[12, 11, 25]), None);
        assert_eq!(difference(&[11, 12, 25], &[25, 12, 11]), Some(Difference::Order));
        assert_eq!(difference(&[10, 20, 10], &[20, 10, 10]), Some(Difference::Order));
    }

    proptest! {
        #[test]
        fn agrees_with_sorting(left in prop::collection::vec(0u32..40, 0..6), right in prop::collection::vec(0u32..40, 0..6)) {
            let sorted = |rows: &[u32]| { let mut rows = rows.to_vec(); rows.sort_unstable(); rows };
            let places = |rows: &[u32]| rows.iter().map(|row| row / 10).collect::<Vec<_>>();
            let expected = if left.len() != right.len() {
                Some(Difference::RowCount)
            } else if sorted(&left) != sorted(&right) {
                Some(Difference::Values)
            } else if places(&left) != places(&right) {
                Some(Difference::Order)
            } else {
                None
            };
            prop_assert_eq!(difference(&left, &right), expected);
        }

        #[test]
        fn shuffling_is_seen_by_places_only(rows in prop::collection::vec(0u32..1000, 0..50).prop_shuffle(), seed in any::<u64>()) {
            let mut shuffled = rows.clone();
            let length = shuffled.len();
            for index in 1..length {
                shuffled.swap(index, (seed as usize).wrapping_mul(index) % (index + 1));
            }
            let places = |rows: &[u32]| rows.iter().map(|row| row / 10).collect::<Vec<_>>();
            let expected = (places(&rows) != places(&shuffled)).then_some(Difference::Order);
            prop_assert_eq!(difference(&rows, &shuffled), expected);
        }
    }
}
