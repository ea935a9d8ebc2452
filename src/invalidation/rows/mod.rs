//! Which values the rows have that a transaction changes in a tracked relation (rule W8). It is noted as the executor
//! changes each row: a statement that writes to a tracked relation puts a copy of the heap's access routine into the
//! relation's description, from when a row comes to be changed until it is.
//!
//! This may miss changes, and never silently: the server counts each change itself, whatever path it took. If fewer
//! were noted than are counted, the relation is published as a whole. So nothing here has to be complete, but whatever
//! is noted must be true.
//!
//! In the order in which the files may import each other: `noted` has what the transaction has noted; `watched` lists
//! the statements under way that write to tracked relations, and puts the routine in and back; `routine` is that copy,
//! whose functions note; `statements` begins and ends watching.

mod noted;
mod routine;
mod statements;
mod watched;

pub use arrow_cache_core::versions::noted_rows::Coarse;
pub use noted::for_each_noted;
pub use statements::{begin, end};
pub use watched::{is_idle, take_all_back};

/// Forgets what was noted, at the end of the transaction.
pub fn forget() {
    noted::forget();
    watched::forget();
}
