//! What the store keeps about itself, at the start of the block. Each field says under which lock it changes; those
//! that do not are atomics that anybody changes.

use crate::atomics::{AtomicI64, AtomicU32, AtomicU64};
use crate::cache::steps::Steps;
use crate::replay::WalPlaceWords;

/// Zeroed memory is the header of an empty store.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) constant: Constant,
    pub(crate) steps: Steps,
    pub(crate) payload_bytes: AtomicU64,
    /// Bytes of the published fragments, and of those that are about to be.
    pub(crate) fragment_bytes: AtomicU64,
    /// Bytes of the files of entries, and of those that are being written.
    pub(crate) file_bytes: AtomicU64,
    pub(crate) published: AtomicU32,
    /// Records of the entry table ever used; changed under the store lock.
    pub(crate) fresh: AtomicU32,
    /// First link of the free list; changed under the store lock.
    pub(crate) free_head: AtomicU32,
    /// First and last link of the limbo list, and its length; changed under the store lock.
    pub(crate) limbo_head: AtomicU32,
    pub(crate) limbo_tail: AtomicU32,
    pub(crate) limbo_len: AtomicU32,
    /// Seats below this number may be in use.
    pub(crate) seats_taken: AtomicU32,
    /// How many processes have taken a seat, or would have if there were more.
    pub(crate) seated: AtomicU64,
    /// The record at which the next eviction starts: a hint.
    pub(crate) hand: AtomicU32,
    /// How many statements had to make room for the counts of others.
    pub(crate) statements_dropped: AtomicU64,
    /// When the counters were last zeroed, in microseconds; 0 = never.
    pub(crate) stats_reset: AtomicI64,
}

/// Read by every lookup, written a few times after the start: keeps a cache line of its own.
#[repr(C, align(64))]
pub(crate) struct Constant {
    pub(crate) base_floor: AtomicU64,
    /// Secret for the hashes of keys, constant once the block is set up.
    pub(crate) seed: AtomicU64,
    /// The word of [`PreparedDefinitions`](super::definers::PreparedDefinitions).
    pub(crate) prepared_definitions: AtomicU32,
    /// The word of [`ReplayState`](super::replay_state::ReplayState).
    pub(crate) replay: AtomicU32,
    /// What [`ReplayState`](super::replay_state::ReplayState) waits for.
    pub(crate) awaited: WalPlaceWords,
}
