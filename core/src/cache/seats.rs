//! Seats: a few lines of the block for each process, which only that process writes while it serves hits. A hit then
//! seldom writes a line that others write: an entry's uses are added to it at most every [`LAG`].
//!
//! *Holds.* A process that looks an entry up writes the number of its record into a free word of its seat, and only
//! then looks whether the record is published. A process that wants to free a retired record looks through all seats
//! first. Between the two steps of each lies a fence of sequential consistency: the one who reads sees the record
//! retired, or the one who frees sees the hold. A process whose words are all in use counts its pin at the entry.
//! `core/tests/seats.rs` goes through all interleavings.
//!
//! *Uses.* Hits and last uses of an entry are gathered in the seat for up to [`LAG`], then added to the entry. Whoever
//! wants them exactly gathers them from all seats ([`Store::gather_uses`]).
//!
//! All fields are atomics. Holds are written by the process of the seat alone; uses also by those who gather them.
//! Nothing here takes a lock.

use crate::atomics::{
    Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
    fence,
};
use crate::cache::entry::Entry;
use crate::cache::memory::{Arena, Locks};
use crate::cache::seat::{Hold, Seat, TALLIES, Uses};
use crate::cache::store::Store;

/// How long uses are gathered before they are added to the entry, in microseconds.
const LAG: u64 = 100_000;
/// Holds of all processes together that are listed at once; there are seldom more than processes at work.
const LISTED: usize = 64;

/// The records that some process holds.
pub(crate) struct Held<'s, 'a, L: Locks, A: Arena> {
    store: &'s Store<'a, L, A>,
    listed: [u32; LISTED],
    count: usize,
    /// Not all are listed.
    are_more: bool,
}

impl<L: Locks, A: Arena> Held<'_, '_, L, A> {
    /// Returns true if a process holds this record.
    pub(crate) fn has(&self, index: u32) -> bool {
        self.listed[..self.count].contains(&index)
            || (self.are_more && self.store.held_by_all().any(|held| held == index))
    }
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Pins a record by the seat of this process, if it has one with a free word. The record may be of any state: the
    /// caller reads that next.
    pub(crate) fn hold(&self, index: u32) -> Option<Hold> {
        self.seat()?.hold(index)
    }

    /// Gives a hold back.
    pub(crate) fn let_go(&self, hold: Hold) {
        if let Some(seat) = self.seat() {
            seat.let_go(hold);
        }
    }

    /// Notes that this process has one pin more. Only `check` reads that.
    pub(crate) fn note_given(&self) {
        if let Some(seat) = self.seat() {
            seat.change_pins(1);
        }
    }

    /// Notes that this process has one pin less.
    pub(crate) fn note_given_back(&self) {
        if let Some(seat) = self.seat() {
            seat.change_pins(-1);
        }
    }

    /// What all processes hold. A record that was retired before the call, and is not held now, is not read by anybody
    /// who pinned it by a seat, nor will be.
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
        self.taken_seats().iter().flat_map(Seat::held)
    }

    /// Takes the seat of this process, whose number no other process has. To be called once, before the first lookup.
    /// Whoever had the seat before has ended.
    pub fn take_seat(&self) {
        self.header().seated.fetch_add(1, AcqRel);
        let Some((number, seat)) = self.seat_number().zip(self.seat()) else { return };
        seat.clear();
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
