//! Event counters, striped so that no cache line is written by every hit. Each backend adds to its own stripe, without
//! a lock.

use crate::atomics::{AtomicU64, Ordering::Relaxed};
use crate::reason::{REASONS, Reason};

/// What is counted, apart from the reasons of bypasses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Counter {
    /// Statements answered from the cache.
    Hits,
    /// Execution time that hits saved, in microseconds.
    TimeSavedMicros,
    /// Statements that could have been answered, had there been an entry.
    Misses,
    /// Statements that found an outdated entry.
    Stale,
    /// Queries of clients that were executed without a lookup, or in spite of one.
    Bypasses,
    /// Results stored.
    Stores,
    /// Entries taken out to make room.
    Evictions,
    /// Entries taken out because they had expired.
    Expirations,
    /// Entries taken out because what they rest on changed, or on request.
    Invalidations,
    /// Hits that were drawn to be executed as well.
    VerifySamples,
    /// Those of them that were compared.
    VerifyChecks,
    /// Comparisons that found a difference.
    VerifyMismatches,
    /// Statements of clients that no cache answers.
    OtherStatements,
    /// Statements that others run inside.
    NestedStatements,
    /// Fragments stored.
    FragmentsStored,
    /// Parts of statements that were answered from fragments.
    FragmentsServed,
    /// Parts of statements that were executed.
    FragmentsComputed,
    /// Statements that were combined from parts.
    FragmentRuns,
    /// Execution time that served fragments saved, in microseconds.
    FragmentTimeSavedMicros,
    /// How long statements waited for others that computed the same, in microseconds.
    WaitMicros,
    /// Waits that ended because the answer was there.
    WaitsAnswered,
    /// Waits that ended because the other one had stored nothing, so that the one that waited computed the answer in
    /// its place.
    WaitsTakenOver,
    /// Waits that took as long as they may.
    WaitsTimedOut,
    /// Waits that were in vain, or in somebody's way.
    WaitsGivenUp,
    /// Waits that ended with their statement: it was cancelled, or its session ended.
    WaitsStopped,
    /// Statements that were given an outdated answer, as they had asked for.
    StaleHits,
    /// Execution time of statements that were looked up and found nothing, in microseconds.
    TimeExecutedMicros,
    /// Tracked relations of which a transaction has published the values of what it has changed.
    PrecisePublications,
    /// Those that it has published as a whole, because not all changes were noted.
    CoarseNotNoted,
    /// Because they had too many values.
    CoarseOverflow,
    /// Because other columns were tracked when they were made.
    CoarseGeneration,
    /// Because it has changed definitions, too.
    CoarseDefinitions,
    /// Entries that were moved to a file.
    FileMoves,
    /// Hits that were read from a file.
    FileHits,
    /// Files that could not be written, or not be read.
    FileFailures,
}

/// A hit counts both, so they are on one cache line.
const _: () = assert!(Counter::Hits as usize / 8 == Counter::TimeSavedMicros as usize / 8);

impl Counter {
    /// Every counter, in the order of their indexes.
    pub const ALL: [Counter; COUNTERS] = [
        Counter::Hits,
        Counter::TimeSavedMicros,
        Counter::Misses,
        Counter::Stale,
        Counter::Bypasses,
        Counter::Stores,
        Counter::Evictions,
        Counter::Expirations,
        Counter::Invalidations,
        Counter::VerifySamples,
        Counter::VerifyChecks,
        Counter::VerifyMismatches,
        Counter::OtherStatements,
        Counter::NestedStatements,
        Counter::FragmentsStored,
        Counter::FragmentsServed,
        Counter::FragmentsComputed,
        Counter::FragmentRuns,
        Counter::FragmentTimeSavedMicros,
        Counter::WaitMicros,
        Counter::WaitsAnswered,
        Counter::WaitsTakenOver,
        Counter::WaitsTimedOut,
        Counter::WaitsGivenUp,
        Counter::WaitsStopped,
        Counter::StaleHits,
        Counter::TimeExecutedMicros,
        Counter::PrecisePublications,
        Counter::CoarseNotNoted,
        Counter::CoarseOverflow,
        Counter::CoarseGeneration,
        Counter::CoarseDefinitions,
        Counter::FileMoves,
        Counter::FileHits,
        Counter::FileFailures,
    ];
}

