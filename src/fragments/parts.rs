//! The parts of one statement under way: which are stored, which are computed, and where reading them stands. Belongs to one scan of this
//! backend; a memory context of the statement drops it, after an error too.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::rc::Rc;

use arrow_cache_core::{Counter, Wanted};
use pgrx::pg_sys;

use super::key::PartKeys;
use super::part_plan::PartPlan;
use super::part_run::{PartRun, Source, Surroundings};
use super::recipe::Recipe;
use super::refused;
use super::tuples::{copy_values, next_tuple};
use crate::arrow::column::{self, Records};
use crate::error::or_raise;
use crate::invalidation::own_writes;
use crate::lookup::Lead;
use crate::lookup::parts::{self, PartKey};
use crate::lookup::single_flight::{self, Joined, Patience};
use crate::pg::row_type::RowType;
use crate::pg::tree::Tree;
use crate::query::Versions;
use crate::query::decomposition::Part;
use crate::query::opened_relations::opened_by;
use crate::query::partitions::Leaf;
use crate::serve::{Hold, slot_values};
use crate::shmem::{self, SharedStore};

/// Where the rows of a part come from.
enum Rows {
    /// From the store: pinned.
    Stored(*mut Hold),
    /// From running its query, which is still to be done.
    Waiting,
    /// From running its query, which is under way.
    Running(PartRun),
    /// They came from running its query, and were read.
    Read,
}

/// What comes next.
#[derive(Clone, Copy)]
pub enum Step {
    /// A row was put into the slot.
    Filled,
    /// There is no further row.
    End,
    /// This query is to be taken one step on, and what it gives handed to `Parts::take`.
    Run(*mut pg_sys::QueryDesc),
}

struct PartState {
    leaf: Leaf,
    /// What it is stored as; `None` if it is not looked up.
    key: Option<PartKey>,
    rows: Rows,
    /// How it is computed; `None` if it is stored.
    plan: Option<PartPlan>,
}

impl PartState {
    /// Pins the stored part, if there is one that holds; says whether there is. What cannot be looked up is computed.
    fn look_up(&mut self, store: &SharedStore, surroundings: &Surroundings) -> bool {
        let Some(key) = &self.key else { return false };
        let state = surroundings.state;
        // SAFETY: the statement runs, with a registered snapshot; its memory outlives the holds. A stored part has the columns that were
        // compared with its own.
        let hold = unsafe {
            parts::stored_part(store, key, &surroundings.columns, (*state).es_snapshot.as_ref())
                .and_then(|pin| Hold::in_context((*state).es_query_cxt, pin, surroundings.columns.clone()))
        };
        if let Some(hold) = hold {
            self.rows = Rows::Stored(hold);
        }
        hold.is_some()
    }
}

/// The parts of a statement.
pub struct Parts {
    callback: pg_sys::MemoryContextCallback,
    contents: Option<Box<Contents>>,
}

/// What is dropped with the statement.
struct Contents {
    part: Part,
    surroundings: Surroundings,
    states: Vec<PartState>,
    /// The part that is read now.
    position: usize,
    /// The definitions that the statement was planned under.
    versions: Versions,
    /// The indexes that the plans of parts scan, by their OIDs, held open until the statement ends, so that the server refuses to drop them, even if rows are read later.
    indexes: BTreeMap<u32, pg_sys::Relation>,
    /// Rows were asked for.
    has_run: bool,
    /// Carries the rows of tuplestores.
    tuple: *mut pg_sys::TupleTableSlot,
    /// How long it still waits for others that compute its parts.
    patience: Patience,
}

/// How many parts came from where.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// From the store.
    pub stored: usize,
    /// They were computed, or will be.
    pub computed: usize,
}

