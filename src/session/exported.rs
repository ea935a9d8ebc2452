//! The query that is about to be planned for an export: which one it is, and how its rows will be read. State of this backend, set by the hook of
//! utility statements and by export functions; no lock.

use std::cell::Cell;
use std::ffi::c_char;

use super::nesting::at_top_level;
use crate::pg::backend_local::Local;

/// How the rows of a query are read that is exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExportReads {
    /// All of them, by one message, as soon as it is planned.
    All,
    /// As `All`, but perhaps not to the end.
    Limited,
    /// While other statements may run in between.
    InParts,
}

/// The text of the query that an export function is planning to export it, and how it is read then.
static BY_FUNCTION: Local<Cell<Option<(*const c_char, ExportReads)>>> = Local::new(Cell::new(None));
/// The statement of the client is a COPY to Arrow, which reads its query in this way.
static BY_COPY: Local<Cell<Option<ExportReads>>> = Local::new(Cell::new(None));

/// Notes which query an export function is planning, and how it is read then; `None` for none that will be read.
pub(super) fn set_by_function(exported: Option<(*const c_char, ExportReads)>) {
    BY_FUNCTION.set(exported);
}

/// Notes that the statement of the client is a COPY to Arrow, or none. Returns what was noted before.
pub(super) fn set_by_copy(reads: Option<ExportReads>) -> Option<ExportReads> {
    BY_COPY.replace(reads)
}

/// What `set_by_copy` has noted.
pub(super) fn by_copy() -> Option<ExportReads> {
    BY_COPY.get()
}

/// How the query of a text, which is planned now, will be read, if it is planned to be exported. What functions plan meanwhile has other texts, and
/// is not at the top level.
pub fn export_reads(text: *const c_char) -> Option<ExportReads> {
    let (exported, reads) = BY_FUNCTION.get().unzip();
    if exported == Some(text) { reads } else { BY_COPY.get().filter(|_| at_top_level()) }
}
