//! The record of a seat: what one process writes while it serves hits, on lines of its own. `seats` says who else
//! writes and reads it, and why that is safe. All fields are atomics; nothing here takes a lock.

use crate::atomics::{
    AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

/// Entries that a process can hold by its seat.
const HOLDS: usize = 8;
/// Entries whose uses a seat gathers.
pub(crate) const TALLIES: usize = 7;
/// What one process writes while it serves hits, on lines of its own. Zeroed memory is a seat that holds nothing.
#[repr(C, align(64))]
pub(crate) struct Seat {
    /// The numbers of held records plus one; 0 = none.
    holds: [AtomicU64; HOLDS],
    pub(crate) tallies: [Tally; TALLIES],
    /// Pins that the process has, fills included; only `check` reads it.
    pins: AtomicU64,
}

const _: () = assert!(size_of::<Seat>() == 256);

/// Uses of one entry that were not added to it yet.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Tally {
    /// See [`Uses`].
    pub(crate) uses: AtomicU64,
    /// The last use, in microseconds.
    pub(crate) last_used: AtomicI64,
    /// When uses were last added to the entry, in microseconds.
    pub(crate) added_at: AtomicI64,
}

/// An entry and how often it was used, in one word: number of the record plus one, the low bits of its generation,
/// hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Uses(pub(crate) u64);

impl Uses {
    const GENERATION: u32 = 32;
    const HITS: u32 = 48;
    pub(crate) const MOST_HITS: u64 = u16::MAX as u64;

    pub(crate) fn none(index: u32, generation: u32) -> Self {
        Self((u64::from(index) + 1) | (u64::from(generation as u16) << Self::GENERATION))
    }

    pub(crate) fn without_hits(self) -> Self {
        Self(self.0 & ((1 << Self::HITS) - 1))
    }

    pub(crate) fn hits(self) -> u64 {
        self.0 >> Self::HITS
    }

    pub(crate) fn one_more(self) -> Self {
        Self(self.0 + (1 << Self::HITS))
    }

    pub(crate) fn index(self) -> Option<u32> {
        (self.0 as u32).checked_sub(1)
    }

    /// Returns true if the entry of this generation may be the one that was used. It is, unless the record was used
    /// again 65,536 times since.
    pub(crate) fn is_of(self, generation: u32) -> bool {
        (self.0 >> Self::GENERATION) as u16 == generation as u16
    }
}

/// Which word of its seat a process holds an entry by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hold(u8);

impl Seat {
    /// Holds a record, published or not: the caller then looks whether it is. `None` if all words are in use.
    pub(crate) fn hold(&self, index: u32) -> Option<Hold> {
        let free = self.holds.iter().position(|word| word.load(Relaxed) == 0)?;
        self.holds[free].store(u64::from(index) + 1, Relaxed);
        // Pairs with the fence of `held`.
        fence(SeqCst);
        Some(Hold(free as u8))
    }

    pub(crate) fn let_go(&self, hold: Hold) {
        // What was read of the entry was read before.
        self.holds[usize::from(hold.0) % HOLDS].store(0, Release);
    }

    /// The records that it holds.
    pub(crate) fn held(&self) -> impl Iterator<Item = u32> + '_ {
        self.holds.iter().filter_map(|word| (word.load(Acquire) as u32).checked_sub(1))
    }

    /// Pins that the process has.
    pub(crate) fn pins(&self) -> u64 {
        self.pins.load(Relaxed)
    }

    /// By the process of the seat: it has one pin more, or one less.
    pub(crate) fn change_pins(&self, difference: i64) {
        self.pins.store(self.pins().wrapping_add_signed(difference), Relaxed);
    }

    /// Lets go whatever it holds. To be called when the process that held it has ended.
    pub(crate) fn clear(&self) {
        self.pins.store(0, Release);
        self.holds.iter().for_each(|word| word.store(0, Release));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat() -> Seat {
        Seat { holds: Default::default(), tallies: Default::default(), pins: AtomicU64::new(0) }
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
