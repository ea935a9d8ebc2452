//! Hashes of 128 bits, and how they are made of parts. Pure values: nothing here is shared.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::room::RoomyVec;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

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
        let mut hasher = StreamHasher::new();
        hasher.u64(LAST.fetch_add(1, Relaxed));
        hasher.u32(std::process::id());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        hasher.u64(now.as_secs());
        hasher.u32(now.subsec_nanos());
        hasher.finish()
    }
}

/// Parts like those of [`StreamHasher`], gathered and then hashed together: for the few hundred bytes of a statement that takes a fraction
/// of the time. Keeps its memory when it is cleared.
///
/// If there is no memory for a part, the hash differs from every other.
#[derive(Default, Debug)]
pub struct HashBuffer {
    bytes: Vec<u8>,
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
        Self { bytes: Vec::new(), incomplete: false }
    }

    /// Forgets all parts.
    pub fn clear(&mut self) {
        self.incomplete = false;
        self.bytes.clear();
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

    /// Has nothing been gathered?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Drops all parts behind the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// The hash of what was gathered: the same as that of a [`StreamHasher`] with the same parts. If a part could not be added, a hash that
    /// nothing else has.
    #[must_use]
    pub fn finish(&self) -> Hash128 {
        if self.incomplete { Hash128::unlike_any() } else { Hash128::from_digest(xxh3_128(&self.bytes)) }
    }

    /// Could all parts be added?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.incomplete
    }
}

/// Streaming xxh3-128 over length-delimited parts, so that ("ab", "c") and ("a", "bc") differ. Allocates nothing.
pub struct StreamHasher {
    state: Xxh3,
}

impl StreamHasher {
    /// A hasher that has seen nothing but a secret, which keeps outsiders from constructing collisions.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        // Added like any other part: xxh3's own seeding derives a new secret each time, at ten times the cost.
        let mut hasher = Self::new();
        hasher.u64(seed);
        hasher
    }

    /// A hasher that has seen nothing, without a seed.
    #[must_use]
    pub fn new() -> Self {
        Self { state: Xxh3::new() }
    }

    /// Adds one part, preceded by its length.
    pub fn part(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.state.update(bytes);
    }

    /// Adds one byte, without a length.
    pub fn u8(&mut self, value: u8) {
        self.state.update(&[value]);
    }

    /// Adds four bytes, little-endian, without a length.
    pub fn u32(&mut self, value: u32) {
        self.state.update(&value.to_le_bytes());
    }

    /// Adds eight bytes, little-endian, without a length.
    pub fn u64(&mut self, value: u64) {
        self.state.update(&value.to_le_bytes());
    }

    /// The hash of what was added so far; more may be added afterwards.
    #[must_use]
    pub fn finish(&self) -> Hash128 {
        Hash128::from_digest(self.state.digest128())
    }
}

impl Default for StreamHasher {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(parts: &[&[u8]]) -> Hash128 {
        let mut hasher = StreamHasher::new();
        for part in parts {
            hasher.part(part);
        }
        hasher.finish()
    }

    #[test]
    fn parts_are_delimited() {
        assert_ne!(hash_of(&[b"ab", b"c"]), hash_of(&[b"a", b"bc"]));
        assert_ne!(hash_of(&[b"ab"]), hash_of(&[b"ab", b""]));
        assert_ne!(hash_of(&[]), hash_of(&[b""]));
    }

    #[test]
    fn gathered_parts_give_the_key_of_streamed_ones() {
        for length in [0, 1, 15, 16, 17, 128, 129, 240, 241, 5_000] {
            let text: Vec<u8> = (0..length).map(|byte: u32| byte as u8).collect();
            let (mut streamed, mut gathered) = (StreamHasher::new(), HashBuffer::new());
            streamed.u8(7);
            gathered.u8(7);
            streamed.u32(8);
            streamed.u32(9);
            gathered.words([8, 9]);
            streamed.part(&text);
            gathered.part(&text);
            assert_eq!(streamed.finish(), gathered.finish(), "{length} bytes");
        }
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
        let mut first = StreamHasher::new();
        first.u8(1);
        first.u32(2);
        first.u64(3);
        let mut second = StreamHasher::new();
        second.u8(1);
        second.u32(2);
        second.u64(4);
        assert_ne!(first.finish(), second.finish());
    }

    #[test]
    fn long_parts_stream() {
        let long = vec![7u8; 10_000];
        let mut other = long.clone();
        other[9_999] = 8;
        assert_ne!(hash_of(&[&long]), hash_of(&[&other]));
    }
}
