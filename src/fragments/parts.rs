//! The parts of one statement under way: which are stored, which are computed, and where reading them stands. Belongs
//! to one scan of this backend; a memory context of the statement drops it, after an error too.

use std::cell::{Cell, OnceCell};
use std::ffi::{c_char, c_void};

use arrow_cache_core::{Counter, Wanted};
use pgrx::pg_sys;

use super::admission::{self, Worth};
use super::held_indexes::HeldIndexes;
use super::key::PartKeys;
use super::part_run::{PartRun, RunLeaf, Source, Surroundings};
use super::part_state::{PartState, Rows};
use super::recipe::{Recipe, renewal_of};
use super::tuples::{columns_of, copy_values, next_tuple};
use crate::error::{CacheError, or_raise};
use crate::lookup::parts::{self, PartKey};
use crate::lookup::single_flight::{self, Joined, Patience};
use crate::lookup::{Lead, definition_versions, portal};
use crate::pg::backend_local::Local;
use crate::pg::row_type::RowType;
use crate::pg::server;
use crate::pg::tree::Tree;
use crate::pg::tree_making::list_of_oids;
use crate::query::decomposition::{AskedPart, Values, present};
use crate::query::hashes::EnvironmentHash;
use crate::query::partitions::{Leaf, leaves};
use crate::query::plan_marker;
use crate::serve::slot_values;
use crate::{session, settings, shmem};

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

/// The parts of a statement.
pub struct Parts {
    callback: pg_sys::MemoryContextCallback,
    /// The recipe that they are made by.
    recipe: *const pg_sys::List,
    contents: Option<Box<Contents>>,
}

/// The parts that were looked up for the statement that is being started; null for none. They are taken when its scan
/// starts, and go with their memory after an error.
static LOOKED_UP: Local<Cell<*mut Parts>> = Local::new(Cell::new(std::ptr::null_mut()));

/// What is dropped with the statement.
struct Contents {
    surroundings: Surroundings,
    states: Vec<PartState>,
    /// The part that is read now.
    position: usize,
    /// The settings and the role under which the statement was started; `None` if they are not known.
    started_under: Option<EnvironmentHash>,
    /// The indexes that the plans of parts scan.
    indexes: HeldIndexes,
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

/// A statement that is being started.
#[derive(Clone, Copy)]
pub struct Statement {
    /// The snapshot that it runs under, which is registered.
    pub snapshot: pg_sys::Snapshot,
    /// Its parameters.
    pub params: pg_sys::ParamListInfo,
    /// The text that it is part of.
    pub text: *const c_char,
    /// A memory context that lives as long as it.
    pub context: pg_sys::MemoryContext,
}

impl Parts {
    /// The parts of a statement, of which those are pinned that are stored under its snapshot.
    ///
    /// # Safety
    /// `list` must be the recipe of the plan of the statement.
    pub unsafe fn look_up(list: *const pg_sys::List, statement: Statement) -> Option<*mut Self> {
        // SAFETY: the caller's promise. The callback lies in the context whose end it reports.
        unsafe {
            let recipe = Recipe::of_list(list)?;
            let Statement { snapshot, params, text, context } = statement;
            let caller = pg_sys::MemoryContextSwitchTo(context);
            let parts: *mut Self = kept!(pg_sys::palloc(size_of::<Self>())).cast();
            let callback = pg_sys::MemoryContextCallback {
                func: Some(context_gone),
                arg: parts.cast(),
                next: std::ptr::null_mut(),
            };
            parts.write(Self { callback, recipe: list, contents: None });
            server::MemoryContextRegisterResetCallback(context, &raw mut (*parts).callback);
            let mut contents = Box::new(Contents {
                states: recipe.leaves.iter().map(PartState::new).collect(),
                surroundings: Surroundings {
                    state: std::ptr::null_mut(),
                    snapshot,
                    text,
                    context,
                    columns: columns_of(&recipe.part).unwrap_or_default().into(),
                    dimensions: recipe.dimensions().collect(),
                    environment: None,
                    versions: recipe.made.versions,
                    asked: None,
                    eligible: OnceCell::new(),
                },
                position: 0,
                started_under: parts::environment_now(),
                indexes: HeldIndexes::default(),
                has_run: false,
                tuple: std::ptr::null_mut(),
                patience: Patience::default(),
            });
            contents.look_up(&recipe, Tree::enter(params));
            (*parts).contents = Some(contents);
            pg_sys::MemoryContextSwitchTo(caller);
            Some(parts)
        }
    }

