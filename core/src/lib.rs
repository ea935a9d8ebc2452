//! The result cache itself: a plain library over one block of raw memory that many processes map at the same address.
//!
//! Nothing here knows PostgreSQL. There are three rooms, which import nothing of each other: [`cache`] (the cache in
//! the block), [`formats`] (values as bytes) and [`sql_text`] (the texts of statements). Beside them stands
//! [`result_digest`], which compares two results. Below them lie [`replay`] and [`versions`] (what answers rest on),
//! [`hash`], [`reason`], [`room`], [`reserve`], [`KnownRelations`], `shown`, `prefetch` and `atomics`.
//!
//! The server half lends the cache three things: the block ([`Layout`] says where its parts lie), a payload allocator
//! inside it ([`Arena`]) and the locks ([`Locks`]). The head of each module says who changes its state, and under which
//! lock; the whole table:
//!
//! | state | changed under |
//! |---|---|
//! | bucket chains, an entry's step between published and limbo | the partition lock, exclusive; lookups take none (`cache/index.rs`) |
//! | free list, limbo list | the store lock |
//! | what became of the executions of each statement | a partition lock (`cache/statements.rs`) |
//! | pins, seats, hits, last use, counters, speeds, bytes of fragments | nothing: atomics |
//! | versions of relations ([`versions`]) | the sequence word of the slot |
//! | which relations are tracked ([`versions`]) | the sequence word of the line |
//! | which definitions are being changed ([`versions`]) | atomics |
//! | who computes which answer ([`cache::claims`]) | atomics |
//! | changes that a standby has replayed and not seen committed ([`replay`]) | nothing: one process has them, not in the block |
//! | payload bytes and the describing fields of an entry | written by the process that fills, until it publishes; then constant until the last pin is gone |
//!
//! No lock is taken while another is held, and the arena is never called under a lock.

#[cfg(test)]
extern crate self as arrow_cache_core;

mod atomics;
pub mod cache;
pub mod formats;
pub mod hash;
mod known_relations;
#[cfg(all(test, modelled))]
#[path = "../loom/src/models.rs"]
mod models;
mod prefetch;
pub mod reason;
pub mod replay;
pub mod reserve;
pub mod result_digest;
pub mod room;
mod shown;
pub mod sql_text;
pub mod versions;

pub use cache::check::{Finding, Processes, Report};
pub use cache::claim_place::Wanted;
pub use cache::claims::{CLAIMS, Claim, Claimed, Claims, Ending, Taking};
pub use cache::counters::{Counter, Counters, STRIPES, Stripe};
pub use cache::image::{Loaded, Origin, Unusable};
pub use cache::key::CacheKey;
pub use cache::layout::{Layout, LayoutError, MOST_SEATS, PARTITIONS, Sizes};
pub use cache::memory::{Arena, ArenaPtr, FileLimits, Locks};
pub use cache::{
    BlockPlace, Dependency, Draft, EntryId, EntryKind, EntryView, Fill, NewEntry, NewKind, Pin, Speed,
    StatementCounter, StatementCounts, StatementKey, Store, StoreError, Validity, pays_at_once, storing_nanos,
};
pub use formats::options::{Compression, ExportOptions, OptionError, OptionValue};
pub use formats::profile::{ExtensionTypes, IntervalAs, NumericAs, OnUnrepresentable, Profile, SpecialTimes};
pub use formats::undeliverable::{Unrepresentable, Why};
pub use hash::{Hash128, HashBuffer};
pub use known_relations::KnownRelations;
pub use reason::{Reason, Share};
pub use replay::{Change, ChangeKind, Full, ReplayFault, ReplayState, ReplayedChanges, WalPlace};
pub use result_digest::Digest;
pub use room::{OutOfMemory, Room, RoomyVec};
pub use shown::{LONGEST_SHOWN, shown, shown_list};
pub use sql_text::hint::{Hint, hint, unclear_hint};
pub use sql_text::{has_clock_word, text_fingerprint};
pub use versions::{
    AskedXids, Definers, EACH_ROW, ITS_VALUE, QUIET, QuietColumns, Registry, Slot, SlotId, SnapshotView,
    TrackedColumns, TrackedRelation, Usage, Versions, Wish, bit_of, bits_of, members, pair, quietly, together,
    widen_xid,
};
