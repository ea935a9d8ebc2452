//! The word under which some fields are read and written as a whole: writers make it odd while they store, readers try
//! again when it was odd or moved. No other lock is taken, and nothing is called while the word is odd.

use crate::atomics::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence, spin_loop, yield_now,
};

/// A sequence word. Zeroed memory is a word that never moved.
#[repr(transparent)]
pub(crate) struct SequenceWord(AtomicU64);

impl SequenceWord {
    /// A word that has moved so often.
    pub(crate) fn moved(times: u64) -> Self {
        Self(AtomicU64::new(times * 2))
    }

    /// How often it has moved, by itself: enough to find that it did.
    pub(crate) fn moves(&self) -> u64 {
        self.0.load(Acquire) / 2
    }

    /// The fields that `load` reads, as one consistent whole. It is told how often the word has moved.
    pub(crate) fn read<T>(&self, load: impl Fn(u64) -> T) -> T {
        let mut waits = 0;
        loop {
            if let Some(whole) = self.try_read(&load) {
                return whole;
            }
            wait(&mut waits);
        }
    }

    /// The same; `None` if somebody is changing them.
    pub(crate) fn try_read<T>(&self, load: impl Fn(u64) -> T) -> Option<T> {
        let before = self.0.load(Acquire);
        let fields = (before & 1 == 0).then(|| load(before / 2))?;
        fence(Acquire);
        (self.0.load(Relaxed) == before).then_some(fields)
    }

    /// The change that somebody is making at this moment: each has a number of its own.
    pub(crate) fn change_under_way(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|word| word & 1 != 0)
    }

    /// Makes the word odd, and returns how often it has moved. The caller stores the fields, and calls `end`.
    pub(crate) fn begin(&self) -> u64 {
        let mut waits = 0;
        loop {
            let current = self.0.load(Relaxed);
            let odd = current.wrapping_add(1);
            if current & 1 == 0 && self.0.compare_exchange_weak(current, odd, Acquire, Relaxed).is_ok() {
                // Pairs with the fence of `try_read`: a reader that sees one of the stores that follow sees the word
                // odd or later.
                fence(Release);
                return current / 2;
            }
            wait(&mut waits);
        }
    }

    /// The fields are stored: the word has moved once more than `begin` has returned.
    pub(crate) fn end(&self, moves: u64) {
        self.0.store(moves.wrapping_add(1).wrapping_mul(2), Release);
    }
}

/// Spins for a while, then gives up the processor: the holder of the word may have lost it.
fn wait(waits: &mut u32) {
    if *waits < 64 {
        *waits += 1;
        spin_loop();
    } else {
        yield_now();
    }
}