    /// Returns true if each part is stored, has no rows, or has a plan.
    pub fn are_complete(&self) -> bool {
        let is_there = |part: &PartState| !part.plan.is_null() || !matches!(part.rows, Rows::Waiting);
        self.contents.as_ref().is_some_and(|contents| contents.states.iter().all(is_there))
    }

    /// Keeps them for the scan that is about to be started.
    pub fn hand_over(&mut self) {
        LOOKED_UP.set(self);
    }

    /// The parts of a scan that is being started: those that were looked up for it, or are looked up now.
    ///
    /// # Safety
    /// `list` must be its recipe, `state` that of its statement, and `row_type` the type of the rows of the parts.
    pub unsafe fn begin(
        list: *const pg_sys::List,
        state: *mut pg_sys::EState,
        row_type: RowType<'_>,
        runs: bool,
    ) -> Option<*mut Self> {
        // SAFETY: the caller's promise. What was looked up is there as long as it is noted.
        unsafe {
            let ready = LOOKED_UP.get();
            let parts = if !ready.is_null() && std::ptr::eq((*ready).recipe, list) {
                LOOKED_UP.set(std::ptr::null_mut());
                ready
            } else {
                let statement = Statement {
                    snapshot: (*state).es_snapshot,
                    params: (*state).es_param_list_info,
                    text: (*state).es_sourceText,
                    context: (*state).es_query_cxt,
                };
                Self::look_up(list, statement)?
            };
            if !(*parts).are_complete() {
                // Somebody has started the plan around the hooks.
                CacheError::placeholder_run().raise();
            }
            let contents = (*parts).contents.as_mut()?;
            contents.surroundings.state = state;
            contents.tuple =
                kept!(pg_sys::MakeSingleTupleTableSlot(row_type.as_ptr(), &raw const pg_sys::TTSOpsMinimalTuple));
            if runs {
                contents.hold_indexes();
            }
            Some(parts)
        }
    }

    /// The relations to hold open while the plan runs, as the executor of an undivided plan would: leaves that are left
    /// out are not among them.
    pub fn relations(&self) -> Vec<pg_sys::Oid> {
        let Some(contents) = &self.contents else { return Vec::new() };
        let read = contents.states.iter().filter(|part| !matches!(part.rows, Rows::LeftOut)).map(|part| part.leaf);
        read.chain(contents.surroundings.dimensions.iter().copied().map(pg_sys::Oid::from)).collect()
    }

    /// The leaves of which nothing is read: a list of OIDs, in the current memory context.
    pub fn left_out(&self) -> *mut pg_sys::List {
        let Some(contents) = &self.contents else { return std::ptr::null_mut() };
        let left_out = contents.states.iter().filter(|part| matches!(part.rows, Rows::LeftOut));
        list_of_oids(
            left_out.map(|part| part.leaf).filter(|leaf| !contents.surroundings.dimensions.contains(&leaf.to_u32())),
        )
    }

    /// Puts the next row into a virtual slot, or says how to get it.
    ///
    /// # Safety
    /// The slot must be a virtual one with the columns of the parts.
    pub unsafe fn next(&mut self, slot: *mut pg_sys::TupleTableSlot) -> Step {
        // SAFETY: the caller's promise.
        self.contents.as_mut().map_or(Step::End, |contents| unsafe { contents.next(slot) })
    }

    /// Takes the row that a step of a query has given, null for its end, and puts it into a virtual slot. Says whether
    /// there was one.
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
        let mut counts = Counts::default();
        for part in self.contents.iter().flat_map(|contents| &contents.states) {
            match part.rows {
                Rows::Stored(_) => counts.stored += 1,
                Rows::LeftOut => {}
                Rows::Waiting | Rows::Running(_) | Rows::Read => counts.computed += 1,
            }
        }
        counts
    }

