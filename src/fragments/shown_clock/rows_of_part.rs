//! The rows of a clock-free part: from the store, or from running the plan of the part. They belong to one scan (`scan`) of this backend, and are
//! dropped with the memory of its statement.

use std::ffi::c_void;

use pgrx::pg_sys;

use crate::error::or_raise;
use crate::fragments::part_run::{PartRun, Source, with_description};
use crate::fragments::refused;
use crate::fragments::tuples::{copy_values, next_tuple};
use crate::fragments::way_back;
use crate::lookup::clock_free::{Answer, Reading};
use crate::lookup::{self, Task};
use crate::pg::compat;
use crate::pg::error_passing::kept;
use crate::pg::tree::Tree;
use crate::query::row_bound;
use crate::serve::{Hold, slot_values};
use crate::session;

/// Where the rows come from.
enum Rows {
    /// From the store: pinned.
    Stored(*mut Hold),
    /// From running the plan of the part, which is still to be started.
    Waiting,
    /// From running it.
    Running(PartRun),
    /// They were read.
    Read,
}

/// The rows of the part; dropped with the memory of the statement.
pub struct RowsOfPart {
    callback: pg_sys::MemoryContextCallback,
    state: *mut pg_sys::EState,
    reading: Reading,
    /// The plan of the part.
    plan: *mut pg_sys::PlannedStmt,
    rows: Rows,
    /// What to do while it runs.
    task: Option<Task>,
    /// How many rows it has given while it runs.
    taken: u64,
    /// The most rows that it can give, if its plan proves that: a client that reads with a limit of rows leaves before the end is seen.
    most: Option<u64>,
    /// Carries the rows of a tuplestore.
    tuple: *mut pg_sys::TupleTableSlot,
    /// They come from the store.
    pub is_stored: bool,
}

/// What comes next.
#[derive(Clone, Copy)]
pub enum Step {
    /// The slot has the next row.
    Filled,
    /// There are no more rows.
    End,
    /// This query is to be taken one step on.
    Run(*mut pg_sys::QueryDesc),
}

impl RowsOfPart {
    /// The rows of the part with this plan, in the memory of the statement. They are dropped with it.
    ///
    /// # Safety
    /// The statement is being started with this state, whose memory the plan lies in or outlives; `row_type` is that of the part.
    pub unsafe fn make(
        state: *mut pg_sys::EState,
        plan: *mut pg_sys::PlannedStmt,
        reading: Reading,
        row_type: pg_sys::TupleDesc,
    ) -> *mut Self {
        // SAFETY: the caller's promise. The callback lies in the memory whose end it reports.
        unsafe {
            let context = (*state).es_query_cxt;
            let rows: *mut Self = pg_sys::MemoryContextAlloc(context, size_of::<Self>()).cast();
            rows.write(Self {
                callback: pg_sys::MemoryContextCallback {
                    func: Some(context_gone),
                    arg: rows.cast(),
                    next: std::ptr::null_mut(),
                },
                state,
                reading,
                plan,
                rows: Rows::Waiting,
                task: None,
                taken: 0,
                most: None,
                tuple: pg_sys::MakeSingleTupleTableSlot(row_type, &raw const pg_sys::TTSOpsMinimalTuple),
                is_stored: false,
            });
            pg_sys::MemoryContextRegisterResetCallback(context, &raw mut (*rows).callback);
            rows
        }
    }

    /// Looks the answer of the part up.
    ///
    /// # Safety
    /// The statement is being started, with a registered snapshot.
    pub unsafe fn look_up(&mut self) {
        if self.reading == Reading::AtOnce && !session::at_top_level() {
            return;
        }
        // SAFETY: the caller's promise. The descriptor serves the question alone.
        let answer = unsafe {
            let context = (*self.state).es_query_cxt;
            with_description(self.state, self.plan, |query| lookup::clock_free::at_start(query, context, self.reading))
        };
        match answer {
            Answer::Stored(hold) => {
                self.rows = Rows::Stored(hold);
                self.is_stored = true;
            }
            Answer::Run(task) => self.task = task,
        }
    }

    /// The next row, or the one before if the statement is read backward.
    ///
    /// # Safety
    /// The slot must be a virtual one with the columns of the part.
    pub unsafe fn next_or_previous(&mut self, slot: *mut pg_sys::TupleTableSlot) -> Step {
        // SAFETY: the statement runs; the caller's promise. Holds last until the part was read.
        unsafe {
            if (*self.state).es_direction != pg_sys::ScanDirection::BackwardScanDirection {
                return self.next(slot);
            }
            // Only statements whose part is stored are read backward.
            let Rows::Stored(hold) = &self.rows else { return Step::End };
            let (values, nulls) = slot_values(slot);
            if !(**hold).rows().is_some_and(|rows| or_raise(rows.previous(values, nulls))) {
                return Step::End;
            }
            pg_sys::ExecStoreVirtualTuple(slot);
            Step::Filled
        }
    }

