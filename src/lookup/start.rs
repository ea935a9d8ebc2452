//! The decision when a plan starts: answered from the cache, executed and stored, or bypassed. Called by the
//! ExecutorStart hook, before the executor sees the plan.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::find::{Lateness, find, find_hit};
use super::fingerprint::Fingerprint;
use super::outcome::{Found, Miss, note_bypass};
use super::question::Question;
use super::{clock_free, portal, price, quick_statements, single_flight, timing};
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::Tree;
use crate::pg::{allocator, backend, compat};
use crate::query::plan_marker;
use crate::query::scan_of_parts::is_combined;
use crate::query::updatable_cursor::is_updatable_scan;
use crate::report::{decision_log, tally};
use crate::serve::{self, Hit};
use crate::session::{self, Status};
use crate::shmem::{self, SharedStore};
use crate::verify;

/// What there is to do while a statement is executed.
pub enum Task {
    /// Store its answer.
    Store(Box<Miss>),
    /// Compare its answer with the stored one.
    Verify(Box<verify::Sample>),
}

/// The flags of a query whose rows may be read in any order.
const SCROLL: u32 = pg_sys::EXEC_FLAG_REWIND | pg_sys::EXEC_FLAG_BACKWARD | pg_sys::EXEC_FLAG_MARK;

/// Returns true if the rows of a query with these flags may be read in any order.
pub fn scrolls(flags: i32) -> bool {
    flags as u32 & SCROLL != 0
}

/// The cache is off for this session: nothing is asked.
#[cold]
#[inline(never)]
pub fn skip(desc: QueryDesc<'_>) {
    if session::at_top_level() {
        session::begin_statement(Reason::Disabled);
        decision_log::note(Status::Bypass(Reason::Disabled), &desc.plan());
    }
}

/// Decides on a plan that is about to start, and on a hit puts the serving plan in its place. `planned` is the plan
/// that its portal knows. Returns what to do with the rows when the plan itself is executed.
pub fn at_start(desc: QueryDesc<'_>, planned: *mut pg_sys::PlannedStmt, flags: i32) -> Option<Task> {
    let store = shmem::store()?;
    if session::explaining() {
        show_in_explain(&store, desc);
        return None;
    }
    if !session::at_top_level() || !portal::runs(planned) {
        if !session::take_starting_export() {
            tally::count_nested(&store);
        }
        return None;
    }
    let planned_as = quick_statements::take_planned();
    session::begin_undecided();
    if desc.operation() != pg_sys::CmdType::CMD_SELECT {
        session::forget_timed();
        note_bypass(&store, Reason::NotSelect, desc.plan());
        return None;
    }
    if let Some(part) = clock_free::part_of(desc) {
        return look_up_part(&store, (desc, part), planned, flags, planned_as);
    }
    if let Some(reason) = plan_marker::refusal_of(desc.plan()).filter(|reason| !may_pass(*reason)) {
        match reason {
            Reason::TooQuick => {}
            Reason::MovingClock => session::keep_timed_for_parts(),
            _ => session::forget_timed(),
        }
        note_bypass(&store, reason, desc.plan());
        return None;
    }
    look_up(&store, desc, planned, flags, (planned_as, Asked::Whole))
}