const COUNTERS: usize = 35;

/// Number of stripes; a backend uses the one of its number modulo this.
pub const STRIPES: usize = 64;

/// One set of all counters, on cache lines of its own. Zeroed memory is a valid stripe.
#[repr(C, align(64))]
pub struct Stripe {
    counters: [AtomicU64; COUNTERS],
    reasons: [AtomicU64; REASONS],
}

impl Stripe {
    /// Adds `n` to a counter.
    #[inline]
    pub fn add(&self, counter: Counter, n: u64) {
        self.counters[counter as usize].fetch_add(n, Relaxed);
    }

    /// Counts one statement for a reason.
    #[inline]
    pub fn add_reason(&self, reason: Reason) {
        self.reasons[reason.index()].fetch_add(1, Relaxed);
    }
}

/// View over all stripes of the block.
#[derive(Clone, Copy)]
pub struct Counters<'a> {
    stripes: &'a [Stripe; STRIPES],
}

impl<'a> Counters<'a> {
    pub(crate) fn new(stripes: &'a [Stripe; STRIPES]) -> Self {
        Self { stripes }
    }

    /// The stripe that a process counts in. Any number will do; it is taken modulo [`STRIPES`].
    #[must_use]
    pub fn own(&self, stripe: usize) -> &'a Stripe {
        &self.stripes[stripe % STRIPES]
    }

    /// Adds `n` to a counter of a stripe.
    pub fn add(&self, stripe: usize, counter: Counter, n: u64) {
        self.own(stripe).add(counter, n);
    }

    /// Counts one statement for a reason.
    pub fn add_reason(&self, stripe: usize, reason: Reason) {
        self.own(stripe).add_reason(reason);
    }

    /// Total over all stripes.
    #[must_use]
    pub fn sum(&self, counter: Counter) -> u64 {
        self.total(|stripe| &stripe.counters[counter as usize])
    }

    /// Total of a reason over all stripes.
    #[must_use]
    pub fn sum_reason(&self, reason: Reason) -> u64 {
        self.total(|stripe| &stripe.reasons[reason.index()])
    }

    /// Zeroes everything. What is added meanwhile may survive or not.
    pub fn reset(&self) {
        for stripe in self.stripes {
            for cell in stripe.counters.iter().chain(&stripe.reasons) {
                cell.store(0, Relaxed);
            }
        }
    }

    fn total(&self, cell: impl Fn(&'a Stripe) -> &'a AtomicU64) -> u64 {
        self.stripes.iter().fold(0u64, |total, stripe| total.wrapping_add(cell(stripe).load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripes() -> Box<[Stripe; STRIPES]> {
        Box::new(std::array::from_fn(|_| Stripe {
            counters: std::array::from_fn(|_| AtomicU64::new(0)),
            reasons: std::array::from_fn(|_| AtomicU64::new(0)),
        }))
    }

    #[test]
    fn sums_over_stripes_and_resets() {
        let memory = stripes();
        let counters = Counters::new(&memory);
        for stripe in 0..200 {
            counters.add(stripe, Counter::Hits, 2);
            counters.add_reason(stripe, Reason::TooQuick);
        }
        assert_eq!(counters.sum(Counter::Hits), 400);
        assert_eq!(counters.sum(Counter::Misses), 0);
        assert_eq!(counters.sum_reason(Reason::TooQuick), 200);
        assert_eq!(counters.sum_reason(Reason::TooLarge), 0);
        counters.reset();
        assert_eq!(counters.sum(Counter::Hits), 0);
        assert_eq!(counters.sum_reason(Reason::TooQuick), 0);
    }

    #[test]
    fn every_counter_has_its_own_cell() {
        let memory = stripes();
        let counters = Counters::new(&memory);
        for (position, counter) in Counter::ALL.into_iter().enumerate() {
            assert_eq!(counter as usize, position);
            counters.add(3, counter, position as u64 + 1);
        }
        for (position, counter) in Counter::ALL.into_iter().enumerate() {
            assert_eq!(counters.sum(counter), position as u64 + 1);
        }
    }
}
