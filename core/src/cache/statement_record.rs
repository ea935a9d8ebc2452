//! The record of what became of the executions of a statement. `statements` says who writes it, and under which lock.
//! All fields are atomics, so that zeroed memory is a record of nothing.

use crate::atomics::{AtomicI64, AtomicU64, Ordering::Relaxed};
use crate::reason::Reason;

/// Records in a set of the table that all share.
pub(crate) const WAYS: usize = 8;

/// A statement, by the words that pg_stat_statements has for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StatementKey {
    /// Never 0, which means that the server has computed none.
    pub query_id: i64,
    /// The role that asks.
    pub user: u32,
    /// Its database.
    pub database: u32,
}

impl StatementKey {
    fn words(self) -> [u64; 2] {
        [self.query_id.cast_unsigned(), u64::from(self.user) << 32 | u64::from(self.database)]
    }

    fn from_words([query, owner]: [u64; 2]) -> Option<Self> {
        (query != 0).then_some(Self {
            query_id: query.cast_signed(),
            user: (owner >> 32) as u32,
            database: owner as u32,
        })
    }

    /// Spread over all bits; query ids are hashes already, roles and databases are not.
    pub(crate) fn hash(self) -> u64 {
        let [query, owner] = self.words();
        (query ^ owner.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8
    }
}

/// What is counted of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum StatementCounter {
    /// Answered from the cache.
    Hits,
    /// No answer was there.
    Misses,
    /// An outdated answer was there, and not given.
    Stale,
    /// An outdated answer was given, as asked for.
    StaleHits,
    /// Executed without a lookup, or in spite of one.
    Bypasses,
}

const COUNTERS: usize = 5;

/// What became of a statement so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatementCounts {
    counts: [u64; COUNTERS],
    /// The execution time that hits saved, in microseconds.
    pub saved_micros: u64,
    /// Why it was not served or not stored, the last time that this happened.
    pub last_reason: Option<Reason>,
}

impl StatementCounts {
    /// One execution.
    #[must_use]
    pub fn one(counter: StatementCounter) -> Self {
        let mut counts = [0; COUNTERS];
        counts[counter as usize] = 1;
        Self { counts, ..Self::default() }
    }

    /// The same, and the time that it saved.
    #[must_use]
    pub fn saving(self, saved_micros: u64) -> Self {
        Self { saved_micros, ..self }
    }

    /// The same, and why it was not served or not stored.
    #[must_use]
    pub fn because(self, last_reason: Option<Reason>) -> Self {
        Self { last_reason, ..self }
    }

    /// How often.
    #[must_use]
    pub fn count(&self, counter: StatementCounter) -> u64 {
        self.counts[counter as usize]
    }
}

/// A statement and its counts.
#[repr(C)]
pub(crate) struct StatementRecord {
    key: [AtomicU64; 2],
    counts: [AtomicU64; COUNTERS],
    saved_micros: AtomicU64,
    /// The index of the last reason plus one; 0 = none.
    last_reason: AtomicU64,
    /// When it was last added to, in microseconds.
    at: AtomicI64,
}

impl StatementRecord {
    pub(crate) fn read(&self) -> Option<(StatementKey, StatementCounts)> {
        let key = StatementKey::from_words([self.key[0].load(Relaxed), self.key[1].load(Relaxed)])?;
        let reason = (self.last_reason.load(Relaxed) as usize).checked_sub(1);
        let counts = StatementCounts {
            counts: std::array::from_fn(|n| self.counts[n].load(Relaxed)),
            saved_micros: self.saved_micros.load(Relaxed),
            last_reason: reason.and_then(|index| Reason::ALL.get(index).copied()),
        };
        Some((key, counts))
    }

    /// Adds executions of its statement, beside others who do.
    pub(crate) fn add(&self, counts: StatementCounts, now: i64) {
        for (place, count) in self.counts.iter().zip(counts.counts).filter(|(_, count)| *count > 0) {
            place.fetch_add(count, Relaxed);
        }
        self.saved_micros.fetch_add(counts.saved_micros, Relaxed);
        if let Some(reason) = counts.last_reason {
            self.last_reason.store(reason.index() as u64 + 1, Relaxed);
        }
        self.at.store(now, Relaxed);
    }

    /// Begins to count executions of a statement. Nobody else uses it meanwhile.
    pub(crate) fn begin(&self, key: StatementKey) {
        self.key.iter().zip(key.words()).for_each(|(place, word)| place.store(word, Relaxed));
        self.counts.iter().chain([&self.saved_micros, &self.last_reason]).for_each(|count| count.store(0, Relaxed));
    }

    pub(crate) fn is_of(&self, key: StatementKey) -> bool {
        let [query, owner] = key.words();
        self.key[0].load(Relaxed) == query && self.key[1].load(Relaxed) == owner
    }

    pub(crate) fn is_free(&self) -> bool {
        self.key[0].load(Relaxed) == 0
    }

    pub(crate) fn clear(&self) {
        self.key[0].store(0, Relaxed);
    }

    pub(crate) fn last_added(&self) -> i64 {
        self.at.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(query_id: i64) -> StatementKey {
        StatementKey { query_id, user: 10, database: 5 }
    }

    #[test]
    fn keys_are_kept_whole() {
        for key in [key(-1), StatementKey { query_id: i64::MIN, user: u32::MAX, database: 7 }] {
            assert_eq!(StatementKey::from_words(key.words()), Some(key));
        }
        assert_eq!(StatementKey::from_words([0, 9]), None);
    }
}
