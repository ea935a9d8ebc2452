//! Whether the replay of WAL on this standby tells the cache of every change.
//!
//! The startup process switches it off, once and for good: only a restart of the server begins anew. Readers ask it
//! after they have taken their snapshot. One atomic word; no lock.

use crate::atomics::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// What replay has met that it does not understand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ReplayFault {
    /// A record of a resource manager of an extension.
    CustomResourceManager = 1,
    /// A record of a kind that the resource manager had not when this library was made.
    UnknownRecord = 2,
    /// Our own code has failed.
    Failure = 3,
}

/// Set in the word when a line of the log has told of the fault.
const TOLD: u32 = 1 << 31;

/// The state of replay; a word of zero is the state of a server that has met no fault.
#[derive(Clone, Copy)]
pub struct ReplayState<'a> {
    word: &'a AtomicU32,
}

impl<'a> ReplayState<'a> {
    /// The state in this word.
    #[must_use]
    pub fn new(word: &'a AtomicU32) -> Self {
        Self { word }
    }

    /// What has switched it off, if anything.
    #[must_use]
    pub fn fault(&self) -> Option<ReplayFault> {
        let code = self.word.load(Acquire) & !TOLD;
        let all = [ReplayFault::CustomResourceManager, ReplayFault::UnknownRecord, ReplayFault::Failure];
        all.into_iter().find(|fault| *fault as u32 == code)
    }

    /// Switches it off. The first fault stays. To be called before the record is replayed that was not understood.
    pub fn switch_off(&self, fault: ReplayFault) {
        // If there is a fault already, that one stays.
        let _ = self.word.compare_exchange(0, fault as u32, AcqRel, Relaxed);
    }

    /// The fault, if there is one and nobody has told of it before: the caller shall.
    #[must_use]
    pub fn take_untold(&self) -> Option<ReplayFault> {
        let fault = self.fault()?;
        let was_told = self.word.fetch_or(TOLD, AcqRel) & TOLD != 0;
        (!was_told).then_some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_stays_and_is_told_once() {
        let word = AtomicU32::new(0);
        let state = ReplayState::new(&word);
        assert_eq!((state.fault(), state.take_untold()), (None, None));
        state.switch_off(ReplayFault::UnknownRecord);
        state.switch_off(ReplayFault::Failure);
        assert_eq!(state.take_untold(), Some(ReplayFault::UnknownRecord));
        assert_eq!((state.take_untold(), state.fault()), (None, Some(ReplayFault::UnknownRecord)));
        state.switch_off(ReplayFault::Failure);
        assert_eq!(state.fault(), Some(ReplayFault::UnknownRecord));
    }
}