impl Parts {
    /// The parts of a statement whose scan is being started: looks for the stored ones, under the statement's snapshot, and plans the others, if the
    /// statement `runs`. In the statement's memory.
    ///
    /// # Safety
    /// `state` must be the state of the statement, `row_type` the type of the rows of the parts.
    pub unsafe fn begin(recipe: Recipe, state: *mut pg_sys::EState, row_type: RowType<'_>, runs: bool) -> *mut Self {
        // SAFETY: the caller's promise. The callback lies in the context whose end it reports.
        unsafe {
            let context = (*state).es_query_cxt;
            let parts: *mut Self = pg_sys::MemoryContextAlloc(context, size_of::<Self>()).cast();
            parts.write(Self {
                callback: pg_sys::MemoryContextCallback {
                    func: Some(context_gone),
                    arg: parts.cast(),
                    next: std::ptr::null_mut(),
                },
                contents: None,
            });
            pg_sys::MemoryContextRegisterResetCallback(context, &raw mut (*parts).callback);
            let tuple = pg_sys::MakeSingleTupleTableSlot(row_type.as_ptr(), &raw const pg_sys::TTSOpsMinimalTuple);
            let waiting = |leaf: &Leaf| PartState { leaf: *leaf, key: None, rows: Rows::Waiting, plan: None };
            let mut contents = Box::new(Contents {
                states: recipe.leaves.iter().map(waiting).collect(),
                surroundings: Surroundings {
                    state,
                    columns: Rc::new([]),
                    dimensions: recipe.dimensions().collect(),
                    environment: None,
                },
                position: 0,
                versions: recipe.versions,
                indexes: BTreeMap::new(),
                has_run: false,
                tuple,
                patience: Patience::default(),
                part: recipe.part,
            });
            if let Ok(columns) = column::columns_of(row_type, Records::Stored) {
                contents.surroundings.columns = columns.into();
                contents.look_up();
            }
            if runs && !contents.plan(|rows| matches!(rows, Rows::Waiting)) {
                refused::note(state, recipe.instead);
                // It is started at the first run.
                if let Some(node) = Tree::enter(recipe.instead) {
                    contents.hold_indexes(node.as_a::<pg_sys::PlannedStmt>());
                }
            }
            (*parts).contents = Some(contents);
            parts
        }
    }

    /// Puts the next row into a virtual slot, or says how to get it.
    ///
    /// # Safety
    /// The slot must be a virtual one with the columns of the parts.
    pub unsafe fn next(&mut self, slot: *mut pg_sys::TupleTableSlot) -> Step {
        // SAFETY: the caller's promise.
        self.contents.as_mut().map_or(Step::End, |contents| unsafe { contents.next(slot) })
    }

    /// Takes the row that a step of a query has given, null for its end, and puts it into a virtual slot. Says whether there was one.
    ///
    /// # Safety
    /// As `next`. The row must be one of the query that `next` has asked for.
    pub unsafe fn take(&mut self, row: *mut pg_sys::TupleTableSlot, slot: *mut pg_sys::TupleTableSlot) -> bool {
        // SAFETY: the caller's promise.
        self.contents.as_mut().is_some_and(|contents| unsafe { contents.take(row, slot) })
    }

    /// Goes back to the first row.
    pub fn rewind(&mut self) {
        if let Some(contents) = &mut self.contents {
            contents.rewind();
        }
    }

    /// How many parts come from where.
    pub fn counts(&self) -> Counts {
        let Some(contents) = &self.contents else { return Counts::default() };
        let stored = contents.states.iter().filter(|part| matches!(part.rows, Rows::Stored(_))).count();
        Counts { stored, computed: contents.states.len() - stored }
    }

    /// Lets the stored parts go, and frees the others.
    pub fn end(&mut self) {
        let Some(contents) = self.contents.take() else { return };
        for index in contents.indexes.values() {
            // SAFETY: opened by `Contents::plan`, and not closed since.
            unsafe { pg_sys::relation_close(*index, pg_sys::NoLock as _) };
        }
        for part in contents.states {
            match part.rows {
                // SAFETY: a hold was made for this statement, and is used no more.
                Rows::Stored(hold) => unsafe { (*hold).release() },
                Rows::Running(run) => run.end(false),
                Rows::Waiting | Rows::Read => {}
            }
        }
    }
}

