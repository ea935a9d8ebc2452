//! Whether the replay of WAL on this standby tells the cache of every change, and whether it has come to where the last
//! server stopped.
//!
//! The startup process switches it off, once and for good: only a restart of the server begins anew. Readers ask both
//! after they have taken their snapshot. Atomic words; no lock.

use crate::atomics::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
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

/// A place in the WAL of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WalPlace {
    /// Where the last record before it ends; not 0.
    pub end: u64,
    /// The timeline that this record was read from.
    pub timeline: u32,
}

/// Words of a [`WalPlace`]; zeros are none.
pub(crate) type WalPlaceWords = [AtomicU64; 2];

/// The state of replay; words of zero are the state of a server that has met no fault, and waits for nothing.
#[derive(Clone, Copy)]
pub struct ReplayState<'a> {
    word: &'a AtomicU32,
    awaited: &'a WalPlaceWords,
}

impl<'a> ReplayState<'a> {
    /// The state in these words.
    #[must_use]
    pub fn new(word: &'a AtomicU32, awaited: &'a [AtomicU64; 2]) -> Self {
        Self { word, awaited }
    }

    /// The place that replay has to come to before what the store holds counts, if it has not come there yet.
    #[inline]
    #[must_use]
    pub fn awaited(&self) -> Option<WalPlace> {
        let [end, timeline] = self.awaited;
        match end.load(Acquire) {
            0 => None,
            end => Some(WalPlace { end, timeline: timeline.load(Relaxed) as u32 }),
        }
    }

    /// Lets the store count from this place on only.
    pub fn await_place(&self, place: WalPlace) {
        let [end, timeline] = self.awaited;
        timeline.store(place.timeline.into(), Relaxed);
        end.store(place.end, Release);
    }

    /// Replay has come to the place that was awaited, or will never do so and everything in the store is outdated. What
    /// the caller has written before, the base floor among it, is seen by whoever finds that nothing is awaited.
    pub fn arrive(&self) {
        self.awaited[0].store(0, Release);
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
        let (word, awaited) = (AtomicU32::new(0), [AtomicU64::new(0), AtomicU64::new(0)]);
        let state = ReplayState::new(&word, &awaited);
        assert_eq!((state.fault(), state.take_untold()), (None, None));
        state.switch_off(ReplayFault::UnknownRecord);
        state.switch_off(ReplayFault::Failure);
        assert_eq!(state.take_untold(), Some(ReplayFault::UnknownRecord));
        assert_eq!((state.take_untold(), state.fault()), (None, Some(ReplayFault::UnknownRecord)));
        state.switch_off(ReplayFault::Failure);
        assert_eq!(state.fault(), Some(ReplayFault::UnknownRecord));
    }

    #[test]
    fn a_place_is_awaited_until_replay_arrives() {
        let (word, awaited) = (AtomicU32::new(0), [AtomicU64::new(0), AtomicU64::new(0)]);
        let state = ReplayState::new(&word, &awaited);
        assert_eq!(state.awaited(), None);
        let place = WalPlace { end: u64::from(u32::MAX) + 7, timeline: u32::MAX };
        state.await_place(place);
        assert_eq!((state.awaited(), state.fault()), (Some(place), None));
        state.arrive();
        assert_eq!(state.awaited(), None);
    }
}
