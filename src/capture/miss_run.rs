//! A miss that is executed: what becomes of its rows, and how long it has taken. Belongs to one query of this backend.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use arrow_cache_core::Reason;

use super::fill::ResultFill;
use super::outcome;
use crate::lookup::Miss;
use crate::pg::compat;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tee::Tee;
use crate::pg::tree::Tree;
use crate::query::row_bound;
use crate::shmem;

/// What becomes of the rows.
pub enum Stage {
    /// They are stored.
    Filling(Box<Tee<ResultFill>>),
    /// They only pass; it is asked whether the run is too quick.
    Timing,
    /// Nothing is done with them.
    Done,
}

/// A miss that is being executed.
pub struct MissRun {
    /// What is stored, and as what.
    pub miss: Box<Miss>,
    /// What becomes of the rows.
    pub stage: Stage,
    /// Its rows may be read in any order.
    pub scrolls: bool,
    /// Its time says how long queries of its form take, and was not noted yet.
    is_timed: bool,
    /// Time spent in running the plan so far, without the present run.
    elapsed: Duration,
    /// When the present run began.
    run_started: Instant,
    /// Rows that its runs have given so far.
    rows: u64,
    /// The most rows that there can be, once that was asked: `None` if the plan proves nothing.
    most: OnceCell<Option<u64>>,
}

impl MissRun {
    /// A miss whose query has just been started.
    pub fn new(miss: Box<Miss>, stage: Stage, scrolls: bool) -> Self {
        Self {
            miss,
            stage,
            scrolls,
            is_timed: true,
            elapsed: Duration::ZERO,
            run_started: Instant::now(),
            rows: 0,
            most: OnceCell::new(),
        }
    }

    /// A run begins.
    pub fn start_clock(&mut self) {
        self.run_started = Instant::now();
    }

    /// The run has ended, and has given so many rows.
    pub fn note_run(&mut self, rows: u64) {
        self.elapsed += self.run_started.elapsed();
        self.rows += rows;
    }

    /// Returns true if the plan proves that there is no row after those that its runs have given.
    pub fn has_all_rows(&self, query: QueryDesc<'_>) -> bool {
        // SAFETY: the parameters of a query are null or valid as long as it.
        let params = unsafe { Tree::enter(query.params()) };
        self.is_timed
            && self.most.get_or_init(|| row_bound::of(query.plan(), params)).is_some_and(|most| self.rows >= most)
    }

    /// The result has been read to its end: stores it if it is worth storing and nothing has changed since the start.
    /// Returns true if it was stored.
    pub fn finish(&mut self, query: QueryDesc<'_>) -> bool {
        if std::mem::take(&mut self.is_timed) {
            outcome::note_form_time(&self.miss, self.elapsed);
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Done);
        let too_quick = match stage {
            Stage::Filling(_) | Stage::Timing => outcome::remember_speed(&self.miss, self.elapsed),
            Stage::Done => return false,
        };
        let Stage::Filling(mut tee) = stage else { return false };
        let read_back = tee.sink.read_back.take();
        let Some(pin) = outcome::publish(&self.miss, tee.sink, too_quick, self.elapsed) else { return false };
        match (read_back, shmem::store()) {
            (Some(read_back), _) => read_back.compare(query, pin, compat::query_id(&query.plan())),
            (None, Some(store)) => store.unpin(pin),
            (None, None) => {}
        }
        true
    }

    /// The query ends: what was not read to its end by now never will be.
    pub fn end(&mut self) {
        if self.is_timed && !matches!(self.stage, Stage::Done) {
            outcome::remember_part(&self.miss, self.elapsed);
        }
        self.give_up(Reason::IncompleteRead);
    }

    /// An error has ended the query, in a run or after one: so quick a run needs no lookup, whether it fails or not.
    /// Called while the server recovers from the error.
    pub fn fail(&self) {
        if self.is_timed && !matches!(self.stage, Stage::Done) {
            outcome::remember_part(&self.miss, self.elapsed + self.run_started.elapsed());
        }
    }

    /// Returns true if the rows of a run follow those that earlier runs have given. `before` are the rows before them,
    /// if their portal tells.
    pub fn goes_on_with(&self, before: Option<u64>) -> bool {
        before.map_or(!self.scrolls, |before| before == self.rows)
    }

    /// The rows are not read in their order from the first to the last: they are not stored, and their time says
    /// nothing.
    pub fn leave_order(&mut self) {
        self.is_timed = false;
        self.give_up(Reason::ScrollableCursor);
        if matches!(self.stage, Stage::Timing) {
            self.stage = Stage::Done;
        }
    }

    /// Stops storing and frees what was stored.
    pub fn give_up(&mut self, reason: Reason) {
        if matches!(self.stage, Stage::Filling(_))
            && let Stage::Filling(tee) = std::mem::replace(&mut self.stage, Stage::Done)
        {
            tee.sink.abandon();
            outcome::note_refusal(&self.miss, reason);
        }
    }
}
