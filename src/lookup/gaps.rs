//! The gaps of a statement with cuts (`query::clock`), which are sought when its answer is about to be stored. Keeps
//! nothing.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::question::Question;
use super::{execute_rights, price, rules};
use crate::pg::tree::{Tree, child, children};
use crate::query::clock::{self, Clock, Searched};
use crate::query::plan_kinds::is_combined;
use crate::shmem::SharedStore;

/// Most entries in the range table of a statement whose gaps are sought: planning searches of more takes too long.
const MOST_TABLES: usize = 256;

/// The gaps, as bytes.
///
/// # Errors
/// As `check`; `OutOfMemory`.
pub fn find(store: &SharedStore, question: &Question<'_>, clock: &Clock<'_>) -> Result<Vec<u8>, Reason> {
    let cost = cost_allowed(store, question.plan)?;
    let snapshot = question.snapshot.ok_or(Reason::MovingClock)?;
    // They belong to the answer, and not to the price of looking it up.
    price::pause();
    let gaps = clock::gaps(clock, Searched { snapshot, cost });
    price::go_on();
    gaps
}

/// Checks whether they would be sought.
///
/// # Errors
/// `MovingClock`.
pub fn check(store: &SharedStore, plan: Tree<'_, pg_sys::PlannedStmt>, clock: &Clock<'_>) -> Result<(), Reason> {
    let dear = clock::too_dear(clock, cost_allowed(store, plan)?);
    if dear.is_some() { Err(Reason::MovingClock) } else { Ok(()) }
}

/// What a search may cost: as much as the statement itself.
///
/// # Errors
/// `MovingClock` if nothing is sought for such a plan. One that combines parts reads the leaves of this moment, and
/// with another cut in the same gap it might read others.
fn cost_allowed(store: &SharedStore, plan: Tree<'_, pg_sys::PlannedStmt>) -> Result<f64, Reason> {
    // A search may call other functions of the server than the statement.
    let may_lack_rights = execute_rights::may_lack(rules::definitions(store).ddl);
    if may_lack_rights || is_combined(plan) || children!(plan.rtable as RangeTblEntry).len() > MOST_TABLES {
        return Err(Reason::MovingClock);
    }
    Ok(child!(plan.planTree).map_or(0.0, |top| top.total_cost))
}
