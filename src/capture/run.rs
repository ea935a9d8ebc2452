//! What happens before and after each run of a query on the list, and at its end. Called by the executor's hooks, in
//! the query's own backend.

use arrow_cache_core::{Ending, Reason};
use pgrx::pg_sys;

use super::miss_run::{MissRun, Stage};
use super::running::{self, Running};
use super::{outcome, probed_keys, unread};
use crate::lookup::{observation, portal};
use crate::pg::query_desc::QueryDesc;
use crate::serve::{tap_has_ended, tapped};

/// What one ExecutorRun does. Plain data, so that an error may jump over it.
#[derive(Clone, Copy)]
pub struct Pass<'q> {
    /// The query that is run.
    statement: QueryDesc<'q>,
    /// The query whose rows concern the cache: that one, or its part, if its rows go through a tap.
    query: QueryDesc<'q>,
    /// Up to so many rows (0: all).
    count: u64,
    /// The queries below it are looked at.
    observes: bool,
    /// It runs forward, so that it may reach the end of the result.
    forward: bool,
    /// The receiver to put back after the run; null when it was not replaced.
    receiver: *mut pg_sys::DestReceiver,
}

impl Pass<'_> {
    /// Puts the client's receiver back, after an error too.
    pub fn restore(self) {
        if self.observes {
            observation::pause();
        }
        if !self.receiver.is_null() {
            // SAFETY: the query's own receiver, which `before_run` found there.
            unsafe { self.query.set_receiver(self.receiver) };
        }
    }

    /// Returns true if the run, which has returned, has met the end of the result.
    fn is_at_end(self) -> bool {
        // Whoever reads the rows that are computed from those of a part may leave before the last one.
        if tapped(self.statement).is_some() {
            return tap_has_ended(self.statement);
        }
        self.count == 0 || self.query.processed() < self.count
    }
}

/// Prepares a run of a query for up to `count` more rows (0: all).
#[inline(never)]
pub fn before_run(statement: QueryDesc<'_>, direction: pg_sys::ScanDirection::Type, count: u64) -> Pass<'_> {
    let query = tapped(statement).unwrap_or(statement);
    let receiver = std::ptr::null_mut();
    let forward = direction == pg_sys::ScanDirection::ForwardScanDirection;
    let mut pass = Pass { statement, query, count, observes: false, forward, receiver };
    let Some(running) = running::find(query) else { return pass };
    match &mut *running.borrow_mut() {
        Running::Miss(run) => {
            let is_moved = direction == pg_sys::ScanDirection::BackwardScanDirection
                || (forward && !run.goes_on_with(portal::rows_before(statement)));
            if is_moved {
                run.leave_order();
            }
            if forward {
                prepare_miss(run, &mut pass);
            }
        }
        Running::Comparison(comparison) => {
            if let Some(tee) = comparison.as_mut().filter(|tee| forward && tee.sink.may_go_on()) {
                // SAFETY: the tee was made for this query and stays in its box; `restore` puts the receiver back after
                // the run.
                pass.receiver = unsafe { tee.install(query) };
            } else {
                *comparison = None;
            }
        }
    }
    pass
}

/// Prepares a run of a miss, forward.
fn prepare_miss(run: &mut MissRun, pass: &mut Pass<'_>) {
    if matches!(run.stage, Stage::Filling(_))
        && let Err(reason) = outcome::check_start(&run.miss)
    {
        run.give_up(reason);
    }
    run.start_clock();
    let query = pass.query;
    if run.miss.guarantees.observes && matches!(run.stage, Stage::Filling(_)) {
        pass.observes = true;
        observation::begin(query);
    }
    if let Stage::Filling(tee) = &mut run.stage {
        // SAFETY: the tee was made for this query and stays in its box; `restore` puts the receiver back after the run.
        pass.receiver = unsafe { tee.install(query) };
    }
}

/// The run has returned without an error, and the receiver has been put back.
#[inline(never)]
pub fn after_run(pass: Pass<'_>) {
    let Some(running) = running::find(pass.query).filter(|_| pass.forward) else { return };
    match &mut *running.borrow_mut() {
        Running::Miss(run) => note_miss_run(run, pass),
        Running::Comparison(comparison) => {
            if comparison.as_ref().is_some_and(|tee| tee.failure.is_some()) {
                *comparison = None;
            } else if pass.is_at_end()
                && let Some(tee) = comparison.take()
            {
                tee.sink.finish();
            }
        }
    }
}

fn note_miss_run(run: &mut MissRun, pass: Pass<'_>) {
    run.note_run(pass.query.processed());
    if pass.observes {
        match observation::end() {
            Ok(seen) => run.miss.guarantees.dependencies.extend(seen),
            Err(reason) => run.give_up(reason),
        }
    }
    if let Stage::Filling(tee) = &run.stage
        && let Some(reason) = tee.failure.or(tee.sink.is_let_go().then_some(Reason::QuickRows))
    {
        run.give_up(reason);
    }
    let is_complete = pass.is_at_end() || run.has_all_rows(pass.query);
    if is_complete && matches!(run.stage, Stage::Filling(_)) {
        match probed_keys::rest_on_them(&mut run.miss, pass.query) {
            Ok(()) => unread::leave_out(&mut run.miss, pass.query),
            Err(reason) => run.give_up(reason),
        }
    }
    if !is_complete {
        // The client may take its time with the rest.
        run.miss.lead.end(Ending::Hopeless);
    } else if run.finish(pass.query) {
        outcome::note_stored(&run.miss);
    }
}

/// The query has ended.
#[inline(never)]
pub fn end(query: QueryDesc<'_>) {
    if let Some(Running::Miss(mut run)) = running::take(tapped(query).unwrap_or(query)) {
        run.end();
    }
}
