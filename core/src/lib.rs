//! The result cache itself: a plain library over one block of raw memory that many processes map at the same address.
//!
//! Nothing here knows PostgreSQL. The server half lends it three things: the block ([`layout::Layout`] says how it is cut), a
//! payload allocator inside it ([`memory::Arena`]) and the locks ([`memory::Locks`]). Who changes what, and under which lock, is
//! said at the head of each module; the whole of it:
//!
//! | state | changed under |
//! |---|---|
//! | bucket chains, an entry's step between published and limbo | the partition lock, exclusive; look-ups take none ([`index`]) |
//! | free list, limbo list | the store lock |
//! | pins, hits, last use, counters, run counts | nothing: atomics |
//! | versions of relations ([`versions`]) | the sequence word of the slot |
//! | payload bytes and the describing fields of an entry | nobody else sees them until publication; constant from then until the last pin is gone |
//!
//! No lock is ever taken while another is held, and the arena is never called under one.

mod answers;
pub mod counters;
pub mod decimal;
pub mod digest;
mod entry;
pub mod epoch;
mod eviction;
pub mod hint;
mod index;
pub mod jsonb;
pub mod key;
pub mod layout;
mod lists;
pub mod memory;
pub mod normalize;
pub mod numeric;
mod occupancy;
pub mod options;
mod payload;
pub mod profile;
pub mod reason;
pub mod reserve;
pub mod room;
mod shape;
mod shown;
mod statement;
pub mod store;
pub mod undeliverable;
pub mod versions;
mod view;
pub mod window;
pub mod wire;

pub use answers::Answers;
pub use counters::{Counter, Counters, STRIPES};
pub use digest::{Difference, Digest};
pub use hint::{Hint, hint};
pub use key::{CacheKey, KeyBuffer, KeyHasher};
pub use layout::{Layout, LayoutError, PARTITIONS, Sizes};
pub use memory::{Arena, ArenaPtr, Locks};
pub use normalize::{normalize, statement_body};
pub use options::{Compression, ExportOptions, OptionError, OptionValue};
pub use profile::{ExtensionTypes, IntervalAs, NumericAs, OnUnrepresentable, Profile};
pub use reason::Reason;
pub use room::{OutOfMemory, Room, RoomyVec};
pub use shape::text_shape;
pub use shown::{LONGEST_SHOWN, shown, shown_list};
pub use store::{Dependency, EntryId, EntryView, Fill, NewEntry, Pin, Store, StoreError, Validity};
pub use undeliverable::{FormError, Unrepresentable, Why};
pub use versions::{Slot, SlotId, SnapshotView, Versions};