/// Decides on a plan about which nothing is to be asked: that of a statement of the client that is no SELECT, or whose
/// plan says that it is bypassed, as most statements are that get nothing from the cache; or one that is kept and too
/// quick to be looked up. False if this is not such a plan, or it is not sure: then nothing has been done, and
/// `at_start` decides. What it does then is what is done here.
///
/// To be called while the hooks have nothing else to attend to, and the cache is on.
#[inline(always)]
pub fn pass_at_once(desc: QueryDesc<'_>) -> bool {
    let plan = desc.plan();
    let is_select = desc.operation() == pg_sys::CmdType::CMD_SELECT;
    let refusal = if is_select { plan_marker::refusal_of(plan) } else { Some(Reason::NotSelect) };
    let quick = match refusal {
        // What is decided about these may depend on more.
        Some(reason) if reason == Reason::MovingClock || may_pass(reason) => return false,
        Some(_) => None,
        None => match plan_marker::form_of(plan).map(Fingerprint::of_form) {
            Some(form) if quick_statements::will_skip_lookup(form) => Some(form),
            _ => return false,
        },
    };
    let reason = refusal.unwrap_or(Reason::TooQuick);
    let Some(counters) = shmem::own_counters() else { return false };
    if session::is_explaining()
        || decision_log::is_wanted()
        || !tally::is_counted_once(reason, compat::query_id(&plan))
        || !session::at_top_level()
        // A parallel worker has no portal.
        || !portal::runs(plan.as_ptr())
    {
        return false;
    }
    if let Some(form) = quick {
        if !is_usual(desc) {
            return false;
        }
        quick_statements::count_skipped(form);
        session::begin_bypass(reason);
        timing::time_skipped(form);
    } else {
        session::begin_bypass(reason);
        if reason != Reason::TooQuick {
            session::forget_timed();
        }
    }
    tally::count_once(counters, reason);
    true
}

/// Returns true if nothing else can be said of a kept plan that starts now than that it is too quick.
#[inline(never)]
fn is_usual(desc: QueryDesc<'_>) -> bool {
    !session::is_wrapped()
        && !session::has_fingerprint()
        && !allocator::is_short()
        && portal::check_statement(desc, desc.plan().as_ptr()).is_ok()
        && Question::begins_with_select(desc)
}

/// What the answer of a question is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// That of the statement.
    Whole,
    /// That of its clock-free part.
    Part,
}

/// Decides on the statement of a client whose plan applies the clock to its clock-free part. The part stands for it.
#[inline(never)]
fn look_up_part(
    store: &SharedStore,
    (desc, part): (QueryDesc<'_>, QueryDesc<'_>),
    planned: *mut pg_sys::PlannedStmt,
    flags: i32,
    planned_as: Option<Fingerprint>,
) -> Option<Task> {
    // Neither a stored answer nor a tap lets the server find the current row of a cursor.
    if let Err(reason) = check_updatable(part.plan()) {
        session::forget_timed();
        note_bypass(store, reason, desc.plan());
        return None;
    }
    let own_plan = part.plan().as_ptr();
    let task = look_up(store, part, planned, flags, (planned_as, Asked::Part));
    // SAFETY: the part of this query, which is not started.
    unsafe {
        if task.is_some() {
            clock_free::tap_below(desc, part);
        } else if !std::ptr::eq(part.plan().as_ptr(), own_plan) {
            clock_free::serve_below(desc, part);
        }
    }
    task
}

/// Decides on a client's statement, or on its part, if its plan was not refused, or only for a reason that will pass.
/// `planned_as` is the fingerprint that it was planned with, if it was planned for this execution.
#[inline(never)]
fn look_up(
    store: &SharedStore,
    desc: QueryDesc<'_>,
    planned: *mut pg_sys::PlannedStmt,
    flags: i32,
    (planned_as, asked): (Option<Fingerprint>, Asked),
) -> Option<Task> {
    price::start(planned_as);
    // Beside the time of now nobody expects rows of another time.
    let lateness = if asked == Asked::Whole { Lateness::Accepted(None) } else { Lateness::Refused };
    let found = portal::check_statement(desc, planned)
        .and_then(|()| check_updatable(desc.plan()))
        .and_then(|()| find(store, &Question { started_by_client: true, planned_as, ..Question::of(desc) }, lateness));
    quick_statements::note_looked_up();
    let found = found.map(|found| share_work(store, desc, flags, (found, lateness)));
    let found = match found {
        Ok(Found::Hit(hit, verify)) => {
            session::forget_timed();
            return serve_hit(store, desc, flags, (hit, verify), asked);
        }
        Ok(Found::Miss(miss)) => Ok(miss),
        Err(reason) => Err(reason),
    };
    // A statement that is bypassed because it is too quick was noted to be timed, when it was planned or just now.
    if !matches!(found, Err(Reason::TooQuick)) {
        session::forget_timed();
    }
    match found {
        Ok(miss) => {
            miss.note(store, desc.plan());
            Some(Task::Store(miss))
        }
        Err(reason) => {
            if let (Reason::UpdatableCursor, Some(fingerprint)) = (reason, planned_as) {
                quick_statements::note_part(fingerprint, std::time::Duration::ZERO);
            }
            if may_pass(reason) {
                let of_form = || plan_marker::form_of(desc.plan()).map(Fingerprint::of_form);
                timing::time_run(planned_as.or_else(of_form));
            }
            if reason == Reason::MovingClock
                && let Some(form) = plan_marker::form_of(desc.plan())
            {
                // Its parts may not move.
                timing::time_statement(form, is_combined(desc.plan()));
            }
            note_bypass(store, reason, desc.plan());
            None
        }
    }
}

