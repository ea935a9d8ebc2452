//! The start of a query that concerns the cache. What `lookup` has decided is kept while the server starts the query,
//! and begins when the query has started. State of this backend.

use arrow_cache_core::{OutOfMemory, Reason};

use super::fill::ResultFill;
use super::miss_run::{MissRun, Stage};
use super::running::{self, Running};
use super::{outcome, probed_keys};
use crate::arrow::column::{self, Column, Records};
use crate::error::is_about_memory;
use crate::lookup::{self, Miss, Task};
use crate::pg::attention::{Attended, Matter};
use crate::pg::backend_local::Local;
use crate::pg::error_passing::unless;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tee::Tee;
use crate::serve::tapped;
use crate::verify::{Comparison, Sample};

/// What there is to do for the query that is being started, with the address of its descriptor.
static PREPARED: Local<Attended<Option<(usize, Task)>>> = Local::new(Attended::new(Matter::Prepared, None));

/// Keeps what there is to do for a query while the server starts it. What was kept for a query whose start failed is
/// forgotten.
#[inline]
pub fn prepare(query: QueryDesc<'_>, task: Option<Task>) {
    if task.is_some() || is_prepared() {
        replace(query, task);
    }
}

#[inline(never)]
fn replace(query: QueryDesc<'_>, task: Option<Task>) {
    PREPARED.with_borrow_mut(|prepared| *prepared = task.map(|task| (query.address(), task)));
}

/// Forgets what was kept, when the transaction has failed: nothing is to begin any more.
pub fn forget() {
    PREPARED.take();
}

/// Returns true if there is something to begin with, once its query has started.
pub fn is_prepared() -> bool {
    !PREPARED.holds_nothing()
}

/// Begins to store or to compare the rows of a query that has just been started, if it was prepared for that. Does
/// nothing if the rows have other columns than the answer: another library may have changed the plan.
#[inline(never)]
pub fn begin(query: QueryDesc<'_>) {
    let prepared = PREPARED.with_borrow_mut(|prepared| prepared.take_if(|(address, _)| *address == query.address()));
    if let Some((_, task)) = prepared {
        begin_task(query, task);
    }
}

/// Begins to store or to compare the rows of a query that has just been started, or those of its part, if they go
/// through a tap.
pub fn begin_task(query: QueryDesc<'_>, task: Task) {
    // SAFETY: the state of a query under way.
    let scrolls = query.estate().is_some_and(|state| lookup::scrolls(unsafe { state.as_ref() }.es_top_eflags));
    let query = tapped(query).unwrap_or(query);
    let Some(Ok(columns)) = query.row_type().map(|rows| column::columns_of(rows, Records::Stored)) else { return };
    match task {
        Task::Store(miss) if *miss.columns == *columns => store(query, miss, scrolls),
        Task::Verify(sample) => compare(query, sample, &columns),
        Task::Store(_) => {}
    }
}

fn store(query: QueryDesc<'_>, miss: Box<Miss>, scrolls: bool) {
    // The rows of a part are read in their order, whatever is done with those of its statement.
    let is_statement = miss.statement.is_some();
    let stage = match miss.refused {
        None => match tee(query, ResultFill::new(&miss)) {
            Ok(tee) => Stage::Filling(tee),
            Err(reason) => return outcome::note_refusal(&miss, reason),
        },
        Some(Reason::TooQuick) => Stage::Timing,
        Some(_) => Stage::Done,
    };
    if matches!(stage, Stage::Filling(_)) {
        probed_keys::begin(query, &miss.guarantees.probed);
    }
    if let Err(Running::Miss(run)) =
        running::add(query, Running::Miss(MissRun::new(miss, stage, scrolls && is_statement)))
    {
        outcome::note_refusal(&run.miss, Reason::OutOfMemory);
    }
}

/// What puts rows of the query into a fill.
fn tee(query: QueryDesc<'_>, fill: Result<ResultFill, OutOfMemory>) -> Result<Box<Tee<ResultFill>>, Reason> {
    let fill = fill?;
    // SAFETY: the query has been started; `running` drops the tee when the query ends.
    let tee = unless(is_about_memory, || unsafe { Tee::new(query, fill) });
    tee.map(Box::new).ok_or(Reason::OutOfMemory)
}

fn compare(query: QueryDesc<'_>, sample: Box<Sample>, columns: &[Column]) {
    if let Some(comparison) = Comparison::begin(sample, columns) {
        // SAFETY: the query has been started; `running` drops the tee when the query ends.
        let tee = unsafe { Tee::new(query, comparison) };
        // Without memory for that, the query runs unverified.
        let _ = running::add(query, Running::Comparison(Some(Box::new(tee))));
    }
}
