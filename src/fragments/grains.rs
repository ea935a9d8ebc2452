//! Which grain a statement is answered from (`query::decomposition::Grain`). Learned: a grain is used once statements
//! with other conditions have asked for it, each for the first time. Whether it is worth it is told by the plans of its
//! parts, and by the first of them that are computed. What is known of a grain is one word in shared memory, by the key
//! of its question: how many have asked, and whether it was refused.

use arrow_cache_core::versions::zones::Zones;
use arrow_cache_core::{CacheKey, Speed};
use pgrx::pg_sys::{self, NodeTag};

use super::key::PartKeys;
use super::zones::{least_blocks, scan_of};
use crate::lookup::Call;
use crate::lookup::stored_parts;
use crate::query::decomposition::{Decomposition, Grain, Part, Values, decompose};
use crate::settings;
use crate::shmem::SharedStore;

/// Statements that ask for a grain before it is used. The first one of a form only tells how long it takes.
const STATEMENTS_TO_LEARN: u32 = 2;
/// One that was refused is tried again for one in so many statements.
const TRY_EVERY: u32 = 256;
/// The most rows of a part.
const MOST_GROUPS: f64 = 10_000.0;
/// The fewest rows of the table in each row of a part.
const LEAST_OF_GROUP: f64 = 20.0;
/// So many times as long as the answer may computing all parts take, by the costs of the planner.
const MOST_TIMES: f64 = 2.0;

/// A query as it is answered from a grain.
pub struct InGrain {
    pub decomposition: Decomposition,
    /// What is known of the grain is found by this.
    pub word: u64,
}

/// The key of a question, whatever part of the table is asked. `None` if it cannot be told.
pub fn question(store: &SharedStore, part: &Part, call: &Call<'_>) -> Option<CacheKey> {
    let asked = part.asked(call.params(), Values::Present).ok()?;
    let environment = stored_parts::environment_now()?;
    let key = PartKeys::of(&asked, environment, store.seed()).of_zones(part.relation, Zones::NONE);
    key.ok().map(|part| part.key)
}

/// The query as it would be answered from this grain. `None` if there is none.
pub fn in_grain(store: &SharedStore, call: &Call<'_>, grain: Grain) -> Option<InGrain> {
    let decomposition = decompose(call.query(), least_blocks(), Some(grain)).ok()?;
    let word = question(store, &decomposition.part, call)?.0.lo;
    Some(InGrain { decomposition, word })
}

/// Returns true if a grain is to be used. If that is not known, a statement is noted whose question `is_new`: nobody
/// has asked it before.
pub fn is_used(store: &SharedStore, word: u64, is_new: impl Fn() -> bool) -> bool {
    let is_known = || {
        let Speed { executions, combined_runs: refused, .. } = store.speed(word);
        let asked = executions - refused;
        asked >= STATEMENTS_TO_LEARN && (refused == 0 || asked.is_multiple_of(TRY_EVERY))
    };
    if settings::debug_force_grains() || is_known() {
        return true;
    }
    if is_new() {
        store.note_run(word, 0, false);
    }
    is_known()
}

/// Notes that a grain is not worth it. The statement counts among those that have asked, so that the next one does not
/// try it once more.
pub fn refuse(store: &SharedStore, word: u64) {
    store.note_run(word, 0, true);
    store.note_run(word, 0, false);
}

/// Returns true if a part that has so many rows may be one of a grain.
pub fn is_small(rows: f64) -> bool {
    rows <= MOST_GROUPS || settings::debug_force_grains()
}

/// Returns true if the planner expects that few rows of these parts.
///
/// # Safety
/// Valid plans of parts.
pub unsafe fn are_small(plans: impl IntoIterator<Item = *mut pg_sys::PlannedStmt>) -> bool {
    // SAFETY: the caller's promise.
    plans.into_iter().all(|plan| is_small(unsafe { (*(*plan).planTree).plan_rows }))
}

/// Returns true if plans give few rows for what they read of a relation, as the planner expects.
///
/// # Safety
/// Valid plans, each with the relation.
pub unsafe fn are_coarse(plans: impl IntoIterator<Item = (*mut pg_sys::PlannedStmt, pg_sys::Oid)>) -> bool {
    let (mut read, mut groups) = (0.0, 0.0);
    for (plan, relation) in plans {
        // SAFETY: the caller's promise.
        unsafe {
            (read, groups) = (read + rows_read(plan, relation), groups + (*(*plan).planTree).plan_rows);
        }
    }
    settings::debug_force_grains() || read >= groups * LEAST_OF_GROUP
}

/// Returns true if computing a part in a grain takes little longer than without, by the costs of the planner.
///
/// # Safety
/// Valid plans.
pub unsafe fn is_cheap(in_grain: *mut pg_sys::PlannedStmt, without: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: the caller's promise.
    let [in_grain, without] = [in_grain, without].map(|plan| unsafe { (*(*plan).planTree).total_cost });
    settings::debug_force_grains() || in_grain <= without * MOST_TIMES
}

/// How many rows of a relation the planner expects a plan to read. Of a scan that several processes share it knows what
/// each of them reads.
///
/// # Safety
/// A valid plan.
unsafe fn rows_read(plan: *mut pg_sys::PlannedStmt, relation: pg_sys::Oid) -> f64 {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(scan) = scan_of(plan, relation) else { return 0.0 };
        let workers = if (*scan).parallel_aware { workers_of((*plan).planTree) } else { 0.0 };
        // As the planner reckons it (costsize.c, `get_parallel_divisor`).
        (*scan).plan_rows * (workers + (1.0 - 0.3 * workers).max(0.0)).max(1.0)
    }
}

/// How many workers the topmost node of a plan that has some asks for.
///
/// # Safety
/// Null, or a valid plan.
unsafe fn workers_of(mut plan: *mut pg_sys::Plan) -> f64 {
    // SAFETY: the caller's promise; nodes have the type that their tag says.
    unsafe {
        while let Some(node) = plan.as_ref() {
            match node.type_ {
                NodeTag::T_Gather => return (*plan.cast::<pg_sys::Gather>()).num_workers.into(),
                NodeTag::T_GatherMerge => return (*plan.cast::<pg_sys::GatherMerge>()).num_workers.into(),
                _ => plan = node.lefttree,
            }
        }
    }
    0.0
}
