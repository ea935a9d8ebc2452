//! Seats: a few lines of the block for each process, which only that process writes while it serves hits. A hit then writes no line that others write.
//!
//! *Holds.* A process that looks an entry up writes the number of its record into a free word of its seat, and only then looks whether the
//! record is published. A process that wants to free a retired record looks through all seats first. Between the two steps of each lies a
//! fence of sequential consistency: the one who reads sees the record retired, or the one who frees sees the hold. A process whose words are all
//! in use counts its pin at the entry. `core/tests/seats.rs` goes through all interleavings.
//!
//! *Uses.* Hits and last uses of an entry are gathered in the seat for up to [`LAG`], then added to the entry. Whoever wants them exactly
//! gathers them from all seats ([`Store::gather_uses`]).
//!
//! All fields are atomics. Holds are written by the process of the seat alone; uses also by those who gather them. Nothing here takes a lock.

use crate::cache::entry::Entry;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};

/// Entries that a process can hold by its seat.
const HOLDS: usize = 8;
/// Entries whose uses a seat gathers.
const TALLIES: usize = 7;
/// How long uses are gathered before they are added to the entry, in microseconds.
pub const LAG: u64 = 100_000;
/// Holds of all processes together that are listed at once; there are seldom more than processes at work.
const LISTED: usize = 64;

/// What one process writes while it serves hits, on lines of its own. Zeroed memory is a seat that holds nothing.
#[repr(C, align(64))]
pub(crate) struct Seat {
    /// The numbers of held records plus one; 0 = none.
    holds: [AtomicU64; HOLDS],
    tallies: [Tally; TALLIES],
}

const _: () = assert!(size_of::<Seat>() == 256);

/// Uses of one entry that were not added to it yet.
#[derive(Default)]
#[repr(C)]
struct Tally {
    /// See [`Uses`].
    uses: AtomicU64,
    /// The last use, in microseconds.
    last_used: AtomicI64,
    /// When uses were last added to the entry, in microseconds.
    added_at: AtomicI64,
}

/// An entry and how often it was used, in one word: number of the record plus one, the low bits of its generation, hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Uses(u64);

impl Uses {
    const GENERATION: u32 = 32;
    const HITS: u32 = 48;
    const MOST_HITS: u64 = u16::MAX as u64;

    fn none(index: u32, generation: u32) -> Self {
        Self(u64::from(index) + 1 | u64::from(generation as u16) << Self::GENERATION)
    }

    fn without_hits(self) -> Self {
        Self(self.0 & ((1 << Self::HITS) - 1))
    }

    fn hits(self) -> u64 {
        self.0 >> Self::HITS
    }

    fn one_more(self) -> Self {
        Self(self.0 + (1 << Self::HITS))
    }

    fn index(self) -> Option<u32> {
        (self.0 as u32).checked_sub(1)
    }

    /// May the entry of this generation be the one that was used? It is, unless the record was used again 65,536 times since.
    fn is_of(self, generation: u32) -> bool {
        (self.0 >> Self::GENERATION) as u16 == generation as u16
    }
}

/// Which word of its seat a process holds an entry by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hold(u8);

impl Seat {
    /// Holds a record, published or not: the caller then looks whether it is. `None` if all words are in use.
    fn hold(&self, index: u32) -> Option<Hold> {
        let free = self.holds.iter().position(|word| word.load(Relaxed) == 0)?;
        self.holds[free].store(u64::from(index) + 1, Relaxed);
        // Pairs with the fence of `held`.
        fence(SeqCst);
        Some(Hold(free as u8))
    }

    fn let_go(&self, hold: Hold) {
        // What was read of the entry was read before.
        self.holds[usize::from(hold.0) % HOLDS].store(0, Release);
    }
}

/// The records that some process holds.
pub(crate) struct Held<'s, 'a, L: Locks, A: Arena> {
    store: &'s Store<'a, L, A>,
    listed: [u32; LISTED],
    count: usize,
    /// Not all are listed.
    are_more: bool,
}

impl<L: Locks, A: Arena> Held<'_, '_, L, A> {
    /// Does a process hold this record?
    pub(crate) fn has(&self, index: u32) -> bool {
        self.listed[..self.count].contains(&index)
            || (self.are_more && self.store.held_by_all().any(|held| held == index))
    }
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Pins a record by the seat of this process, if it has one with a free word. The record may be of any state: the caller reads that next.
    pub(crate) fn hold(&self, index: u32) -> Option<Hold> {
        self.seat()?.hold(index)
    }

    /// Gives a hold back.
    pub(crate) fn let_go(&self, hold: Hold) {
        if let Some(seat) = self.seat() {
            seat.let_go(hold);
        }
    }

