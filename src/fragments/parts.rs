//! The parts of one statement under way: which are stored, which are computed, and where reading them stands. Belongs
//! to one scan of this backend; a memory context of the statement drops it, after an error too.

use std::cell::{Cell, OnceCell};
use std::ffi::c_char;

use arrow_cache_core::Counter;
use arrow_cache_core::versions::zones::Zones;
use pgrx::pg_sys;

use super::admission::{self, Worth};
use super::grains;
use super::key::PartKeys;
use super::part_run::{Computed, Surroundings};
use super::part_state::{PartState, Rows, found_zones, free};
use super::recipe::{Recipe, ZoneParts, columns_of};
use super::zone_pass::Pass;
use super::zones;
use crate::error::{CacheError, or_raise};
use crate::lookup::definition_versions;
use crate::lookup::stored_parts;
use crate::pg::backend_local::Local;
use crate::pg::memory_context::leak;
use crate::pg::row_type::RowType;
use crate::pg::tree::Tree;
use crate::pg::tree_making::list_of_oids;
use crate::query::decomposition::{AskedPart, Values};
use crate::query::hashes::EnvironmentHash;
use crate::query::partitions::Leaf;
use crate::query::plan_marker;
use crate::serve::slot_values;
use crate::{settings, shmem};

/// The parts of a statement.
pub struct Parts {
    /// The recipe that they are made by.
    recipe: *const pg_sys::List,
    surroundings: Surroundings,
    states: Vec<PartState>,
    /// How zones are read, if these are theirs.
    zones: Option<ZoneParts>,
    /// The rows of all zones, if they were read at once.
    pass: Option<Pass>,
    /// What is known of the grain of the parts is found by this; 0 if they are in none.
    grain: u64,
    /// The relations that every part reads, beside its leaf.
    dimensions: Vec<pg_sys::Oid>,
    /// The part that is read now.
    position: usize,
    /// The settings and the role under which the statement was started; `None` if they are not known.
    started_under: Option<EnvironmentHash>,
    /// Rows were asked for.
    has_run: bool,
    /// Carries the rows of computed parts.
    tuple: *mut pg_sys::TupleTableSlot,
}

