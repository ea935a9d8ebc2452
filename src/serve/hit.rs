//! A stored answer that a statement is going to be served. Made by `lookup`; belongs to one statement. What is counted
//! and logged of it.

use std::rc::Rc;

use arrow_cache_core::Pin;
use pgrx::pg_sys;

use super::bound_portal_guard::Guard;
use crate::arrow::column::Column;
use crate::report::{decision_log, tally};
use crate::session::Status;
use crate::shmem::SharedStore;

/// A stored answer, pinned. Whoever makes a hit has compared the columns with those that the entry describes: they are
/// the same.
pub struct Hit {
    /// Holds the entry in place.
    pub pin: Pin,
    /// Its columns.
    pub columns: Rc<[Column]>,
    /// How many microseconds ago it was right, if it is outdated.
    pub stale: Option<i64>,
    /// What to check before the first row, if there is something.
    pub guard: Option<Box<Guard>>,
    /// The tables and indexes that are held open until it has been read.
    pub open: Vec<pg_sys::Oid>,
}

/// Counts a hit, and logs it: the server has asked for the rights, and the guard has been asked. A hold must have the
/// pin by then, since writing to the log accepts interrupts. `stale` is how many microseconds ago the answer was right.
pub(super) fn note_hit(store: &SharedStore, pin: &Pin, stale: Option<i64>, query_id: i64) {
    tally::count_hit(store, pin, stale.is_some(), query_id);
    decision_log::note_late(stale.map_or(Status::Hit, Status::StaleHit), query_id);
}
