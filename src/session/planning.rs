//! What the hooks of planner and executor have to know of the session: whether the plan that is made now can be
//! answered from the cache, and whether it must be a real plan. State of this backend, set by the hooks and by export
//! functions; no lock.

use std::cell::Cell;

use pgrx::pg_sys;

use super::nesting::at_top_level;
use crate::pg::backend;
use crate::pg::backend_local::Local;

/// An export function is planning its query.
static PLANNING_EXPORT: Local<Cell<bool>> = Local::new(Cell::new(false));
/// An export function is starting its query.
static STARTING_EXPORT: Local<Cell<bool>> = Local::new(Cell::new(false));
/// The last plan's number, 0 before the first.
static PLANS: Local<Cell<u64>> = Local::new(Cell::new(0));
/// This session has met functions that are declared pure: the plans that they keep need a verdict, too.
static OBSERVES: Local<Cell<bool>> = Local::new(Cell::new(false));
/// No placeholder may be given.
static MUST_PLAN: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Marks that an export function is planning its query, as long as the value lives.
pub struct PlanningExport(());

impl PlanningExport {
    /// Enters planning.
    pub fn enter() -> Self {
        PLANNING_EXPORT.set(true);
        Self(())
    }
}

impl Drop for PlanningExport {
    fn drop(&mut self) {
        PLANNING_EXPORT.set(false);
    }
}

/// Marks that an export function is starting its query, which it counts itself, as long as the value lives.
pub struct StartingExport(());

impl StartingExport {
    /// Enters the start.
    pub fn enter() -> Self {
        STARTING_EXPORT.set(true);
        Self(())
    }
}

impl Drop for StartingExport {
    fn drop(&mut self) {
        STARTING_EXPORT.set(false);
    }
}

/// Returns true if the export function that starts the query counts it. Asked once.
pub fn take_starting_export() -> bool {
    STARTING_EXPORT.replace(false)
}

/// Returns true if the plan that is made now could be answered from the cache.
pub fn may_be_answered() -> bool {
    at_top_level() || PLANNING_EXPORT.get()
}

/// Returns true if an export function is planning its query.
pub fn planning_export() -> bool {
    PLANNING_EXPORT.get()
}

/// As `may_be_answered`; also if an answer could rest on what the plan reads.
pub fn plans_matter() -> bool {
    may_be_answered() || OBSERVES.get()
}

/// Notes that a query calls functions that are declared pure. From now on all plans get verdicts.
pub fn note_observed() {
    OBSERVES.set(true);
}

/// Sets whether a query must really be planned from now on, even if an answer is stored.
pub fn set_must_plan(must: bool) {
    MUST_PLAN.set(must);
}

/// Returns true if the query that is planned now must really be planned.
pub fn must_plan() -> bool {
    MUST_PLAN.get()
}

/// A number for a plan that no other plan has: it counts up from a random start.
pub fn next_plan_number() -> u64 {
    let last = match PLANS.get() {
        // SAFETY: a plain global of the backend.
        0 => backend::random().unwrap_or_else(|| unsafe { pg_sys::MyStartTimestamp }.cast_unsigned()),
        last => last,
    };
    PLANS.set(last.wrapping_add(1));
    PLANS.get()
}