impl Contents {
    /// Looks for stored parts, and pins those that hold. What cannot be looked up is computed.
    fn look_up(&mut self) {
        let Some(store) = shmem::store() else { return };
        let Some(environment) = parts::environment(&store, self.versions) else { return };
        let Ok(keys) = PartKeys::of(&self.part, environment, store.seed()) else { return };
        self.surroundings.environment = Some(environment);
        for part in &mut self.states {
            part.key = keys.of_leaf(part.leaf).ok();
            part.look_up(&store, &self.surroundings);
        }
    }

    /// Plans the parts whose rows come from there, if they have no plan. False if that must not be: this transaction may have changed definitions, or they are newer than the statement's plan, so
    /// they may say of the tables what does not hold of the rows that its snapshot sees (a unique index, a validated constraint).
    fn plan(&mut self, from: impl Fn(&Rows) -> bool) -> bool {
        let Some(store) = shmem::store() else { return false };
        // Others hear of what this transaction has changed when it commits.
        let is_current = || !own_writes::has_transaction_id() && parts::are_current(&store, self.versions);
        let indexes = &mut self.indexes;
        let mut missing = self.states.iter_mut().filter(|part| part.plan.is_none() && from(&part.rows));
        missing.all(|part| {
            // Planning waits for locks, and hears then of what has changed.
            is_current() && {
                // SAFETY: the statement is started.
                unsafe {
                    let made = PartPlan::make(&self.part, part.leaf, self.surroundings.state);
                    part.plan = Some(made);
                    hold_indexes(indexes, Tree::enter(made.plan));
                }
                is_current()
            }
        })
    }

    /// Holds open what a plan scans that is started later.
    fn hold_indexes(&mut self, plan: Option<Tree<'_, pg_sys::PlannedStmt>>) {
        hold_indexes(&mut self.indexes, plan);
    }

    /// Has the present part, whose rows are not there yet, read from the store after all, or computed.
    fn obtain(&mut self) {
        let lead = self.share();
        if let Some(part) = self.states.get_mut(self.position)
            && matches!(part.rows, Rows::Waiting)
        {
            count(Counter::FragmentsComputed, 1);
            let state = self.surroundings.state;
            // SAFETY: the statement runs. A plan is made here only if nobody has asked for the other way of a statement that was refused.
            let plan = *part.plan.get_or_insert_with(|| unsafe { PartPlan::make(&self.part, part.leaf, state) });
            let run = PartRun::start(plan, part.leaf, part.key.as_ref(), &self.surroundings, lead);
            part.rows = Rows::Running(run);
        }
    }

    /// Shares the parts that are missing with other statements that miss them, too: puts one in the present place that nobody else computes. If there is
    /// none, waits for the part that is there. Returns its claim, if it is to be computed.
    fn share(&mut self) -> Lead {
        let Some(store) = shmem::store().filter(|_| self.surroundings.environment.is_some()) else {
            return Lead::default();
        };
        let is_free = |part: &PartState| {
            !matches!(part.rows, Rows::Waiting)
                || part.key.as_ref().is_none_or(|(key, _)| !single_flight::is_computed(&store, *key, Wanted::Current))
        };
        let mut left = self.position..self.states.len();
        if let Some(place) = left.find(|place| is_free(&self.states[*place])) {
            self.states.swap(self.position, place);
        }
        let Some(part) = self.states.get_mut(self.position) else { return Lead::default() };
        // SAFETY: the statement runs, with a registered snapshot.
        let snapshot = unsafe { (*self.surroundings.state).es_snapshot.as_ref() };
        while let Some(key) = part.key.clone().filter(|_| matches!(part.rows, Rows::Waiting)) {
            if part.look_up(&store, &self.surroundings) {
                single_flight::note_answer();
                count(Counter::FragmentsServed, 1);
                break;
            }
            let relations = [&[part.leaf.relation.to_u32()], self.surroundings.dimensions.as_slice()].concat();
            match parts::join(&store, &key, &relations, snapshot, &mut self.patience) {
                Joined::Computes(lead) => return lead,
                Joined::LooksAgain => {}
            }
        }
        Lead::default()
    }

