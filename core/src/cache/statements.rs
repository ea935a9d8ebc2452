//! What became of the executions of each statement: hits, misses, bypasses, by query id, role and database. In a table
//! of fixed size, in sets of eight. A statement that finds its set full takes the place of the one that was not
//! executed for longest, whose counts are gone: such losses are counted.
//!
//! A place of a set is given to a statement under the partition lock of the set's number. Executions are added, and
//! counts are read, under the same lock together with others.

use crate::atomics::Ordering::Relaxed;
use crate::cache::layout::PARTITIONS;
use crate::cache::memory::{Arena, Locks};
use crate::cache::statement_record::{StatementCounts, StatementKey, StatementRecord, WAYS};
use crate::cache::store::Store;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Counts executions of a statement, at a time in microseconds. Nothing is counted of one without a query id.
    pub fn count_statement(&self, key: StatementKey, counts: StatementCounts, now: i64) {
        if key.query_id == 0 {
            return;
        }
        // The number of sets is a power of two.
        let number = key.hash() as usize & (self.layout.statement_count / WAYS - 1);
        let Some(set) = self.statement_records().get(number * WAYS..(number + 1) * WAYS) else { return };
        let own = || set.iter().find(|record| record.is_of(key));
        let is_known = self.locks.shared(number % PARTITIONS, || {
            let own = own();
            own.inspect(|record| record.add(counts, now)).is_some()
        });
        if is_known {
            return;
        }
        self.locks.exclusive(number % PARTITIONS, || {
            let free = || set.iter().find(|record| record.is_free());
            let oldest = || set.iter().min_by_key(|record| record.last_added());
            let own = own();
            let Some(record) = own.or_else(free).or_else(oldest) else { return };
            if !record.is_of(key) {
                if !record.is_free() {
                    self.header().statements_dropped.fetch_add(1, Relaxed);
                }
                record.begin(key);
            }
            record.add(counts, now);
        });
    }

    /// Calls `each` for all statements of which something is known, in any order, outside of locks.
    pub fn for_each_statement(&self, mut each: impl FnMut(StatementKey, StatementCounts)) {
        for (number, set) in self.statement_sets().enumerate() {
            let known: [_; WAYS] = self.locks.shared(number % PARTITIONS, || {
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

    /// Forgets all counts. What is added meanwhile may survive or not.
    pub(crate) fn forget_statements(&self) {
        for (number, set) in self.statement_sets().enumerate() {
            self.locks.exclusive(number % PARTITIONS, || set.iter().for_each(StatementRecord::clear));
        }
        self.header().statements_dropped.store(0, Relaxed);
    }

    fn statement_sets(&self) -> impl Iterator<Item = &[StatementRecord]> {
        self.statement_records().chunks_exact(WAYS)
    }
}
