//! When this session last committed something. Whoever accepts outdated answers gets none from before that. State of
//! this backend; no lock.

use std::cell::Cell;

use crate::pg::attention;
use crate::pg::backend_local::Local;

/// A time after the last commit became visible, in microseconds.
static LAST: Local<Cell<i64>> = Local::new(Cell::new(i64::MIN));
/// The transaction that is about to commit may have written.
static WRITES: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Notes that the transaction that is about to commit may have written.
pub fn note_writing() {
    attention::leave_for_end();
    WRITES.set(true);
}

/// The transaction has been committed, if `now` is given; else it was prepared or rolled back.
pub fn note_end(now: impl FnOnce() -> Option<i64>) {
    if WRITES.replace(false)
        && let Some(now) = now()
    {
        LAST.set(now);
    }
}

/// A time after the last commit of this session that may have written, in microseconds.
pub fn last_own_commit() -> i64 {
    LAST.get()
}
