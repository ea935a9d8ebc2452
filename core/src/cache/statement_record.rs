//! The records of what became of the executions of each statement: one that all processes share, and the few of each
//! process in which it gathers. `statements` says who writes them, and under which lock. All fields are atomics, so
//! that zeroed memory is a record of nothing.

use crate::atomics::{
    AtomicI64, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    spin_loop,
};
use crate::reason::Reason;

/// Records in a set of the table that all share.
pub(crate) const WAYS: usize = 8;
/// Statements of which a process gathers at once.
const GATHERED: usize = 6;
/// How long a process gathers before it adds to what all share, in microseconds.
const LAG: u64 = 100_000;
/// How often somebody else than its process looks whether a gathering is free.
const TRIES: u32 = 1000;

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

    /// Both together; `later` has the last reason, if it has one.
    fn and(self, later: Self) -> Self {
        Self {
            counts: std::array::from_fn(|n| self.counts[n].wrapping_add(later.counts[n])),
            saved_micros: self.saved_micros.wrapping_add(later.saved_micros),
            last_reason: later.last_reason.or(self.last_reason),
        }
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

    pub(crate) fn write(&self, key: StatementKey, counts: StatementCounts, now: i64) {
        let [query, owner] = key.words();
        self.key[0].store(query, Relaxed);
        self.key[1].store(owner, Relaxed);
        self.counts.iter().zip(counts.counts).for_each(|(place, count)| place.store(count, Relaxed));
        self.saved_micros.store(counts.saved_micros, Relaxed);
        self.last_reason.store(counts.last_reason.map_or(0, |reason| reason.index() as u64 + 1), Relaxed);
        self.at.store(now, Relaxed);
    }

    pub(crate) fn add(&self, key: StatementKey, counts: StatementCounts, now: i64) {
        let before =
            self.read().filter(|(there, _)| *there == key).map_or_else(StatementCounts::default, |(_, counts)| counts);
        self.write(key, before.and(counts), now);
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

    /// Takes out what is there, if it is anything.
    fn take(&self) -> Option<(StatementKey, StatementCounts)> {
        let taken = self.read().filter(|(_, counts)| *counts != StatementCounts::default());
        self.clear();
        taken
    }
}

/// What one process gathers, on lines of its own.
#[repr(C, align(64))]
pub(crate) struct Gathering {
    /// 1 while somebody reads or writes the records: their process, or one that takes them out.
    busy: AtomicU32,
    records: [StatementRecord; GATHERED],
}

const _: () = assert!(size_of::<Gathering>() == 512);

/// Statements with their counts, to be added to what all share.
pub(crate) type Taken<const N: usize> = [Option<(StatementKey, StatementCounts)>; N];

impl Gathering {
    /// Gathers an execution. Returns what is to be added to what all share now: the statement's own counts if they were
    /// gathered for long enough, and those of another one that had the place.
    pub(crate) fn note(&self, key: StatementKey, counts: StatementCounts, now: i64) -> Taken<2> {
        if !self.enter(1) {
            return [Some((key, counts)), None];
        }
        let record = &self.records[key.hash() as usize % GATHERED];
        let is_its_own = record.is_of(key);
        let lag = now.wrapping_sub(record.last_added()).cast_unsigned();
        let taken = if is_its_own && lag < LAG {
            // It keeps the time since which it gathers.
            record.add(key, counts, record.last_added());
            [None, None]
        } else {
            // The first execution after a while is added at once, so that little is missing of a process that then does
            // something else.
            let before = record.take();
            record.write(key, StatementCounts::default(), now);
            match before {
                Some((_, gathered)) if is_its_own => [Some((key, gathered.and(counts))), None],
                other => [Some((key, counts)), other],
            }
        };
        self.leave();
        taken
    }

    /// Takes out what was gathered; nothing if its process is in the middle of writing.
    pub(crate) fn take_all(&self) -> Taken<GATHERED> {
        if !self.enter(TRIES) {
            return [None; GATHERED];
        }
        let taken = std::array::from_fn(|n| self.records[n].take());
        self.leave();
        taken
    }

    /// The few accesses until `leave` cannot fail, so nobody stays inside.
    fn enter(&self, tries: u32) -> bool {
        (0..tries).any(|_| {
            let is_entered = self.busy.compare_exchange(0, 1, Acquire, Relaxed).is_ok();
            if !is_entered {
                spin_loop();
            }
            is_entered
        })
    }

    fn leave(&self) {
        self.busy.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathering() -> Box<Gathering> {
        // SAFETY: zeroed memory is a gathering of nothing.
        Box::new(unsafe { std::mem::zeroed() })
    }

    fn key(query_id: i64) -> StatementKey {
        StatementKey { query_id, user: 10, database: 5 }
    }

    fn hits(n: u64) -> StatementCounts {
        (0..n)
            .fold(StatementCounts::default(), |sum, _| sum.and(StatementCounts::one(StatementCounter::Hits).saving(3)))
    }

    #[test]
    fn executions_are_added_at_once_or_gathered() {
        let gathering = gathering();
        let note = |now| gathering.note(key(1), hits(1), now);
        assert_eq!(note(1_000_000), [Some((key(1), hits(1))), None], "the first one is added at once");
        assert_eq!(note(1_000_001), [None, None]);
        assert_eq!(note(1_099_999), [None, None]);
        assert_eq!(note(1_100_000), [Some((key(1), hits(3))), None]);
        assert_eq!(note(1_100_001), [None, None]);
        assert_eq!(note(5), [Some((key(1), hits(2))), None], "a clock that goes back");
        assert_eq!(note(6), [None, None]);
        assert_eq!(gathering.take_all().into_iter().flatten().collect::<Vec<_>>(), [(key(1), hits(1))]);
        assert_eq!(note(7), [Some((key(1), hits(1))), None]);
    }

    #[test]
    fn another_statement_in_the_place_is_handed_over() {
        let gathering = gathering();
        let other =
            (2..).map(key).find(|other| other.hash() as usize % GATHERED == key(1).hash() as usize % GATHERED).unwrap();
        let _ = gathering.note(key(1), hits(1), 0);
        let _ = gathering.note(key(1), hits(1), 1);
        let own = Some((other, hits(1)));
        assert_eq!(gathering.note(other, hits(1), 2), [own, Some((key(1), hits(1)))]);
    }

    #[test]
    fn nobody_waits_for_who_is_inside() {
        let gathering = gathering();
        let _ = gathering.note(key(1), hits(1), 0);
        let _ = gathering.note(key(1), hits(1), 1);
        assert!(gathering.enter(1));
        assert_eq!(gathering.note(key(1), hits(1), 2), [Some((key(1), hits(1))), None], "added at once");
        assert_eq!(gathering.take_all(), [None; GATHERED]);
        gathering.leave();
        assert_eq!(gathering.take_all().into_iter().flatten().collect::<Vec<_>>(), [(key(1), hits(1))]);
    }

    #[test]
    fn the_last_reason_stays_until_another_one_comes() {
        let bypass = |reason| StatementCounts::one(StatementCounter::Bypasses).because(Some(reason));
        let sum = bypass(Reason::OwnWrites).and(bypass(Reason::Snapshot)).and(hits(2));
        assert_eq!(sum.last_reason, Some(Reason::Snapshot));
        assert_eq!(
            (sum.count(StatementCounter::Bypasses), sum.count(StatementCounter::Hits), sum.saved_micros),
            (2, 2, 6)
        );
    }

    #[test]
    fn keys_are_kept_whole() {
        for key in [key(-1), StatementKey { query_id: i64::MIN, user: u32::MAX, database: 7 }] {
            assert_eq!(StatementKey::from_words(key.words()), Some(key));
        }
        assert_eq!(StatementKey::from_words([0, 9]), None);
    }
}
