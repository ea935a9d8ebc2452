//! `arrow_cache.check`: does everything in shared memory agree? Core looks (`cache/check`); this tells it which
//! processes there are, and lets interrupts in between. Nothing is changed, and nothing kept.

use std::time::Duration;

use arrow_cache_core::{Finding, Processes, Report};

use crate::error::{notice_undecided_check, or_raise};
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::Set;
use crate::pg::sql_function::sql_function;
use crate::pg::{backend, processes};
use crate::shmem;

/// The longest rest between two looks, in milliseconds.
const LONGEST_REST: u64 = 50;

/// The processes of this server.
struct Backends;

impl Processes for Backends {
    fn has_seat(&self, number: u32) -> bool {
        processes::is_backend(number)
    }

    fn has_claims(&self, owner: u32) -> bool {
        processes::runs_in_place(owner)
    }

    fn are_others(&self) -> bool {
        // What a standby replays is published by a process that is no backend.
        backend::is_in_recovery() || processes::are_other_sessions()
    }

    fn pause(&self) {
        backend::accept_interrupts();
    }

    fn rest(&self, times: u32) {
        std::thread::sleep(Duration::from_millis(1u64.checked_shl(times).unwrap_or(LONGEST_REST).min(LONGEST_REST)));
        backend::accept_interrupts();
    }
}

/// The columns of a finding.
type Row = (&'static str, &'static str, String);

fn check(_: FunctionCall<'_>) -> Set<Row> {
    let Report { findings, more, is_undecided } = or_raise(shmem::required().check(&Backends));
    if is_undecided {
        notice_undecided_check();
    }
    let row = |finding: Finding| (finding.part, finding.finding, finding.to_string());
    let rest = (more > 0).then(|| ("check", "there are more findings than are listed", more.to_string()));
    Set::new(findings.into_iter().map(row).chain(rest))
}

sql_function!(check, "arrow_cache_check");
