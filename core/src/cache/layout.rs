//! Where each part of the shared block lies. Every process computes the same layout from the settings; it is constant
//! while the server runs.

use crate::cache::awaited;
use crate::cache::claim_place::ClaimPlace;
use crate::cache::claims::CLAIMS;
use crate::cache::counters::{STRIPES, Stripe};
use crate::cache::entry::{Entry, Link};
use crate::cache::header::Header;
use crate::cache::seat::Seat;
use crate::cache::speed_word::SpeedWord;
use crate::cache::statement_record::{StatementRecord, WAYS};
use crate::versions::definers;
use crate::versions::places::LINES;
use crate::versions::slot::Slot;
use crate::versions::slots::{slot_count, value_count};
use crate::versions::tracked::Line;
use crate::versions::value_slot::ValueSlot;
use std::fmt;

/// Number of partitions of the index, each with a lock.
pub const PARTITIONS: usize = 64;
/// Fewest words that tell how quick runs are, those of keys that have no entry, too. A power of two.
const LEAST_SPEEDS: usize = 32_768;
/// Such words for each bucket: for the keys of entries, and for the forms and fingerprints of statements.
const SPEEDS_PER_BUCKET: usize = 2;
/// Most seats: the others would take more memory, and more time to look through, than they are worth.
pub const MOST_SEATS: u32 = 1024;
/// Buckets for which there is the place of one statement's counts, and bounds of the number of places. All are powers
/// of two. The memory does not count, so that what would be enough can be said.
const BUCKETS_PER_STATEMENT: usize = 4;
const LEAST_STATEMENTS: usize = 16 * WAYS;
const MOST_STATEMENTS: usize = 1024 * WAYS;
/// Least bytes for results; a smaller block is refused.
pub const LEAST_ARENA: usize = 1 << 20;

/// Every part except the arena begins on a cache line.
const LINE: usize = 64;
/// The arena begins, and ends, on a page.
const PAGE: usize = 4096;

/// What the settings ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Bytes of the block in all.
    pub memory: usize,
    /// Most results held at once.
    pub max_entries: u32,
    /// Processes that may have a seat: those of the lowest numbers. No more than [`MOST_SEATS`] get one.
    pub seats: u32,
}

/// Why no layout could be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayoutError {
    /// Less than [`LEAST_ARENA`] would be left for results.
    TooSmall {
        /// Bytes that would be enough.
        needed: usize,
    },
}

impl LayoutError {
    /// Bytes that would be enough.
    #[must_use]
    pub fn needed(&self) -> usize {
        match self {
            LayoutError::TooSmall { needed } => *needed,
        }
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::TooSmall { needed } => {
                write!(f, "the cache needs at least {needed} bytes of memory")
            }
        }
    }
}

impl std::error::Error for LayoutError {}

/// Offsets into the block, which must itself be aligned to 64 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Size of the block: bookkeeping and arena.
    pub total: usize,
    /// Where the arena begins, a multiple of 4096.
    pub arena_offset: usize,
    /// Size of the arena, a multiple of 4096.
    pub arena_len: usize,
    /// Number of entries in the entry table.
    pub max_entries: u32,
    pub(crate) header: usize,
    pub(crate) slots: usize,
    pub(crate) slot_count: usize,
    pub(crate) values: usize,
    /// A power of two.
    pub(crate) value_count: usize,
    pub(crate) tracked: usize,
    pub(crate) definers: usize,
    pub(crate) claims: usize,
    pub(crate) awaited: usize,
    pub(crate) stripes: usize,
    pub(crate) seats: usize,
    pub(crate) seat_count: u32,
    pub(crate) statements: usize,
    /// A power of two.
    pub(crate) statement_count: usize,
    pub(crate) speeds: usize,
    /// A power of two.
    pub(crate) speed_count: usize,
    pub(crate) buckets: usize,
    /// A power of two, so that a bucket belongs to one partition.
    pub(crate) bucket_count: usize,
    pub(crate) entries: usize,
    pub(crate) occupied: usize,
}

