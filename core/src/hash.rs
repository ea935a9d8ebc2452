//! Hashes of 128 bits, and how they are made of parts. Pure values: nothing here is shared.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::room::RoomyVec;
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

/// A hash of 128 bits (xxh3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hash128 {
    /// Upper 64 bits.
    pub hi: u64,
    /// Lower 64 bits.
    pub lo: u64,
}

impl Hash128 {
    /// Stands for no hash at all. Nothing is likely to have this hash.
    pub const NONE: Self = Self { hi: 0, lo: 0 };

    /// The hash of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_digest(xxh3_128(bytes))
    }

    fn from_digest(digest: u128) -> Self {
        Self { hi: (digest >> 64) as u64, lo: digest as u64 }
    }

    /// A hash that differs from every other, here and in other processes.
    #[cold]
    fn unlike_any() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let words = [LAST.fetch_add(1, Relaxed), std::process::id().into(), now.as_secs(), now.subsec_nanos().into()];
        Self::of(words.map(u64::to_le_bytes).as_flattened())
    }
}

/// Parts, gathered and then hashed together: for a few hundred bytes that takes a fraction of the time of hashing one
/// after the other. Those of any length begin with it, so that ("ab", "c") and ("a", "bc") differ. Keeps its memory
/// when it is cleared.
///
/// If there is no memory for a part, the hash differs from every other.
#[derive(Default, Debug)]
pub struct HashBuffer {
    bytes: Vec<u8>,
    /// The secret that the hash is made with.
    seed: u64,
    /// A part is missing.
    incomplete: bool,
}

/// Takes values that can be hashed: the same program makes the same bytes of the same values.
impl std::hash::Hasher for HashBuffer {
    fn write(&mut self, bytes: &[u8]) {
        self.add(bytes);
    }

    fn finish(&self) -> u64 {
        Self::finish(self).lo
    }
}

impl HashBuffer {
    /// An empty one, without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), seed: 0, incomplete: false }
    }

    /// Forgets all parts, and the secret.
    pub fn clear(&mut self) {
        self.incomplete = false;
        self.seed = 0;
        self.bytes.clear();
    }

    /// Sets the secret. Two texts with the same hash are quickly made by whoever knows it, and a secret that is hashed
    /// like any other part does not keep him from that.
    pub fn seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Adds one part, preceded by its length.
    pub fn part(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.add(bytes);
    }

    #[inline(always)]
    fn add(&mut self, bytes: &[u8]) {
        if self.bytes.add_all(bytes).is_err() {
            self.incomplete = true;
        }
    }

    /// Adds one byte, without a length.
    pub fn u8(&mut self, value: u8) {
        self.add(&[value]);
    }

    /// Adds four bytes, little-endian, without a length.
    pub fn u32(&mut self, value: u32) {
        self.add(&value.to_le_bytes());
    }

    /// Adds several words at once, as `u32` would.
    pub fn words<const N: usize>(&mut self, words: [u32; N]) {
        self.add(words.map(u32::to_le_bytes).as_flattened());
    }

    /// Adds eight bytes, little-endian, without a length.
    pub fn u64(&mut self, value: u64) {
        self.add(&value.to_le_bytes());
    }

    /// Adds a hash.
    pub fn hash(&mut self, hash: Hash128) {
        self.u64(hash.hi);
        self.u64(hash.lo);
    }

    /// Adds all parts of another.
    pub fn append(&mut self, other: &Self) {
        self.add(&other.bytes);
        self.incomplete |= other.incomplete;
    }

    /// Bytes gathered so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if nothing has been gathered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The hash of what was gathered. If a part could not be added, a hash that nothing else has.
    #[must_use]
    pub fn finish(&self) -> Hash128 {
        if self.incomplete {
            return Hash128::unlike_any();
        }
        Hash128::from_digest(xxh3_128_with_seed(&self.bytes, self.seed))
    }

    /// Returns true if all parts could be added.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.incomplete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(parts: &[&[u8]]) -> Hash128 {
        let mut hasher = HashBuffer::new();
        for part in parts {
            hasher.part(part);
        }
        hasher.finish()
    }

    /// Where a number is zero that the hash multiplies by another one, that one counts in a sum alone.
    #[test]
    fn a_secret_tells_texts_apart_that_were_made_to_have_one_hash() {
        let crafted = |first: u8, second: u8, seed: u64| {
            let mut text = [0; 1024];
            // The first numbers of xxh3's own secret, for the first two stripes of 64 bytes.
            text[..5].copy_from_slice(&[0xb8, 0xfe, 0x6c, 0x39, first]);
            text[64..69].copy_from_slice(&[0x7c, 0x01, 0x81, 0x2c, second]);
            let mut hash = HashBuffer::new();
            hash.seed(seed);
            text.iter().for_each(|byte| hash.u8(*byte));
            hash.finish()
        };
        assert_eq!(crafted(5, 7, 0), crafted(6, 6, 0));
        for seed in [1, 0x5eed, u64::MAX] {
            assert_ne!(crafted(5, 7, seed), crafted(6, 6, seed));
        }
    }

    #[test]
    fn parts_are_delimited() {
        assert_ne!(hash_of(&[b"ab", b"c"]), hash_of(&[b"a", b"bc"]));
        assert_ne!(hash_of(&[b"ab"]), hash_of(&[b"ab", b""]));
        assert_ne!(hash_of(&[]), hash_of(&[b""]));
    }

    #[test]
    fn what_lacks_a_part_is_like_nothing_else() {
        let lacking = || {
            let mut key = HashBuffer::new();
            key.part(b"x");
            key.incomplete = true;
            key
        };
        let (first, second) = (lacking(), lacking());
        assert!(!first.is_complete());
        assert_ne!(first.finish(), second.finish());
        assert_ne!(first.finish(), first.finish());
        let mut all = HashBuffer::new();
        all.append(&first);
        assert!(!all.is_complete());
        all.clear();
        all.part(b"x");
        assert!(all.is_complete());
        assert_eq!(all.finish(), hash_of(&[b"x"]));
    }

    #[test]
    fn equal_input_equal_key() {
        assert_eq!(hash_of(&[b"select 1", b"x"]), hash_of(&[b"select 1", b"x"]));
    }

    #[test]
    fn integers_count() {
        let mut first = HashBuffer::new();
        first.u8(1);
        first.u32(2);
        first.u64(3);
        let mut second = HashBuffer::new();
        second.u8(1);
        second.u32(2);
        second.u64(4);
        assert_ne!(first.finish(), second.finish());
    }
}
