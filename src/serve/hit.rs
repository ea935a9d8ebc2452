//! A stored answer that a statement is going to be served. Made by `lookup`; belongs to one statement.

use std::rc::Rc;

use arrow_cache_core::Pin;
use pgrx::pg_sys;

use super::bound_portal_guard::Guard;
use crate::arrow::column::Column;

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
