//! What became of the executions of each statement: hits, misses, bypasses, by query id, role and database. In a table
//! of fixed size, in sets of eight. A statement that finds its set full takes the place of the one that was not
//! executed for longest, whose counts are gone: such losses are counted.
//!
//! A process gathers in lines of its own (`Gathering`) for up to a tenth of a second, so that a hit seldom writes a
//! line that others write. Whoever wants the counts exactly takes them out of all processes' lines first. What was
//! taken out is added to the table by whoever took it, so each count is in one place at any time.
//!
//! The places of a set are read and written under the partition lock of the set's number; gatherings under a word of
//! their own, for which nobody waits. No two of these are held together.

use crate::atomics::Ordering::Relaxed;
use crate::cache::layout::PARTITIONS;
use crate::cache::memory::{Arena, Locks};
use crate::cache::statement_record::{StatementCounts, StatementKey, StatementRecord, Taken, WAYS};
use crate::cache::store::Store;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Counts executions of a statement, at a time in microseconds. Nothing is counted of one without a query id.
    pub fn count_statement(&self, key: StatementKey, counts: StatementCounts, now: i64) {
        if key.query_id == 0 {
            return;
        }
        let Some(gathering) = self.gathering() else { return self.add_to_statement(key, counts, now) };
        for (key, counts) in gathering.note(key, counts, now).into_iter().flatten() {
            self.add_to_statement(key, counts, now);
        }
    }

    /// Calls `each` for all statements of which something is known, in any order, outside of locks.
    pub fn for_each_statement(&self, now: i64, mut each: impl FnMut(StatementKey, StatementCounts)) {
        for gathering in self.taken_gatherings() {
            for (key, counts) in gathering.take_all().into_iter().flatten() {
                self.add_to_statement(key, counts, now);
            }
        }
        for (number, set) in self.statement_sets().enumerate() {
            let known: Taken<WAYS> = self.locks.shared(number % PARTITIONS, || {
                std::array::from_fn(|way| set.get(way).and_then(StatementRecord::read))
            });
            known.into_iter().flatten().for_each(|(key, counts)| each(key, counts));
        }
    }

    /// How many statements had to make room for others since the counters were zeroed.
    #[must_use]
    pub fn statements_dropped(&self) -> u64 {
        self.header().statements_dropped.load(Relaxed)
    }

    /// Adds what this process has gathered. To be called when it ends.
    pub fn add_own_statements(&self, now: i64) {
        let Some(gathering) = self.gathering() else { return };
        for (key, counts) in gathering.take_all().into_iter().flatten() {
            self.add_to_statement(key, counts, now);
        }
    }

    /// Forgets all counts. What is added meanwhile may survive or not.
    pub(crate) fn forget_statements(&self) {
        for gathering in self.taken_gatherings() {
            let _ = gathering.take_all();
        }
        for (number, set) in self.statement_sets().enumerate() {
            self.locks.exclusive(number % PARTITIONS, || set.iter().for_each(StatementRecord::clear));
        }
        self.header().statements_dropped.store(0, Relaxed);
    }

    fn add_to_statement(&self, key: StatementKey, counts: StatementCounts, now: i64) {
        // The number of sets is a power of two.
        let number = key.hash() as usize & (self.layout.statement_count / WAYS - 1);
        let Some(set) = self.statement_records().get(number * WAYS..(number + 1) * WAYS) else { return };
        self.locks.exclusive(number % PARTITIONS, || {
            let own =
                set.iter().find(|record| record.is_of(key)).or_else(|| set.iter().find(|record| record.is_free()));
            let oldest = || set.iter().min_by_key(|record| record.last_added());
            let Some(record) = own.or_else(oldest) else { return };
            if own.is_none() {
                self.header().statements_dropped.fetch_add(1, Relaxed);
            }
            record.add(key, counts, now);
        });
    }

    fn statement_sets(&self) -> impl Iterator<Item = &[StatementRecord]> {
        self.statement_records().chunks_exact(WAYS)
    }
}