/// Returns true if the statement itself has no part in this reason to bypass. Then whether it is quick is worth
/// knowing: it will be looked up again and again. Its plan may have been refused for that reason, too.
fn may_pass(reason: Reason) -> bool {
    matches!(reason, Reason::OwnWrites | Reason::OwnDdl | Reason::WriterInProgress | Reason::Snapshot)
}

/// Has a miss computed by one of those who ask at the same time. A cursor, which may be read later, neither waits nor
/// is waited for.
fn share_work(store: &SharedStore, desc: QueryDesc<'_>, flags: i32, (found, lateness): (Found, Lateness)) -> Found {
    if matches!(found, Found::Hit(..)) || scrolls(flags) || portal::may_be_read_later() {
        return found;
    }
    let is_late = matches!(&found, Found::Miss(miss) if miss.guarantees.stale_bound.is_some());
    // What the statement accepts does not change while it waits.
    let lateness = if is_late { Lateness::Accepted(Some(backend::now())) } else { lateness };
    single_flight::share(store, found, || find(store, &Question::of(desc), lateness))
}

/// Serves a hit, or has the plan executed as well and compared with it on the conditions of `verify`.
#[inline]
fn serve_hit(
    store: &SharedStore,
    desc: QueryDesc<'_>,
    flags: i32,
    (hit, verify): (Hit, Option<verify::Conditions>),
    asked: Asked,
) -> Option<Task> {
    // Comparing answers means executing the statement, whose rows are others than those of its part.
    let is_compared = asked == Asked::Whole && !scrolls(flags);
    let held = match verify.and_then(|drawn| drawn.counted(store)).filter(|_| is_compared) {
        Some(conditions) => verify::sample(desc, hit, conditions).map(|sample| Some(Task::Verify(sample))),
        None => serve::swap_plan(desc, hit).map(|_| None),
    };
    held.unwrap_or_else(|reason| {
        note_bypass(store, reason, desc.plan());
        None
    })
}

/// Shows the serving plan in EXPLAIN if the query would be a hit; leaves anything else alone.
#[cold]
#[inline(never)]
fn show_in_explain(store: &SharedStore, desc: QueryDesc<'_>) {
    if desc.operation() != pg_sys::CmdType::CMD_SELECT {
        return;
    }
    let part = clock_free::part_of(desc);
    let asked = part.unwrap_or(desc);
    let lateness = if part.is_none() { Lateness::Accepted(None) } else { Lateness::Refused };
    if check_updatable(asked.plan()).is_ok()
        && let Some(hit) = find_hit(store, &Question::of(asked), lateness)
        && serve::swap_plan(asked, hit).is_ok()
        && let Some(part) = part
    {
        // SAFETY: the part of this query, which is not started.
        unsafe { clock_free::serve_below(desc, part) };
    }
}

/// A cursor whose current row can be updated must not be served, so its answer is not stored either.
///
/// # Errors
/// The reason to bypass.
fn check_updatable(plan: Tree<'_, pg_sys::PlannedStmt>) -> Result<(), Reason> {
    if portal::may_be_updated() && is_updatable_scan(plan) { Err(Reason::UpdatableCursor) } else { Ok(()) }
}
