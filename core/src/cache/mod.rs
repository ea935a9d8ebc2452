//! The cache over one block of shared memory: entries and their index, what they rest on, room for new ones. Each file says who changes
//! what, and under which lock; `lib.rs` has the whole table.

mod answers;
pub mod counters;
pub mod digest;
mod entry;
mod eviction;
mod index;
pub mod key;
pub mod layout;
mod lists;
pub mod memory;
mod occupancy;
mod payload;
pub mod store;
pub mod versions;
mod view;
pub mod window;

pub use answers::Answers;