/// The parts that were looked up for the statement that is being started; null for none. They are taken when its scan
/// starts, and go with their memory after an error.
static LOOKED_UP: Local<Cell<*mut Parts>> = Local::new(Cell::new(std::ptr::null_mut()));

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
pub struct Statement<'q> {
    /// Its plan.
    pub plan: Tree<'q, pg_sys::PlannedStmt>,
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
    pub unsafe fn look_up(list: *const pg_sys::List, statement: Statement<'_>) -> Option<*mut Self> {
        // SAFETY: the caller's promise.
        unsafe {
            let recipe = Recipe::of_list(list)?;
            let Statement { snapshot, text, context, .. } = statement;
            let caller = pg_sys::MemoryContextSwitchTo(context);
            let mut parts = Self {
                recipe: list,
                states: match recipe.zones {
                    Some(zones) => PartState::of_zones(recipe.part.relation, zones),
                    None => recipe.leaves.iter().map(PartState::of_leaf).collect(),
                },
                zones: recipe.zones,
                pass: None,
                grain: recipe.grain,
                surroundings: Surroundings {
                    state: std::ptr::null_mut(),
                    snapshot,
                    text,
                    context,
                    columns: columns_of(&recipe.part).unwrap_or_default().into(),
                    environment: None,
                    versions: recipe.made.versions,
                    asked: None,
                    eligible: OnceCell::new(),
                },
                dimensions: recipe.part.dimensions.clone(),
                position: 0,
                started_under: stored_parts::environment_now(),
                has_run: false,
                tuple: std::ptr::null_mut(),
            };
            parts.find(&recipe, statement);
            let parts = leak(context, parts);
            pg_sys::MemoryContextSwitchTo(caller);
            Some(parts)
        }
    }

    /// Finds out which leaves have rows within the present bounds, and pins the stored parts that hold. What cannot be
    /// told, or looked up, is computed: the plan of a part asks all bounds.
    fn find(&mut self, recipe: &Recipe, statement: Statement<'_>) {
        let Some(store) = shmem::store() else { return };
        let versions = definition_versions(&store);
        // SAFETY: the parameters of a statement, or null.
        let params = unsafe { Tree::enter(statement.params) };
        let Some((asked, leaves)) = asked_now(recipe, params) else { return };
        for (part, leaf) in self.states.iter_mut().zip(&leaves) {
            if leaf.is_none() {
                part.rows = Rows::LeftOut;
            }
        }
        let Some(environment) = stored_parts::environment(&store, recipe.made) else { return };
        if plan_marker::kept_form_of(statement.plan).is_some_and(|form| admission::worth(form, true) != Worth::Combined)
        {
            // To be combined of parts has not paid.
            return plan_marker::ask_for_new_plan(statement.plan);
        }
        let mut keys = PartKeys::of(&asked, environment, store.seed());
        if self.zones.is_some()
            && !keys.of_zones(recipe.part.relation, Zones::NONE).is_ok_and(|key| admission::was_asked(&store, key.key))
        {
            return;
        }
        self.surroundings.environment = Some(environment);
        self.surroundings.versions = versions;
        if self.zones.is_some() {
            let unit = self.zones.map_or(1, |zones| zones.unit);
            self.states = found_zones(std::mem::take(&mut self.states), unit, &mut keys, &store, &self.surroundings);
        } else {
            for (part, leaf) in self.states.iter_mut().zip(leaves) {
                part.key = leaf.and_then(|leaf| keys.of_leaf(leaf).ok());
                part.look_up(&store, &self.surroundings);
            }
        }
        self.surroundings.asked = Some(asked);
    }

    /// Returns true if each part is stored, has no rows, or has a plan.
    pub fn are_complete(&self) -> bool {
        self.states.iter().all(|part| !part.plan.is_null() || !matches!(part.rows, Rows::Waiting))
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
    ) -> Option<*mut Self> {
        // SAFETY: the caller's promise. What was looked up is there as long as it is noted.
        unsafe {
            let ready = LOOKED_UP.get();
            let parts = if !ready.is_null() && std::ptr::eq((*ready).recipe, list) {
                LOOKED_UP.set(std::ptr::null_mut());
                ready
            } else {
                let statement = Statement {
                    plan: Tree::enter((*state).es_plannedstmt)?,
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
            (*parts).surroundings.state = state;
            (*parts).tuple =
                kept!(pg_sys::MakeSingleTupleTableSlot(row_type.as_ptr(), &raw const pg_sys::TTSOpsMinimalTuple));
            Some(parts)
        }
    }

    /// The relations to hold open while the plan runs, as the executor of an undivided plan would: leaves that are left
    /// out are not among them.
    pub fn relations(&self) -> Vec<pg_sys::Oid> {
        let read = self.states.iter().filter(|part| !matches!(part.rows, Rows::LeftOut)).map(|part| part.leaf);
        let mut all: Vec<_> = read.chain(self.dimensions.iter().copied()).collect();
        all.dedup();
        all
    }

    /// The leaves of which nothing is read: a list of OIDs, in the current memory context.
    pub fn left_out(&self) -> *mut pg_sys::List {
        let left_out = self.states.iter().filter(|part| matches!(part.rows, Rows::LeftOut));
        list_of_oids(left_out.map(|part| part.leaf).filter(|leaf| !self.dimensions.contains(leaf)))
    }

    /// Puts the next row into a virtual slot, which is empty. Says whether there is one.
    ///
    /// # Safety
    /// The slot must be a virtual one with the columns of the parts.
    pub unsafe fn next(&mut self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        if !std::mem::replace(&mut self.has_run, true) {
            self.begin_run();
        }
        // SAFETY: the caller's promise.
        if self.pass.as_ref().is_some_and(|pass| unsafe { pass.next(slot) }) {
            // SAFETY: all values were written.
            unsafe { kept!(pg_sys::ExecStoreVirtualTuple(slot)) };
            return true;
        }
        while let Some(part) = self.states.get_mut(self.position) {
            // SAFETY: the caller's promise; holds and computed rows last until their part was read.
            let filled = unsafe {
                match &part.rows {
                    Rows::Waiting => {
                        if self.surroundings.environment.is_some() {
                            count(Counter::FragmentsComputed, 1);
                        }
                        let source = || part.source(self.zones, self.surroundings.snapshot, slot);
                        let computed = Computed::run(source, part.key, &self.surroundings, false);
                        check_size(self.grain, computed.count());
                        part.rows = Rows::Computed(computed);
                        continue;
                    }
                    Rows::Stored(hold) => {
                        let (values, nulls) = slot_values(slot);
                        (**hold).rows().is_some_and(|rows| or_raise(rows.next(values, nulls)))
                    }
                    Rows::Computed(computed) => computed.next(self.tuple, slot),
                    Rows::Read | Rows::LeftOut => false,
                }
            };
            if filled {
                // SAFETY: all values were written.
                unsafe { kept!(pg_sys::ExecStoreVirtualTuple(slot)) };
                return true;
            }
            free(part, self.tuple, Rows::Read);
            self.position += 1;
        }
        false
    }

    /// Has the stored parts computed that have a plan if settings have changed since they were looked up: the first row
    /// of a portal may be asked for much later. A part without a plan does not depend on settings. Leaves that were
    /// left out stay out, as they do when the server leaves them out of its plan at the start.
    fn begin_run(&mut self) {
        let is_wanted = settings::enabled() && settings::enable_fragments();
        if !is_wanted || self.started_under.is_none() || stored_parts::environment_now() != self.started_under {
            self.surroundings.environment = None;
            for part in self.states.iter_mut().filter(|part| !part.plan.is_null()) {
                part.forget_stored(Rows::Waiting);
            }
        }
        self.read_at_once();
        let Counts { stored, computed } = self.counts();
        if stored > 0 || (computed > 0 && self.surroundings.environment.is_some()) {
            count(Counter::FragmentRuns, 1);
            count(Counter::FragmentsServed, stored as u64);
        }
    }

    /// Reads all zones at once if that is quicker than to read those that are not stored, by the costs of the planner.
    fn read_at_once(&mut self) {
        let Some(zones) = self.zones else { return };
        let missing = self.states.iter().filter(|part| part.is_to_be_read());
        let counts: Vec<_> = missing.filter_map(|part| part.zones).map(|own| own.count).collect();
        // By groups, which takes less, if no zone is to be stored by itself.
        let by_groups = self.surroundings.environment.is_none() || counts.iter().all(|count| *count > zones.unit);
        let (plan, size) = match by_groups {
            true => (zones.groups, zones.unit * zones::group_size(zones.unit)),
            false => (zones.all, zones.unit),
        };
        // SAFETY: plans of the statement.
        let [at_once, one] = [plan, zones.one].map(|plan| unsafe { (*(*plan).planTree).total_cost });
        let one_by_one = one * counts.iter().sum::<u64>() as f64 / zones.unit as f64;
        if counts.is_empty() || one_by_one < at_once || zones::function().is_none() {
            return;
        }
        if self.surroundings.environment.is_some() {
            count(Counter::FragmentsComputed, counts.len() as u64);
        }
        let mut keys = Vec::with_capacity(self.states.len());
        for part in &mut self.states {
            let to_store = part.zones.filter(|own| part.is_to_be_read() && own.count <= size);
            keys.extend(to_store.zip(part.key).map(|(own, key)| (own.first / size, key)));
            part.forget_stored(Rows::Read);
        }
        let pass = Pass::run(plan, zones.one, &keys, &self.surroundings);
        check_size(self.grain, pass.count() / counts.len() as i64);
        self.pass = Some(pass);
    }

    /// Goes back to the first row. What was computed is computed again: it gives the same rows, and nothing keeps them
    /// meanwhile.
    pub fn rewind(&mut self) {
        self.position = 0;
        // What was read at once is read anew, in whatever way is best.
        if let Some(pass) = self.pass.take() {
            pass.free();
            self.has_run = false;
        }
        for part in &mut self.states {
            match &part.rows {
                Rows::Stored(hold) => {
                    // SAFETY: a hold lasts as long as the statement.
                    if let Some(rows) = unsafe { (**hold).rows() } {
                        rows.rewind();
                    }
                }
                Rows::Read => part.rows = Rows::Waiting,
                Rows::Computed(_) => free(part, self.tuple, Rows::Waiting),
                Rows::Waiting | Rows::LeftOut => {}
            }
        }
    }

    /// How many parts come from where.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for part in &self.states {
            match part.rows {
                Rows::Stored(_) => counts.stored += 1,
                Rows::LeftOut => {}
                Rows::Waiting | Rows::Computed(_) | Rows::Read => counts.computed += 1,
            }
        }
        counts
    }

    /// Lets the stored parts go, and frees the others.
    pub fn end(&mut self) {
        self.pass.take().into_iter().for_each(Pass::free);
        for mut part in std::mem::take(&mut self.states) {
            free(&mut part, self.tuple, Rows::Read);
            part.forget_stored(Rows::Read);
        }
    }
}

impl Drop for Parts {
    /// The memory of the statement goes: its end, or an error.
    fn drop(&mut self) {
        if std::ptr::eq(LOOKED_UP.get(), self) {
            LOOKED_UP.set(std::ptr::null_mut());
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
    let asked = recipe.part.asked(params, Values::Present).ok()?;
    if recipe.zones.is_some() {
        return Some((asked, Vec::new()));
    }
    // They come in the order in which they were planned.
    let mut found = asked.leaves(recipe.part.relation).ok()?.leaves.into_iter().peekable();
    let leaves = recipe.leaves.iter().map(|part| found.next_if(|leaf| leaf.relation == part.relation)).collect();
    found.next().is_none().then_some((asked, leaves))
}

/// Notes that a grain is not worth it if a part has too many rows.
fn check_size(grain: u64, rows: i64) {
    if let Some(store) = shmem::store().filter(|_| grain != 0 && !grains::is_small(rows as f64)) {
        grains::refuse(&store, grain);
    }
}

fn count(counter: Counter, times: u64) {
    if let Some(store) = shmem::store() {
        store.counters().add(store.stripe(), counter, times);
    }
}
