//! Which slots processes wait for (`arrow_cache.wait`), so that whoever moves one of them knows whom to wake.
//!
//! A waiting process has a set of bits, one for each of its slots, by their hashes: a set has room for any number of
//! slots, and two that share a bit cause a needless wake-up. How many wait for each bit is counted, too, so that those
//! who move other slots look at one word for each. All are atomics; no lock.
//!
//! *No wake-up is lost.* A process enters its bits, and only then looks whether its slots have moved. Another one moves
//! slots, and only then looks who waits for them. Between the two steps of each lies a fence of sequential consistency:
//! the one who waits sees the slot moved, or the one who moves it sees the bit. `core/tests/awaited.rs` goes through
//! all interleavings, and `core/loom/src/awaited.rs` through all orders.

use crate::atomics::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
    fence,
};
use crate::versions::slots::SlotId;

/// Number of bits. Loom has few.
const BITS: usize = if cfg!(modelled) { 64 } else { 2048 };
const WORDS: usize = BITS / 64;

/// A set of slots, by their hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotBits([u64; WORDS]);

impl SlotBits {
    /// No slots.
    pub const NONE: Self = Self([0; WORDS]);

    /// Adds a slot.
    pub fn add(&mut self, slot: SlotId) {
        let (word, bit) = place_of(slot);
        self.0[word] |= bit;
    }
}

/// The word of a slot, and its bit there.
fn place_of(slot: SlotId) -> (usize, u64) {
    // The upper bits of the product depend on all of the slot.
    let number = (slot.0.wrapping_mul(0x9e37_79b1) >> 16) as usize % BITS;
    (number / 64, 1 << (number % 64))
}

/// What all processes share. Zeroed memory says that nobody waits.
#[repr(C, align(64))]
pub(crate) struct Head {
    /// How many processes wait.
    waiting: AtomicU32,
    /// Processes of this number and above have never waited.
    used: AtomicU32,
    /// How many processes wait for each bit.
    counts: [AtomicU32; BITS],
}

/// The bits of one process. Zeroed memory has none.
#[repr(C, align(64))]
pub(crate) struct Waiter([AtomicU64; WORDS]);

/// Bytes of all this for so many processes: the head, and then their bits.
pub(crate) const fn size(processes: u32) -> usize {
    size_of::<Head>() + processes as usize * size_of::<Waiter>()
}

/// View over all who may wait.
#[derive(Clone, Copy)]
pub struct Awaited<'a> {
    head: &'a Head,
    waiters: &'a [Waiter],
}

impl<'a> Awaited<'a> {
    pub(crate) fn new(head: &'a Head, waiters: &'a [Waiter]) -> Self {
        Self { head, waiters }
    }

    /// The process of this number, which waits for nothing yet, waits for these slots from now on: what moves after
    /// this is noted by whoever moves it. Returns false if there is no place for a process of this number.
    #[must_use]
    pub fn enter(&self, process: u32, slots: &SlotBits) -> bool {
        let Some(waiter) = self.waiters.get(process as usize) else { return false };
        for (number, bits) in slots.0.iter().enumerate() {
            waiter.0[number].store(*bits, Relaxed);
            self.each_count(number, *bits, |count| _ = count.fetch_add(1, Relaxed));
        }
        self.head.used.fetch_max(process + 1, Relaxed);
        self.head.waiting.fetch_add(1, Relaxed);
        // Pairs with the fences of `add_awaited` and `all`.
        fence(SeqCst);
        true
    }

    /// The process waits no more. To be called once for each `enter` that returned true.
    pub fn leave(&self, process: u32) {
        let Some(waiter) = self.waiters.get(process as usize) else { return };
        for (number, word) in waiter.0.iter().enumerate() {
            let bits = word.swap(0, Relaxed);
            self.each_count(number, bits, |count| _ = count.fetch_sub(1, Relaxed));
        }
        self.head.waiting.fetch_sub(1, Relaxed);
    }

    /// Adds to `awaited` those slots, which the caller has moved, for which somebody waits, and returns true if there
    /// are such. Whoever begins to wait for one after this call sees that it has moved.
    #[inline]
    pub fn add_awaited(&self, moved: impl IntoIterator<Item = SlotId>, awaited: &mut SlotBits) -> bool {
        // Pairs with the fence of `enter`.
        fence(SeqCst);
        self.head.waiting.load(Relaxed) != 0 && self.add_counted(moved, awaited)
    }

    #[inline(never)]
    fn add_counted(&self, moved: impl IntoIterator<Item = SlotId>, awaited: &mut SlotBits) -> bool {
        let mut are_some = false;
        for slot in moved {
            let (word, bit) = place_of(slot);
            if self.head.counts[64 * word + bit.trailing_zeros() as usize].load(Relaxed) != 0 {
                awaited.0[word] |= bit;
                are_some = true;
            }
        }
        are_some
    }

    /// The processes that wait for one of these slots at this moment.
    pub fn waiting_for(&self, slots: &SlotBits) -> impl Iterator<Item = u32> + use<'a> {
        let slots = *slots;
        self.used()
            .filter(move |(_, waiter)| {
                waiter.0.iter().zip(&slots.0).any(|(word, bits)| *bits != 0 && word.load(Relaxed) & bits != 0)
            })
            .map(|(process, _)| process)
    }

    /// All processes that wait at this moment.
    pub fn all(&self) -> impl Iterator<Item = u32> + use<'a> {
        // Pairs with the fence of `enter`.
        fence(SeqCst);
        self.waiting_for(&SlotBits([u64::MAX; WORDS]))
    }

    /// How many processes wait.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.head.waiting.load(Relaxed)
    }

    fn used(&self) -> impl Iterator<Item = (u32, &'a Waiter)> + use<'a> {
        (0..self.head.used.load(Relaxed)).zip(self.waiters)
    }

    fn each_count(&self, word: usize, mut bits: u64, visit: impl Fn(&AtomicU32)) {
        while bits != 0 {
            visit(&self.head.counts[64 * word + bits.trailing_zeros() as usize]);
            bits &= bits - 1;
        }
    }
}
