//! `log_decisions`: a line in the server's log for each top-level statement, with what became of it and why. Its words
//! are those of the view `stats`. A hit or a bypass is logged when it is decided, a miss when it is known whether its
//! answer was stored. Keeps nothing.

use std::ffi::CString;

use arrow_cache_core::Share;
use pgrx::pg_sys;

use crate::pg::{compat, log_line};
use crate::session::Status;
use crate::settings::{self, LogDecisions};

/// Logs what became of the statement with this plan.
pub fn note(status: Status, plan: &pg_sys::PlannedStmt) {
    if wanted(status) {
        write(status, compat::query_id(plan));
    }
}

/// Does the same for a statement whose plan may be gone: its query id was kept.
pub fn note_late(status: Status, query_id: i64) {
    if wanted(status) {
        write(status, query_id);
    }
}

/// Returns true if there may be a line for some status.
#[inline]
pub fn is_wanted() -> bool {
    settings::log_decisions() != LogDecisions::Off
}

/// Returns true if there is a line for this status. Parallel workers run parts of a statement that its leader logs.
fn wanted(status: Status) -> bool {
    let by_setting = match settings::log_decisions() {
        LogDecisions::Off => false,
        LogDecisions::Miss => match status {
            Status::Hit | Status::StaleHit(_) => false,
            Status::Miss(_) | Status::Stale(_) => true,
            Status::Bypass(reason) => reason.share() == Share::Bypass,
        },
        LogDecisions::All => true,
    };
    // SAFETY: a plain global of the process.
    by_setting && unsafe { pg_sys::ParallelWorkerNumber } < 0
}

/// As what `stats` counts it.
fn word(status: Status) -> &'static str {
    match status {
        Status::Bypass(reason) => match reason.share() {
            Share::Bypass => status.name(),
            Share::Other => "OTHER",
            Share::Nested => "NESTED",
        },
        _ => status.name(),
    }
}

#[cold]
#[inline(never)]
fn write(status: Status, query_id: i64) {
    let mut line = format!("arrow_cache: {}", word(status));
    if let Some(reason) = status.reason() {
        line.push_str(&format!(" ({})", reason.name()));
    }
    if let Status::StaleHit(age) = status {
        line.push_str(&format!(" ({}.{:03} ms old)", age / 1000, age % 1000));
    }
    if query_id != 0 {
        line.push_str(&format!(", query id {query_id}"));
    }
    if let Ok(line) = CString::new(line) {
        log_line::write(&line);
    }
}