    /// Lets the stored parts go, and frees the others.
    pub fn end(&mut self) {
        let Some(contents) = self.contents.take() else { return };
        contents.indexes.close();
        for part in contents.states {
            match part.rows {
                // SAFETY: a hold was made for this statement, and is used no more.
                Rows::Stored(hold) => unsafe { (*hold).release() },
                Rows::Running(run) => run.end(false),
                Rows::Waiting | Rows::Read | Rows::LeftOut => {}
            }
        }
    }
}

impl Contents {
    /// Finds out which leaves have rows within the present bounds, and pins the stored parts that hold. What cannot be
    /// told, or looked up, is computed: the plan of a part asks all bounds.
    fn look_up(&mut self, recipe: &Recipe, params: Option<Tree<'_, pg_sys::ParamListInfoData>>) {
        let Some(store) = shmem::store() else { return };
        let versions = definition_versions(&store);
        let Some((asked, leaves)) = asked_now(recipe, params) else { return };
        for (part, leaf) in self.states.iter_mut().zip(&leaves) {
            match leaf {
                Some(leaf) => part.is_at_end = leaf.is_at_end,
                None => part.rows = Rows::LeftOut,
            }
        }
        let Some(environment) = parts::environment(&store, recipe.made) else { return };
        if let Some(form) = recipe.kept_form.filter(|form| admission::worth(*form, true) != Worth::Combined) {
            // To be combined of parts has not paid.
            return plan_marker::renew(renewal_of(form));
        }
        let Ok(keys) = PartKeys::of(&asked, environment, store.seed()) else { return };
        self.surroundings.environment = Some(environment);
        self.surroundings.versions = versions;
        for (part, leaf) in self.states.iter_mut().zip(leaves) {
            part.key = leaf.and_then(|leaf| keys.of_leaf(leaf).ok());
            part.look_up(&store, &self.surroundings);
        }
        self.surroundings.asked = Some(asked);
    }

    /// Holds open what the plans scan that may be run, as the server's own plan would.
    fn hold_indexes(&mut self) {
        let is_read_later = portal::may_be_read_later() || (portal::is_bound() && !session::executing_prepared());
        let may_run = |part: &&PartState| match part.rows {
            Rows::Stored(_) => is_read_later,
            Rows::LeftOut => false,
            Rows::Waiting | Rows::Running(_) | Rows::Read => true,
        };
        for part in self.states.iter().filter(may_run) {
            // SAFETY: a plan of this statement's plan, whose table is locked; null for none.
            self.indexes.hold(unsafe { Tree::enter(part.plan) });
        }
    }

    /// Has the present part, whose rows are not there yet, read from the store after all, or computed.
    fn obtain(&mut self) {
        let lead = self.share();
        if let Some(part) = self.states.get_mut(self.position)
            && matches!(part.rows, Rows::Waiting)
        {
            if self.surroundings.environment.is_some() {
                count(Counter::FragmentsComputed, 1);
            }
            let leaf = RunLeaf { is_at_end: part.is_at_end, key: part.key };
            part.rows = Rows::Running(PartRun::start(part.plan, leaf, &self.surroundings, lead));
        }
    }