impl Layout {
    /// Cuts a block of `sizes.memory` bytes, rounded down to whole pages.
    ///
    /// # Errors
    /// [`LayoutError::TooSmall`] when less than [`LEAST_ARENA`] would be left for the arena.
    pub fn new(sizes: &Sizes) -> Result<Layout, LayoutError> {
        let bucket_count = (sizes.max_entries as usize).max(PARTITIONS).next_power_of_two();
        let mut end = 0;
        let mut part = |bytes: usize| {
            let offset = end;
            end = (end + bytes).next_multiple_of(LINE);
            offset
        };
        let header = part(size_of::<Header>());
        let slot_count = slot_count(sizes.memory);
        let slots = part(slot_count * size_of::<Slot>());
        let value_count = value_count(sizes.memory);
        let values = part(value_count * size_of::<ValueSlot>());
        let tracked = part(LINES * size_of::<Line>());
        let definers = part(definers::COUNTS * size_of::<u32>());
        let claims = part(CLAIMS * size_of::<ClaimPlace>());
        let seat_count = sizes.seats.min(MOST_SEATS);
        let awaited = part(awaited::size(seat_count));
        let stripes = part(STRIPES * size_of::<Stripe>());
        let seats = part(seat_count as usize * size_of::<Seat>());
        let statement_count = (bucket_count / BUCKETS_PER_STATEMENT).clamp(LEAST_STATEMENTS, MOST_STATEMENTS);
        let statements = part(statement_count * size_of::<StatementRecord>());
        let speed_count = (bucket_count * SPEEDS_PER_BUCKET).max(LEAST_SPEEDS);
        let speeds = part(speed_count * size_of::<SpeedWord>());
        let buckets = part(bucket_count * size_of::<Link>());
        let entries = part(sizes.max_entries as usize * size_of::<Entry>());
        let occupied = part(occupied_words(sizes.max_entries) * size_of::<u64>());
        let arena_offset = end.next_multiple_of(PAGE);
        let total = sizes.memory / PAGE * PAGE;
        if total < arena_offset + LEAST_ARENA {
            return Err(Self::too_small(sizes, arena_offset + LEAST_ARENA));
        }
        Ok(Layout {
            total,
            arena_offset,
            arena_len: total - arena_offset,
            max_entries: sizes.max_entries,
            header,
            slots,
            slot_count,
            values,
            value_count,
            tracked,
            definers,
            claims,
            awaited,
            stripes,
            seats,
            seat_count,
            statements,
            statement_count,
            speeds,
            speed_count,
            buckets,
            bucket_count,
            entries,
            occupied,
        })
    }

    /// So much more would be enough, if a larger block had no more slots.
    fn too_small(sizes: &Sizes, enough: usize) -> LayoutError {
        let larger = Self::new(&Sizes { memory: enough, ..*sizes });
        larger.err().unwrap_or(LayoutError::TooSmall { needed: enough })
    }

    /// Words with one bit for each record of the entry table.
    pub(crate) fn occupied_words(&self) -> usize {
        occupied_words(self.max_entries)
    }

    /// Bytes of everything except the arena.
    #[must_use]
    pub fn bookkeeping_bytes(&self) -> usize {
        self.arena_offset
    }
}

/// Words with one bit for each record of a table with `max_entries`.
fn occupied_words(max_entries: u32) -> usize {
    max_entries.div_ceil(u64::BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_aligned_and_in_order() {
        for max_entries in [0, 1, 63, 64, 65, 10_000] {
            let sizes = Sizes { memory: 8 << 20, max_entries, seats: 5 };
            let layout = Layout::new(&sizes).unwrap();
            let offsets = [
                layout.header,
                layout.slots,
                layout.tracked,
                layout.definers,
                layout.claims,
                layout.awaited,
                layout.stripes,
                layout.seats,
                layout.statements,
                layout.speeds,
                layout.buckets,
                layout.entries,
                layout.occupied,
                layout.arena_offset,
                layout.total,
            ];
            assert!(offsets.is_sorted());
            assert!(offsets.iter().all(|offset| offset % LINE == 0));
            assert_eq!(layout.arena_offset % PAGE, 0);
            assert_eq!(layout.arena_offset + layout.arena_len, layout.total);
            assert!(layout.bucket_count.is_power_of_two());
            assert!(layout.bucket_count >= PARTITIONS.max(max_entries as usize));
            assert!(layout.total <= sizes.memory);
        }
    }

    #[test]
    fn too_small_says_what_would_do() {
        for max_entries in [10_000, 100_000, 1_000_000] {
            let ask = |memory| Layout::new(&Sizes { memory, max_entries, seats: 100 });
            let Err(LayoutError::TooSmall { needed }) = ask(1 << 20) else {
                panic!("a block of 1 MiB is too small for {max_entries} entries");
            };
            assert!(ask(needed - 1).is_err());
            assert_eq!(ask(needed).unwrap().arena_len, LEAST_ARENA);
        }
    }
}
