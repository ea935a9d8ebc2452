//! One look at everything that spans several words: what it has, which the files of this room add to. State of one
//! process.

use super::blocks::Blocks;
use super::finding::Findings;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

/// Items after which interrupts are let in.
pub(super) const STRIDE: u32 = 4096;

/// What the host knows of its processes, and does between the parts of a check.
pub trait Processes {
    /// Returns true if a process runs that has this number of a seat.
    fn has_seat(&self, number: u32) -> bool;
    /// Returns true if a process runs that has this number as the owner of claims.
    fn has_claims(&self, owner: u32) -> bool;
    /// Returns true if another process than this one may use the cache at this moment, or publish changes.
    fn are_others(&self) -> bool;
    /// Lets interrupts in. May unwind.
    fn pause(&self);
    /// Rests for some milliseconds, and lets interrupts in. May unwind. `times` counts how often it did in this check.
    fn rest(&self, times: u32);
}

/// What is known of a record, as bits.
pub(super) type Marks = u8;
pub(super) const IN_INDEX: Marks = 1;
pub(super) const IN_INDEX_AGAIN: Marks = 2;
pub(super) const IS_FREE: Marks = 4;
pub(super) const IN_LIMBO: Marks = 8;

/// One look at everything that spans several words.
pub(super) struct Look<'c, 'a, L: Locks, A: Arena, P: Processes> {
    pub(super) store: &'c Store<'a, L, A>,
    pub(super) processes: &'c P,
    pub(super) findings: &'c mut Findings,
    /// One for each record that was ever used.
    pub(super) marks: &'c mut [Marks],
    pub(super) blocks: &'c mut Blocks,
}

impl<L: Locks, A: Arena, P: Processes> Look<'_, '_, L, A, P> {
    /// Lets interrupts in now and then.
    pub(super) fn pause_at(&self, number: u32) {
        if number.is_multiple_of(STRIDE) {
            self.processes.pause();
        }
    }
}
