//! By what the speed of a statement is remembered: the fingerprint of its text, or the lower half of its form where the plan was
//! prepared. Handed from the planner hook to the executor's hooks. State of this backend; no lock.

use std::cell::Cell;

use super::nesting::at_top_level;
use crate::pg::backend_local::Local;

/// The statement under way is timed for this fingerprint.
static TIMED: Local<Cell<Option<u64>>> = Local::new(Cell::new(None));
/// The fingerprint of the statement that was planned last and is executed next.
static PLANNED: Local<Cell<Option<u64>>> = Local::new(Cell::new(None));

/// Has the run of the statement that starts now timed, for later statements with its fingerprint.
pub fn time_run(fingerprint: Option<u64>) {
    TIMED.set(fingerprint);
    PLANNED.set(None);
}

/// Notes the fingerprint of the statement that is planned now and executed next.
pub fn note_fingerprint(fingerprint: Option<u64>) {
    TIMED.set(None);
    PLANNED.set(fingerprint);
}

/// Forgets the statement that was planned last.
#[inline]
pub fn forget_fingerprint() {
    PLANNED.set(None);
}

/// Was the statement that starts now planned for this execution, and has a fingerprint?
#[inline]
pub fn has_fingerprint() -> bool {
    PLANNED.get().is_some()
}

/// Takes the fingerprint of the statement that starts now, if it was planned for this execution.
pub fn take_fingerprint() -> Option<u64> {
    PLANNED.take()
}

/// Returns true if the statement that runs now, at this level, is timed.
#[inline]
pub fn is_timed() -> bool {
    TIMED.get().is_some() && at_top_level()
}

/// Takes the fingerprint whose statement is timed, if there is one at this level.
#[inline]
pub fn take_timed() -> Option<u64> {
    if is_timed() { TIMED.take() } else { None }
}

/// The statement that starts now, at the top level, is not timed.
#[inline]
pub fn forget_timed() {
    TIMED.set(None);
}
