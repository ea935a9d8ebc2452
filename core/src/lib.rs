//! The result cache itself: a plain library over one block of raw memory that many processes map at the same address.
//!
//! Nothing here knows PostgreSQL. The server half lends it three things: the block ([`cache::layout::Layout`] says how it is cut), a
//! payload allocator inside it ([`cache::memory::Arena`]) and the locks ([`cache::memory::Locks`]). Who changes what, and under which lock, is
//! said at the head of each module; the whole of it:
//!
//! | state | changed under |
//! |---|---|
//! | bucket chains, an entry's step between published and limbo | the partition lock, exclusive; look-ups take none ([`cache::index`]) |
//! | free list, limbo list | the store lock |
//! | pins, hits, last use, counters, run counts | nothing: atomics |
//! | versions of relations ([`cache::versions`]) | the sequence word of the slot |
//! | payload bytes and the describing fields of an entry | nobody else sees them until publication; constant from then until the last pin is gone |
//!
//! No lock is ever taken while another is held, and the arena is never called under one.

pub mod cache;
pub mod formats;
mod prefetch;
pub mod reason;
pub mod reserve;
pub mod room;
mod shown;
pub mod sql_text;

pub use cache::counters::{Counter, Counters, STRIPES};
pub use cache::digest::{Difference, Digest};
pub use cache::key::{CacheKey, KeyBuffer, KeyHasher};
pub use cache::layout::{Layout, LayoutError, PARTITIONS, Sizes};
pub use cache::memory::{Arena, ArenaPtr, Locks};
pub use cache::versions::{Slot, SlotId, SnapshotView, Versions};
pub use cache::{Answers, Dependency, EntryId, EntryView, Fill, NewEntry, Pin, Store, StoreError, Validity};
pub use formats::options::{Compression, ExportOptions, OptionError, OptionValue};
pub use formats::profile::{ExtensionTypes, IntervalAs, NumericAs, OnUnrepresentable, Profile};
pub use formats::undeliverable::{FormError, Unrepresentable, Why};
pub use reason::Reason;
pub use room::{OutOfMemory, Room, RoomyVec};
pub use shown::{LONGEST_SHOWN, shown, shown_list};
pub use sql_text::hint::{Hint, hint};
pub use sql_text::normalize::{normalize, statement_body};
pub use sql_text::text_shape;
