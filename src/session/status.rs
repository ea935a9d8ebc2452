//! What became of the client's statements, for `last_status()` and the log. State of this backend, set by the rooms
//! that decide; no lock.

use std::cell::Cell;

use arrow_cache_core::Reason;

use super::timing::forget_fingerprint;
use crate::pg::backend_local::Local;

/// What became of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Answered from the cache.
    Hit,
    /// Answered from the cache, with an outdated result, as it had asked for. The result was right so many microseconds
    /// ago.
    StaleHit(i64),
    /// Executed; a result for it was looked up and not found. The reason, if any, tells why the new result was not
    /// stored.
    Miss(Option<Reason>),
    /// Executed, because the stored result was out of date.
    Stale(Option<Reason>),
    /// Executed without a lookup, or in spite of one.
    Bypass(Reason),
}

impl Status {
    /// The word that `arrow_cache.last_status()` returns.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "HIT",
            Self::StaleHit(_) => "STALE_HIT",
            Self::Miss(_) => "MISS",
            Self::Stale(_) => "STALE",
            Self::Bypass(_) => "BYPASS",
        }
    }

    /// Why the statement was bypassed or its result not stored.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Hit | Self::StaleHit(_) => None,
            Self::Miss(reason) | Self::Stale(reason) => reason,
            Self::Bypass(reason) => Some(reason),
        }
    }
}

/// Number of the present top-level statement.
static STATEMENT: Local<Cell<u64>> = Local::new(Cell::new(0));
/// What became of it.
static CURRENT: Local<Cell<Option<Status>>> = Local::new(Cell::new(None));
/// What became of the last one that did not ask for a status.
static PREVIOUS: Local<Cell<Option<Status>>> = Local::new(Cell::new(None));
/// The present statement has asked for the status.
static ASKED_STATUS: Local<Cell<bool>> = Local::new(Cell::new(false));

/// A new top-level statement has begun; until more is known it counts as bypassed for `reason`.
#[inline]
pub fn begin_statement(reason: Reason) {
    if !ASKED_STATUS.replace(false) {
        PREVIOUS.set(CURRENT.get());
    }
    CURRENT.set(Some(Status::Bypass(reason)));
    STATEMENT.set(STATEMENT.get() + 1);
}

/// A new top-level statement has begun that is bypassed. It is not the one whose fingerprint was noted when it was
/// planned.
#[inline]
pub fn begin_bypass(reason: Reason) {
    begin_statement(reason);
    forget_fingerprint();
}

/// A new top-level statement has begun. Nothing becomes of it if it is refused before more is known.
pub fn begin_undecided() {
    begin_bypass(Reason::NotSelect);
    CURRENT.set(None);
}

/// Number of the present top-level statement.
pub fn statement_number() -> u64 {
    STATEMENT.get()
}

/// Sets what became of the present top-level statement.
pub fn set_status(status: Status) {
    CURRENT.set(Some(status));
}

/// Sets what became of statement `number`, unless another one has begun since (a cursor's rows may be fetched much
/// later).
pub fn set_status_of(number: u64, status: Status) {
    if STATEMENT.get() == number {
        CURRENT.set(Some(status));
    }
}

/// The status of the last top-level statement that did not itself ask for it.
pub fn last_status() -> Option<Status> {
    ASKED_STATUS.set(true);
    PREVIOUS.get()
}