    /// # Safety
    /// The slot must be a virtual one with the columns of the part.
    unsafe fn next(&mut self, slot: *mut pg_sys::TupleTableSlot) -> Step {
        if matches!(self.rows, Rows::Waiting) {
            // SAFETY: the statement runs.
            self.rows = Rows::Running(unsafe { self.start() });
            self.taken = 0;
            self.most = self.most_rows();
        }
        // SAFETY: the caller's promise; holds and tuplestores last until the part was read.
        let filled = unsafe {
            match &self.rows {
                Rows::Stored(hold) => {
                    let (values, nulls) = slot_values(slot);
                    (**hold).rows().is_some_and(|rows| or_raise(rows.next(values, nulls)))
                }
                Rows::Running(run) => match run.source() {
                    Source::Plan(query) => return Step::Run(query),
                    Source::Tuples(rows) => next_tuple(rows, self.tuple, slot),
                },
                Rows::Waiting | Rows::Read => false,
            }
        };
        if filled {
            // SAFETY: all values were written.
            unsafe { pg_sys::ExecStoreVirtualTuple(slot) };
            return Step::Filled;
        }
        self.leave();
        Step::End
    }

    /// Starts the plan of the part; or another one of it, whose rows are not stored, if it is combined of parts that must not be planned.
    ///
    /// # Safety
    /// The statement runs.
    unsafe fn start(&mut self) -> PartRun {
        // SAFETY: the caller's promise. All rows of the statement are those of the part, of which none has been read.
        unsafe {
            let run = PartRun::of_plan(self.state, self.plan, |_query| self.task.take());
            let Some(instead) = refused::take(run.state()).filter(|instead| !instead.is_null()) else {
                return run;
            };
            let caller = pg_sys::MemoryContextSwitchTo((*self.state).es_query_cxt);
            let plan = compat::unchecked_plan(way_back::plan_anew(instead, (*self.state).es_sourceText));
            pg_sys::MemoryContextSwitchTo(caller);
            run.end(false);
            way_back::renew_snapshot(self.state, &raw mut (*self.state).es_snapshot);
            PartRun::of_plan(self.state, plan, |_query| None)
        }
    }

    /// Takes the row that a step has given, null for the end.
    ///
    /// # Safety
    /// The row must be one of the query that `next` has asked for; the slot as for `next`.
    pub unsafe fn take(&mut self, row: *mut pg_sys::TupleTableSlot, slot: *mut pg_sys::TupleTableSlot) {
        if row.is_null() {
            return self.leave();
        }
        // SAFETY: the caller's promise.
        unsafe {
            if let Rows::Running(run) = &mut self.rows {
                run.take(row);
            }
            copy_values(row, slot);
            pg_sys::ExecStoreVirtualTuple(slot);
            self.taken += 1;
            if self.most == Some(self.taken) {
                // The values lie in the memory of the part, which goes.
                if let Some(materialize) = (*(*slot).tts_ops).materialize {
                    kept!(materialize(slot));
                }
                self.leave();
            }
        }
    }

    /// The most rows that the part can give, if its plan, which is started, proves that.
    fn most_rows(&self) -> Option<u64> {
        if self.reading == Reading::AtOnce {
            return None;
        }
        // SAFETY: the plan and the values live as long as the statement.
        unsafe {
            let state = &*self.state;
            row_bound::of(Tree::enter(self.plan)?, Tree::enter(state.es_param_list_info), state.es_snapshot.as_ref())
        }
    }

    /// The last row was read.
    fn leave(&mut self) {
        if matches!(self.rows, Rows::Running(_))
            && let Rows::Running(run) = std::mem::replace(&mut self.rows, Rows::Read)
        {
            // SAFETY: a slot of ours, which may show a row of the part's memory.
            unsafe { pg_sys::ExecClearTuple(self.tuple) };
            run.end(true);
        }
    }

    /// Reads them once more: those that were computed are computed again, and not stored.
    pub fn rewind(&mut self) {
        match std::mem::replace(&mut self.rows, Rows::Waiting) {
            Rows::Stored(hold) => {
                // SAFETY: a hold lasts as long as the statement.
                if let Some(rows) = unsafe { (*hold).rows() } {
                    rows.rewind();
                }
                self.rows = Rows::Stored(hold);
            }
            Rows::Running(run) => run.end(false),
            Rows::Waiting | Rows::Read => {}
        }
    }

    /// The statement ends, or needs no more of them.
    pub fn end(&mut self) {
        match std::mem::replace(&mut self.rows, Rows::Read) {
            // SAFETY: a hold was made for this statement, and is used no more.
            Rows::Stored(hold) => unsafe { (*hold).release() },
            Rows::Running(run) => run.end(false),
            Rows::Waiting | Rows::Read => {}
        }
        self.task = None;
    }
}

/// The memory of the statement goes: its end, or an error. Frees Rust memory and does nothing else.
unsafe extern "C-unwind" fn context_gone(rows: *mut c_void) {
    // SAFETY: registered with the address of the rows, which the context still contains.
    unsafe {
        let rows = rows.cast::<RowsOfPart>();
        (*rows).task = None;
        drop(std::mem::replace(&mut (*rows).rows, Rows::Read));
    }
}
