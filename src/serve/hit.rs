//! A stored answer that a statement is going to be served. Made by `lookup`; belongs to one statement.

use std::rc::Rc;

use arrow_cache_core::Pin;

use super::bound_portal_guard::Guard;
use super::template::Template;
use crate::arrow::column::Column;
use crate::query::Versions;
use crate::query::hashes::{FactsHash, FormId};

/// A stored answer, pinned. Whoever makes a hit has compared the columns with those that the entry describes: they are the same.
pub struct Hit {
    /// Holds the entry in place.
    pub pin: Pin,
    /// Its columns.
    pub columns: Rc<[Column]>,
    /// How many microseconds ago it was right, if it is outdated.
    pub stale: Option<i64>,
    /// What to check before the first row, if there is something.
    pub guard: Option<Box<Guard>>,
    /// Other statements may run between the start and the end of its reading.
    pub stays_open: bool,
    /// The template that serves the statement, if there was one before.
    pub template: Option<Rc<Template>>,
    /// The statement's form.
    pub form: FormId,
    /// The facts of the statement's plan.
    pub facts: FactsHash,
    /// The definitions that were current when the statement was planned.
    pub versions: Versions,
}