    /// What all processes hold. A record that was retired before the call, and is not held now, is not read by anybody who pinned it by a seat,
    /// nor will be.
    pub(crate) fn held(&self) -> Held<'_, '_, L, A> {
        // Pairs with the fence of `Seat::hold`.
        fence(SeqCst);
        let mut held = Held { store: self, listed: [0; LISTED], count: 0, are_more: false };
        for index in self.held_by_all() {
            match held.listed.get_mut(held.count) {
                Some(place) => *place = index,
                None => {
                    held.are_more = true;
                    break;
                }
            }
            held.count += 1;
        }
        held
    }

    fn held_by_all(&self) -> impl Iterator<Item = u32> + '_ {
        let holds = self.taken_seats().iter().flat_map(|seat| &seat.holds);
        holds.filter_map(|word| (word.load(Acquire) as u32).checked_sub(1))
    }

    /// Takes the seat of this process, whose number no other process has. To be called once, before the first lookup. Whoever had the seat
    /// before has ended.
    pub fn take_seat(&self) {
        let Some((number, seat)) = self.seat_number().zip(self.seat()) else { return };
        seat.holds.iter().for_each(|word| word.store(0, Release));
        self.gather_from(seat);
        // Before the first hold, whose fence makes it known to those who look through the seats.
        self.header().seats_taken.fetch_max(number + 1, AcqRel);
    }

    /// Adds to the entries what processes have gathered of their uses.
    pub fn gather_uses(&self) {
        self.taken_seats().iter().for_each(|seat| self.gather_from(seat));
    }

    /// Adds to the entries what this process has gathered. To be called when it ends.
    pub fn gather_own_uses(&self) {
        if let Some(seat) = self.seat() {
            self.gather_from(seat);
        }
    }

    fn gather_from(&self, seat: &Seat) {
        for tally in &seat.tallies {
            let uses = Uses(tally.uses.load(Acquire));
            if uses.hits() > 0 {
                let rest = uses.without_hits();
                // If it has changed, its process adds what it has gathered, or another one does.
                if tally.uses.compare_exchange(uses.0, rest.0, AcqRel, Relaxed).is_ok() {
                    self.add_uses(uses, tally.last_used.load(Relaxed));
                }
            }
        }
    }

    /// Notes that a pinned entry was used.
    pub(crate) fn note_use(&self, index: u32, now: i64) {
        let entry = self.entry(index);
        let Some(seat) = self.seat() else { return entry.touch(1, now) };
        let tally = &seat.tallies[index as usize % TALLIES];
        let seen = Uses(tally.uses.load(Relaxed));
        let own = Uses::none(index, entry.life().generation());
        let lag = now.wrapping_sub(tally.added_at.load(Relaxed)).cast_unsigned();
        if seen.without_hits() == own && lag < LAG && seen.hits() < Uses::MOST_HITS {
            tally.last_used.store(now, Relaxed);
            if tally.uses.compare_exchange(seen.0, seen.one_more().0, AcqRel, Relaxed).is_ok() {
                return;
            }
        }
        let gathered = Uses(tally.uses.swap(own.0, AcqRel));
        if gathered.hits() > 0 {
            self.add_uses(gathered, tally.last_used.load(Relaxed));
        }
        entry.touch(1, now);
        tally.last_used.store(now, Relaxed);
        tally.added_at.store(now, Relaxed);
    }

    /// Adds uses to their entry, if that is still there.
    fn add_uses(&self, uses: Uses, last_used: i64) {
        let Some(index) = uses.index() else { return };
        let entry: &Entry = self.entry(index);
        if entry.try_pin(|life| uses.is_of(life.generation())) {
            entry.touch(uses.hits(), last_used);
            entry.unpin();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat() -> Seat {
        Seat { holds: Default::default(), tallies: Default::default() }
    }

    #[test]
    fn a_seat_has_a_bounded_number_of_holds() {
        let seat = seat();
        let holds: Vec<_> = (0..HOLDS as u32).map(|index| seat.hold(index).expect("a free word")).collect();
        assert_eq!(seat.hold(99), None);
        seat.let_go(holds[3]);
        assert_eq!(seat.hold(99), Some(holds[3]));
        assert_eq!(seat.holds[3].load(Relaxed), 100);
    }

    #[test]
    fn uses_are_one_word() {
        let mut uses = Uses::none(u32::MAX - 1, 0xAB_CDEF);
        assert_eq!((uses.index(), uses.hits()), (Some(u32::MAX - 1), 0));
        assert!(uses.is_of(0xCDEF) && !uses.is_of(0xCDEE));
        (0..Uses::MOST_HITS).for_each(|_| uses = uses.one_more());
        assert_eq!((uses.index(), uses.hits()), (Some(u32::MAX - 1), Uses::MOST_HITS));
        assert_eq!(uses.without_hits(), Uses::none(u32::MAX - 1, 0xAB_CDEF));
        assert_eq!(Uses(0).index(), None);
    }
}