    /// Shares the parts that are missing with other statements that miss them, too: puts one in the present place that
    /// nobody else computes. If there is none, waits for the part that is there. Returns its claim, if it is to be
    /// computed.
    fn share(&mut self) -> Lead {
        let Some(store) = shmem::store().filter(|_| self.surroundings.environment.is_some()) else {
            return Lead::default();
        };
        let is_free = |part: &PartState| {
            !matches!(part.rows, Rows::Waiting)
                || part.key.is_none_or(|part| !single_flight::is_computed(&store, part.key, Wanted::Current))
        };
        let mut left = self.position..self.states.len();
        if let Some(place) = left.find(|place| is_free(&self.states[*place])) {
            self.states.swap(self.position, place);
        }
        let Some(part) = self.states.get_mut(self.position) else { return Lead::default() };
        // SAFETY: the statement runs, with a registered snapshot.
        let snapshot = unsafe { self.surroundings.snapshot.as_ref() };
        while let Some(PartKey { key, .. }) = part.key.filter(|_| matches!(part.rows, Rows::Waiting)) {
            if part.look_up(&store, &self.surroundings) {
                single_flight::note_answer();
                count(Counter::FragmentsServed, 1);
                break;
            }
            let relations = [&[part.leaf.to_u32()], self.surroundings.dimensions.as_slice()].concat();
            match parts::join(&store, key, &relations, snapshot, &mut self.patience) {
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
            let stored = self.states.iter().filter(|part| matches!(part.rows, Rows::Stored(_))).count();
            let is_computed = self.states.iter().any(|part| matches!(part.rows, Rows::Waiting));
            if stored > 0 || (is_computed && self.surroundings.environment.is_some()) {
                count(Counter::FragmentRuns, 1);
                count(Counter::FragmentsServed, stored as u64);
            }
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
                    Rows::Waiting | Rows::Read | Rows::LeftOut => false,
                }
            };
            if filled {
                // SAFETY: all values were written.
                unsafe { kept!(pg_sys::ExecStoreVirtualTuple(slot)) };
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
            kept!(pg_sys::ExecStoreVirtualTuple(slot));
        }
        true
    }

    /// Has the stored parts computed that have a plan if settings have changed since they were looked up: the first row
    /// of a portal may be asked for much later. A part without a plan does not depend on settings. Leaves that were
    /// left out stay out, as they do when the server leaves them out of its plan at the start.
    fn check_settings(&mut self) {
        let is_wanted = settings::enabled() && settings::enable_fragments();
        if is_wanted && self.started_under.is_some() && parts::environment_now() == self.started_under {
            return;
        }
        self.surroundings.environment = None;
        for part in self.states.iter_mut().filter(|part| !part.plan.is_null()) {
            if let Rows::Stored(hold) = part.rows {
                // SAFETY: a hold lasts as long as the statement.
                unsafe { (*hold).release() };
                part.rows = Rows::Waiting;
            }
        }
    }

    /// Goes back to the first row. What was computed is computed again: it gives the same rows, and nothing keeps them
    /// meanwhile.
    fn rewind(&mut self) {
        self.position = 0;
        for part in &mut self.states {
            if let Rows::Stored(hold) = part.rows {
                // SAFETY: a hold lasts as long as the statement.
                if let Some(rows) = unsafe { (*hold).rows() } {
                    rows.rewind();
                }
            } else if !matches!(part.rows, Rows::LeftOut)
                && let Rows::Running(run) = std::mem::replace(&mut part.rows, Rows::Waiting)
            {
                run.end(false);
            }
        }
    }
}

/// What the parts of a recipe ask with these parameters, under the active snapshot, and of which leaves, in their
/// order: `None` for one that has no row for that. `None` for all if it cannot be told, or there are other leaves than
/// the planned ones.
fn asked_now(
    recipe: &Recipe,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> Option<(AskedPart, Vec<Option<Leaf>>)> {
    let Recipe { part, leaves: planned, conditions, .. } = recipe;
    let asked = part.asked(params, Values::Present).ok()?;
    // SAFETY: the bounds were taken from the query, and the conditions from the planner.
    let found = unsafe { leaves(part.relation, asked.bounds(), present(*conditions, params)) }.ok()?;
    // They come in the order in which they were planned.
    let mut found = found.leaves.into_iter().peekable();
    let leaves = planned.iter().map(|part| found.next_if(|leaf| leaf.relation == part.relation)).collect();
    found.next().is_none().then_some((asked, leaves))
}

fn count(counter: Counter, times: u64) {
    if let Some(store) = shmem::store() {
        store.counters().add(store.stripe(), counter, times);
    }
}

/// The memory of the statement goes: its end, or an error. Frees Rust memory and does nothing else.
unsafe extern "C-unwind" fn context_gone(parts: *mut c_void) {
    let parts: *mut Parts = parts.cast();
    if std::ptr::eq(LOOKED_UP.get(), parts) {
        LOOKED_UP.set(std::ptr::null_mut());
    }
    // SAFETY: registered with the address of the parts, which the context still contains.
    drop(unsafe { (*parts).contents.take() });
}
