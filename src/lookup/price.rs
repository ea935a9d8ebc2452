//! What looking a statement up takes, by the clock: from the decision that it is looked up, when it is planned or
//! started, to the hit or miss. Measured in one of a few look-ups of each fingerprint (`quick_statements`). State of
//! this backend: the statement under way.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::fingerprint::Fingerprint;
use crate::pg::backend_local::Local;

/// A look-up that is measured.
#[derive(Clone, Copy)]
struct Measured {
    fingerprint: Fingerprint,
    /// What its parts have taken that are over.
    spent: Duration,
    /// When the part began that is under way.
    since: Option<Instant>,
}

impl Measured {
    /// The part under way, if there is one, is over.
    fn stopped(self) -> Self {
        let part = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        Self { spent: self.spent + part, since: None, ..self }
    }
}

static UNDER_WAY: Local<Cell<Option<Measured>>> = Local::new(Cell::new(None));

/// A look-up begins here, and is measured or not.
pub fn begin(fingerprint: Fingerprint, is_measured: bool) {
    let measured = || Measured { fingerprint, spent: Duration::ZERO, since: Some(Instant::now()) };
    UNDER_WAY.set(is_measured.then(measured));
}

/// The server goes on with something else, and comes back to the look-up later.
#[inline]
pub fn pause() {
    if let Some(measured) = UNDER_WAY.get() {
        UNDER_WAY.set(Some(measured.stopped()));
    }
}

/// The look-up goes on.
#[inline]
pub fn go_on() {
    if let Some(measured) = UNDER_WAY.get() {
        UNDER_WAY.set(Some(Measured { since: Some(Instant::now()), ..measured }));
    }
}

/// A statement starts. `planned_as` is the fingerprint that it was planned with, if it was planned for this execution.
/// What another statement has left behind is forgotten.
#[inline]
pub fn start(planned_as: Option<Fingerprint>) {
    if UNDER_WAY.get().is_some_and(|measured| Some(measured.fingerprint) != planned_as) {
        UNDER_WAY.set(None);
    }
    go_on();
}

/// The look-up is over: the fingerprint and what it has taken, if it was measured.
#[inline]
pub fn take() -> Option<(Fingerprint, Duration)> {
    let measured = UNDER_WAY.take()?.stopped();
    Some((measured.fingerprint, measured.spent))
}
