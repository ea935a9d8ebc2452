//! A stored answer that a statement is going to be served.

use std::rc::Rc;

use arrow_cache_core::{CacheKey, Pin};

use super::rerun::Guard;
use super::template::Template;
use crate::arrow::column::Column;
use crate::query::Versions;

/// A stored answer, pinned.
pub struct Hit {
    /// Holds the entry in place.
    pub pin: Pin,
    /// Its columns.
    pub columns: Vec<Column>,
    /// What to check before the first row, if there is something.
    pub guard: Option<Guard>,
    /// Other statements may run between the start and the end of its reading.
    pub stays_open: bool,
    /// The template that serves the statement, if there was one before.
    pub template: Option<Rc<Template>>,
    /// The lower half of the key of the statement's form.
    pub form: u64,
    /// The facts of the statement's plan.
    pub facts: CacheKey,
    /// The definitions that were current when the statement was planned.
    pub versions: Versions,
}
