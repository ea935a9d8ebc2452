//! What happens before and after each run of a query on the list, and at its end. Called by the executor's hooks, in the query's own
//! backend.

use arrow_cache_core::{Ending, Reason};
use pgrx::pg_sys;

use super::miss_run::{MissRun, Stage};
use super::outcome;
use super::replay::{self, Replay};
use super::running::{self, Running};
use super::unread;
use crate::lookup::{observation, portal};
use crate::pg::error_passing::edge;
use crate::pg::query_desc::QueryDesc;
use crate::pg::row_type::RowType;
use crate::serve::{tap_has_ended, tapped};
use crate::{settings, shmem};

/// What one ExecutorRun does. Plain data, so that an error may jump over it.
#[derive(Clone, Copy)]
pub struct Pass<'q> {
    /// The query that is run.
    statement: QueryDesc<'q>,
    /// The query whose rows concern the cache: that one, or its part, if its rows go through a tap.
    query: QueryDesc<'q>,
    /// The plan runs, for up to `count` rows (0: all).
    pub runs_plan: bool,
    /// See `runs_plan`.
    pub count: u64,
    /// Rows are then delivered from the stored entry.
    pub replays: bool,
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

    /// Has the run, which has returned, met the end of the result?
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
    let mut pass =
        Pass { statement, query, runs_plan: true, count, replays: false, observes: false, forward, receiver };
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
                // SAFETY: the tee was made for this query and stays in its box; `restore` puts the receiver back after the run.
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
    let replays = settings::debug_serve_fills() && !run.has_run && !run.scrolls;
    match &mut run.stage {
        // If only a part of the rows is asked for, or they may be asked for again, each is delivered as it comes: a cursor's position must
        // be that of its plan.
        Stage::Filling(tee) if replays && pass.count == 0 => {
            pass.receiver = query.receiver();
            pass.replays = true;
            run.tuples = replay::keep_rows(query);
            // SAFETY: as below.
            unsafe { tee.install(query) };
        }
        Stage::Filling(tee) => {
            // SAFETY: the tee was made for this query and stays in its box; `restore` puts the receiver back after the run.
            pass.receiver = unsafe { tee.install(query) };
        }
        Stage::Replaying(_) => {
            pass.runs_plan = false;
            pass.replays = true;
        }
        Stage::Timing | Stage::Done => {}
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
        unread::leave_out(&mut run.miss, pass.query);
    }
    let entry = if is_complete { run.finish() } else { None };
    if !is_complete {
        // The client may take its time with the rest.
        run.miss.lead.end(Ending::Hopeless);
    }
    let is_stored = entry.is_some();
    if pass.replays {
        run.stage = Stage::Replaying(Replay::new(pass.query, &run.miss.columns, run.tuples, entry));
    } else if let (Some(pin), Some(store)) = (entry, shmem::store()) {
        store.unpin(pin);
    }
    if is_stored {
        outcome::note_stored(&run.miss);
    }
}

/// The query has ended.
#[inline(never)]
pub fn end(query: QueryDesc<'_>) {
    if let Some(Running::Miss(mut run)) = running::take(tapped(query).unwrap_or(query)) {
        run.end();
        replay::free_rows(run.tuples);
    }
}

/// The next row of a query that replays; null at the end.
fn next_row(query: QueryDesc<'_>) -> *mut pg_sys::TupleTableSlot {
    let Some(running) = running::find(query) else { return std::ptr::null_mut() };
    match &mut *running.borrow_mut() {
        Running::Miss(MissRun { stage: Stage::Replaying(replay), .. }) => replay.next(),
        _ => std::ptr::null_mut(),
    }
}

/// Sends up to `count` rows (0: all) of a query that replays to its receiver, as ExecutorRun would.
///
/// # Safety
/// What the receiver raises jumps over this frame: no frame between here and PostgreSQL may have pending destructors.
pub unsafe fn replay(query: QueryDesc<'_>, count: u64) {
    // SAFETY: the query is under way, so it has a receiver, which is called as the executor would.
    unsafe {
        let receiver = query.receiver();
        if let Some(startup) = (*receiver).rStartup {
            direct!(startup(
                receiver,
                query.operation() as i32,
                query.row_type().map_or(std::ptr::null_mut(), RowType::as_ptr)
            ));
        }
        let mut sent = 0;
        while count == 0 || sent < count {
            let slot = edge(|| next_row(query));
            if slot.is_null() {
                break;
            }
            if let Some(receive) = (*receiver).receiveSlot
                && !direct!(receive(slot, receiver))
            {
                break;
            }
            sent += 1;
        }
        if let Some(estate) = query.estate() {
            (*estate.as_ptr()).es_processed = sent;
        }
        if let Some(shutdown) = (*receiver).rShutdown {
            direct!(shutdown(receiver));
        }
    }
}
