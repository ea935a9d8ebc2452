//! Which values the rows have that a transaction changes in a tracked relation (rule W8). It is noted as the executor
//! changes each row: a statement that writes to a tracked relation puts a copy of the heap's access routine into the
//! relation's description, from when a row comes to be changed until it is.
//!
//! This may miss changes, and never silently: the server counts each change itself, whatever path it took. If fewer
//! were noted than are counted, the relation is published as a whole. So nothing here has to be complete, but whatever
//! is noted must be true.
//!
//! In the order in which the files may import each other: `contents` says what a row has that is noted; `watched` lists
//! the statements under way that write to tracked relations, and puts the routine in and back; `as_read` finds the slot
//! that has the row; `noted` has what the transaction has noted; `expected` finds the relation of which a row is about
//! to be changed; `routine` is that copy, whose functions note; `routed` tells whether rows may come to tracked leaves;
//! `statements` begins and ends watching, and `copied` does so for COPY FROM.

mod as_read;
mod contents;
mod copied;
mod expected;
mod noted;
mod routed;
mod routine;
mod statements;
mod watched;

pub use arrow_cache_core::versions::noted_rows::Coarse;
pub use copied::{begin as begin_copy, end as end_copy};
pub use noted::{is_idle, with_noted};
pub use statements::{begin, end};

/// The transaction has failed.
///
/// # Safety
/// Before relations are let go.
pub unsafe fn fail() {
    if !is_idle() {
        // SAFETY: the caller's promise.
        unsafe { watched::take_all_back() };
    }
}

/// Forgets all, at the end of the transaction.
#[inline]
pub fn forget() {
    if !is_idle() {
        noted::forget();
        watched::forget();
    }
}
