//! Results as Arrow, from the cache where it holds: `arrow_cache.query`, `fetch`, `messages` and `schema`, and what COPY
//! shares with them.
//!
//! The query goes the way of any other: parsed, planned, judged, looked up under a snapshot of its own. A hit streams
//! the stored batches; a miss runs the plan once, encodes its rows, sends them, and stores them if that is allowed.

mod arguments;
mod chunks;
mod collect;
mod inner;
mod options;
mod paused;
mod rows;
mod run;
mod schema;
mod sink;
mod stream;

pub use arguments::text as query_text;
pub use inner::{check_permitted, describe, push_callers_snapshot, within};
pub use options::from_words;
pub use run::{Decision, Export, decide, store};
pub use stream::Output;

use std::ffi::CString;

use arrow_cache_core::RoomyVec;

use crate::error::or_raise;

/// Largest value PostgreSQL can allocate (MaxAllocSize).
const LARGEST_BYTEA: usize = 0x3fff_ffff;

/// End of an IPC stream: continuation marker and a metadata length of 0.
pub const END_OF_STREAM: [u8; 8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];

/// A text as a C string that outlives the call of the function. Raises if there is no memory for it.
pub fn c_string(bytes: &[u8]) -> CString {
    let mut text = or_raise(Vec::with_room(bytes.len() + 1));
    text.extend_from_slice(bytes);
    CString::new(text).unwrap_or_default()
}
