//! Which statement is timed, and for what: handed from the planner hook to the executor's hooks. State of this backend;
//! no lock.

use std::cell::Cell;

use super::nesting::at_top_level;
use crate::pg::backend;
use crate::pg::backend_local::Local;

/// What the time of a run tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Whether statements with this fingerprint are worth a lookup.
    Lookup,
    /// Whether statements of this form, which are bypassed because they ask for the time, are worth being combined of
    /// parts.
    Parts {
        /// This one is.
        combined: bool,
    },
}

/// A statement that is timed.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// The fingerprint or the form by which its speed is remembered.
    pub alike: u64,
    pub purpose: Purpose,
    /// When it has begun, as far as that is known.
    pub began: Option<i64>,
}

/// The statement under way, if it is timed.
static TIMED: Local<Cell<Option<Timed>>> = Local::new(Cell::new(None));
/// The fingerprint of the statement that was planned last and is executed next.
static PLANNED: Local<Cell<Option<u64>>> = Local::new(Cell::new(None));

/// Has the run timed of the statement that is planned or started now.
pub fn time_run(timed: Option<Timed>) {
    TIMED.set(timed);
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

/// Returns true if the statement that starts now was planned for this execution, and has a fingerprint.
#[inline]
pub fn has_fingerprint() -> bool {
    PLANNED.get().is_some()
}

/// Takes the fingerprint of the statement that starts now, if it was planned for this execution.
pub fn take_fingerprint() -> Option<u64> {
    PLANNED.take()
}

/// A run begins, at a time that is asked for only if the statement that runs now, at this level, is timed. Its message
/// may have had others before.
#[inline]
pub fn begin_timed() {
    if is_timed() {
        let begun = |timed: Timed| Timed { began: timed.began.or_else(|| Some(backend::now())), ..timed };
        TIMED.set(TIMED.get().map(begun));
    }
}

/// Takes what is timed at this level.
#[inline]
pub fn take_timed() -> Option<Timed> {
    if is_timed() { TIMED.take() } else { None }
}

#[inline]
fn is_timed() -> bool {
    TIMED.get().is_some() && at_top_level()
}

/// The statement that starts now, at the top level, is not timed.
#[inline]
pub fn forget_timed() {
    TIMED.set(None);
}

/// The statement that starts now, at the top level, asks for the time: it is timed for its parts, if at all.
pub fn keep_timed_for_parts() {
    TIMED.set(TIMED.get().filter(|timed| matches!(timed.purpose, Purpose::Parts { .. })));
}