    /// # Safety
    /// As `Parts::next`.
    unsafe fn next(&mut self, slot: *mut pg_sys::TupleTableSlot) -> Step {
        if !std::mem::replace(&mut self.has_run, true) {
            self.check_settings();
            count(Counter::FragmentRuns, 1);
            let stored = self.states.iter().filter(|part| matches!(part.rows, Rows::Stored(_))).count();
            count(Counter::FragmentsServed, stored as u64);
        }
        while let Some(part) = self.states.get(self.position) {
            if matches!(part.rows, Rows::Waiting) {
                self.obtain();
            }
            let part = &self.states[self.position];
            // SAFETY: the caller's promise; holds and tuplestores last until their part was read.
            let filled = unsafe {
                match &part.rows {
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
            self.leave_part();
        }
        Step::End
    }

    /// Goes on to the next part. The present one has been read.
    fn leave_part(&mut self) {
        if let Some(part) = self.states.get_mut(self.position)
            && matches!(part.rows, Rows::Running(_))
            && let Rows::Running(run) = std::mem::replace(&mut part.rows, Rows::Read)
        {
            // SAFETY: a slot of ours, which may show a row of the part's memory.
            unsafe { pg_sys::ExecClearTuple(self.tuple) };
            run.end(true);
        }
        self.position += 1;
    }

    /// # Safety
    /// As `Parts::take`.
    unsafe fn take(&mut self, row: *mut pg_sys::TupleTableSlot, slot: *mut pg_sys::TupleTableSlot) -> bool {
        if row.is_null() {
            self.leave_part();
            return false;
        }
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(PartState { rows: Rows::Running(run), .. }) = self.states.get_mut(self.position) {
                run.take(row);
            }
            copy_values(row, slot);
            pg_sys::ExecStoreVirtualTuple(slot);
        }
        true
    }

    /// Lets the stored parts go if settings have changed since they were looked up: the first row of a portal may be asked for much later. If the others must
    /// not be planned any more, they stay: the rows of a statement that is read later do not depend on settings.
    fn check_settings(&mut self) {
        if self.surroundings.environment.is_none() || parts::environment_now() == self.surroundings.environment {
            return;
        }
        self.surroundings.environment = None;
        let are_planned = self.plan(|rows| matches!(rows, Rows::Stored(_)));
        for part in self.states.iter_mut().filter(|_| are_planned) {
            if let Rows::Stored(hold) = part.rows {
                // SAFETY: a hold lasts as long as the statement.
                unsafe { (*hold).release() };
                part.rows = Rows::Waiting;
            }
        }
    }

    /// Goes back to the first row. What was computed is computed again: it gives the same rows, and nothing keeps them meanwhile.
    fn rewind(&mut self) {
        self.position = 0;
        for part in &mut self.states {
            if let Rows::Stored(hold) = part.rows {
                // SAFETY: a hold lasts as long as the statement.
                if let Some(rows) = unsafe { (*hold).rows() } {
                    rows.rewind();
                }
            } else if let Rows::Running(run) = std::mem::replace(&mut part.rows, Rows::Waiting) {
                run.end(false);
            }
        }
    }
}

/// Opens the indexes that a plan scans, and adds them to those that are held.
fn hold_indexes(held: &mut BTreeMap<u32, pg_sys::Relation>, plan: Option<Tree<'_, pg_sys::PlannedStmt>>) {
    for index in plan.map_or_else(Vec::new, |plan| opened_by(plan).scanned) {
        // SAFETY: planning has locked the indexes, or `index_locks` has, before a kept plan was replaced.
        held.entry(index.to_u32()).or_insert_with(|| unsafe { pg_sys::relation_open(index, pg_sys::NoLock as _) });
    }
}

fn count(counter: Counter, times: u64) {
    if let Some(store) = shmem::store() {
        store.counters().add(store.stripe(), counter, times);
    }
}

/// The memory of the statement goes: its end, or an error. Frees Rust memory and does nothing else.
unsafe extern "C-unwind" fn context_gone(parts: *mut c_void) {
    // SAFETY: registered with the address of the parts, which the context still contains.
    drop(unsafe { (*parts.cast::<Parts>()).contents.take() });
}
