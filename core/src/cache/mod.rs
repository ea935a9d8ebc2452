//! The cache over one block of shared memory. Each file says who changes its state, and under which lock; `lib.rs` has
//! the whole table. The files, each of which imports only files further down:
//!
//! | file | what it holds |
//! |---|---|
//! | `check` | whether everything in the block agrees |
//! | `image` | what the next server begins with |
//! | `fill` | storing an answer: reserve, append, publish, abandon |
//! | `renditions` | finished messages beside an entry |
//! | `fragment_share` | how much of the memory fragments take together |
//! | `eviction`, `files` | making room: entries that go, and entries that move to a file |
//! | `file_format` | the bytes of such a file |
//! | `published` | looking an entry up, pinning it, is it still valid, retiring it |
//! | `view` | what can be read of a pinned entry |
//! | `worth` | what keeping an entry is worth |
//! | `speeds` | how many runs there were of one form, fingerprint or key, and how quick they are |
//! | `storing_time` | what storing the rows of a run takes, and whether that pays at once |
//! | `statements` | what became of the executions of each statement |
//! | `index` | chains of published entries, by key |
//! | `limbo` | lists of free and of retired records |
//! | `seats` | what each process holds and has used |
//! | `payload` | the layout of an entry's memory in the arena |
//! | `occupancy` | which records are published, as bits |
//! | `steps` | whether somebody is changing what belongs together |
//! | `store` | what a process holds to reach all this: the block, the locks, the arena |
//! | `layout` | where each part of the block lies |
//! | `header`, `entry`, `speed_word`, `seat`, `rendition`, `statement_record`, `claim_place` | the records in the block |
//! | `counters` | what is counted |
//! | `claims` | who computes which answer at this moment |
//! | `key` | the key of a cached result |
//! | `memory` | what the host lends: allocator, files and locks |

pub mod check;
pub mod claim_place;
pub mod claims;
pub mod counters;
mod entry;
mod eviction;
pub mod file_format;
mod files;
mod fill;
mod fragment_share;
mod header;
pub mod image;
mod index;
pub mod key;
pub mod layout;
mod limbo;
pub mod memory;
mod occupancy;
mod payload;
mod published;
mod rendition;
mod renditions;
mod seat;
mod seats;
mod speed_word;
mod speeds;
mod statement_record;
mod statements;
pub(crate) mod steps;
mod store;
mod storing_time;
mod view;
mod worth;

pub use entry::{Dependency, EntryId, EntryKind};
pub use fill::{Fill, NewEntry, NewKind, StoreError};
pub use payload::{CHUNK_OVERHEAD, Chunks};
pub use published::{Pin, Validity};
pub use renditions::{BlockPlace, Draft};
pub use speeds::Speed;
pub use statement_record::{StatementCounter, StatementCounts, StatementKey};
pub use store::Store;
pub use storing_time::{pays_at_once, storing_nanos};
pub use view::EntryView;
