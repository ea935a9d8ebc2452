//! Compares two results of any size in constant memory: each is reduced to a digest, row by row. Pure values: nothing
//! here is shared.
//!
//! The hashes of the rows are added, so the order of the rows does not matter, but the number of times each row came
//! does. Hashes are 128 bits wide and seeded with a secret, so equal digests stand for the same rows.

use crate::hash::Hash128;

/// The digest of a result.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Digest {
    rows: u64,
    sum: u128,
}

impl Digest {
    /// Adds a row by its hash.
    pub fn add(&mut self, row: Hash128) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(u128::from(row.hi) << 64 | u128::from(row.lo));
    }

    /// Rows added so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn digest(rows: &[u32]) -> Digest {
        let mut digest = Digest::default();
        for row in rows {
            digest.add(Hash128::of(&row.to_le_bytes()));
        }
        digest
    }

    #[test]
    fn equal_rows_do_not_cancel_out() {
        // What a combination by exclusive or would not see.
        assert_ne!(digest(&[1, 1]), digest(&[2, 2]));
        assert_ne!(digest(&[1]), digest(&[1, 1]));
    }

    proptest! {
        #[test]
        fn agrees_with_sorting(left in prop::collection::vec(0u32..4, 0..6), right in prop::collection::vec(0u32..4, 0..6)) {
            let sorted = |rows: &[u32]| { let mut rows = rows.to_vec(); rows.sort_unstable(); rows };
            prop_assert_eq!(digest(&left) == digest(&right), sorted(&left) == sorted(&right));
        }
    }
}
