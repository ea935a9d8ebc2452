//! Compares two results of any size in constant memory: each is reduced to a digest, row by row. Pure values: nothing here is shared.
//!
//! The hashes of the rows are added, so the order of the rows does not matter, but the number of times each row came does. Where the query
//! fixes a part of the order, the hashes of those parts are combined by position as well. Hashes are 128 bits wide and seeded with a
//! secret, so equal digests stand for equal results.
//!
//! LIMIT and OFFSET cut a result out of a longer one. Which of the rows that share the place of the last one lie inside
//! is left open then, and so with the first one. The rows in between are fixed.

use crate::hash::Hash128;

/// Odd, so that multiplying never loses the hash of an earlier position. The digits of the golden ratio; another odd number would do.
const STEP: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;

/// The digest of a result.
#[derive(Clone, Copy, Default, Debug)]
pub struct Digest {
    rows: u64,
    sum: u128,
    sequence: u128,
    /// The place of the last row.
    place: u128,
    /// How many groups of neighbours with the same place there are.
    groups: u64,
    /// `sum` at the end of the first group, once there is a second one.
    after_first: u128,
    /// `sum` at the beginning of the last group.
    before_last: u128,
}

/// Which ends of a result were cut off.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cut {
    /// There may be rows before the first one.
    pub before: bool,
    /// There may be rows behind the last one.
    pub behind: bool,
}

impl Cut {
    /// Returns true if this is the whole result.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
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
        if self.rows == 0 || self.place != number(place) {
            self.place = number(place);
            self.before_last = self.sum;
            if self.groups == 1 {
                self.after_first = self.sum;
            }
            self.groups += 1;
        }
        self.rows += 1;
        self.sum = self.sum.wrapping_add(number(row));
        self.sequence = self.sequence.wrapping_mul(STEP).wrapping_add(number(place));
    }

    /// Rows added so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The first difference between two results that are cut in the same way, in the order of [`Difference`].
    #[must_use]
    pub fn difference(&self, other: &Self, cut: Cut) -> Option<Difference> {
        if self.rows != other.rows {
            Some(Difference::RowCount)
        } else if self.fixed_sum(cut) != other.fixed_sum(cut) {
            Some(Difference::Values)
        } else if self.sequence == other.sequence {
            None
        } else if cut.is_none() {
            Some(Difference::Order)
        } else {
            Some(Difference::Values)
        }
    }
}

impl Digest {
    /// The sum of the rows that are in every right answer.
    fn fixed_sum(&self, cut: Cut) -> u128 {
        if self.groups <= 1 && !cut.is_none() {
            return 0;
        }
        let end = if cut.behind { self.before_last } else { self.sum };
        end.wrapping_sub(if cut.before { self.after_first } else { 0 })
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
        difference_of_cut(left, right, Cut::default())
    }

    fn difference_of_cut(left: &[u32], right: &[u32], cut: Cut) -> Option<Difference> {
        let found = digest(left).difference(&digest(right), cut);
        assert_eq!(found, digest(right).difference(&digest(left), cut), "the sides may be exchanged");
        found
    }

    const BEHIND: Cut = Cut { before: false, behind: true };
    const BEFORE: Cut = Cut { before: true, behind: false };
    const BOTH: Cut = Cut { before: true, behind: true };

    #[test]
    fn rows_at_a_cut_are_free() {
        for cut in [BEHIND, BOTH] {
            assert_eq!(difference_of_cut(&[11, 25, 31, 32], &[11, 25, 33, 34], cut), None, "of the last place");
            assert_eq!(difference_of_cut(&[11, 25, 31], &[11, 26, 31], cut), Some(Difference::Values));
            assert_eq!(difference_of_cut(&[11, 25, 31], &[11, 25, 41], cut), Some(Difference::Values));
            assert_eq!(difference_of_cut(&[11, 12], &[13, 14], cut), None, "all have the same place");
            assert_eq!(difference_of_cut(&[11, 12], &[13], cut), Some(Difference::RowCount));
        }
        assert_eq!(difference_of_cut(&[11, 25], &[12, 25], BEHIND), Some(Difference::Values));
        for cut in [BEFORE, BOTH] {
            assert_eq!(difference_of_cut(&[11, 25, 31], &[12, 25, 31], cut), None, "of the first place");
            assert_eq!(difference_of_cut(&[11, 12, 25, 31], &[13, 14, 26, 31], cut), Some(Difference::Values));
            assert_eq!(difference_of_cut(&[11, 25], &[21, 25], cut), Some(Difference::Values));
            assert_eq!(difference_of_cut(&[11], &[12], cut), None);
        }
        assert_eq!(difference_of_cut(&[11, 25], &[11, 26], BEFORE), Some(Difference::Values));
        assert_eq!(difference_of_cut(&[11, 25], &[12, 26], BOTH), None);
        assert_eq!(difference_of_cut(&[], &[], BOTH), None);
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

        /// Two right answers to a query with ORDER BY, LIMIT and OFFSET are alike; one with another row than these is
        /// not, if it stands between the places of the first row and of the last.
        #[test]
        fn any_cut_of_the_same_rows_is_right(
            mut rows in prop::collection::vec(0u32..60, 0..12),
            other in prop::collection::vec(0u32..60, 12),
            offset in 0usize..8,
            limit in 1usize..8,
        ) {
            let answer = |rows: &[u32]| rows.iter().skip(offset).take(limit).copied().collect::<Vec<_>>();
            rows.sort_unstable();
            let first = answer(&rows);
            // Another order of the rows of each place.
            rows.sort_by_key(|row| (row / 10, other[*row as usize % 12]));
            let second = answer(&rows);
            let cut = Cut { before: offset > 0, behind: first.len() == limit };
            prop_assert_eq!(difference_of_cut(&first, &second, cut), None);
            let place = |row: Option<&u32>| row.map(|row| row / 10);
            let between = |row: &u32| place(Some(row)) > place(first.first()) && place(Some(row)) < place(first.last());
            if let Some(changed) = first.iter().position(between) {
                let mut wrong = first.clone();
                wrong[changed] = wrong[changed] / 10 * 10 + (wrong[changed] + 1) % 10;
                prop_assert_eq!(difference_of_cut(&first, &wrong, cut), Some(Difference::Values));
            }
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
