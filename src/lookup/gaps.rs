//! The gaps of a statement with cuts (`query::clock`), which are sought when its answer is about to be stored. Keeps
//! nothing.

use arrow_cache_core::{HashBuffer, Reason};
use pgrx::pg_sys::{self, Oid};

use super::question::Question;
use crate::pg::compat::lock_at_once;
use crate::pg::error_passing::keeping;
use crate::pg::folding::fold;
use crate::pg::index_list::indexes_of;
use crate::pg::inheritance::all_inheritors;
use crate::pg::lists::oids;
use crate::pg::tree::{Tree, child, children};
use crate::query::clock::{self, Allowed, Clock, Cuts, NotSought};
use crate::query::partitions::leaves;
use crate::query::scan_of_parts::is_combined;

/// Most entries in the range table of a statement whose gaps are sought, and most tables that a search opens: planning
/// searches of more takes too long.
const MOST_TABLES: usize = 256;

/// The gaps, as bytes.
///
/// # Errors
/// As `check`; `OutOfMemory`.
pub fn find(question: &Question<'_>, clock: &Clock<'_>, cuts: &Cuts) -> Result<Vec<u8>, Reason> {
    let cost = cost_allowed(question.plan)?;
    let snapshot = question.snapshot.ok_or(Reason::MovingClock)?;
    seek(clock, cuts, Some(snapshot), cost).map_err(|(reason, _)| reason)
}

/// Checks whether they would be sought.
///
/// # Errors
/// `MovingClock`.
pub fn check(plan: Tree<'_, pg_sys::PlannedStmt>, clock: &Clock<'_>, cuts: &Cuts) -> Result<(), Reason> {
    let found = seek(clock, cuts, None, cost_allowed(plan)?);
    found.map(|_| ()).map_err(|(reason, _)| reason)
}

/// The relation and the column of the first cut whose gap would not be sought for a statement that costs so much.
pub fn not_sought(clock: &Clock<'_>, cost: f64) -> Option<(Oid, i16)> {
    let cuts = clock::times(clock, &mut HashBuffer::new()).ok()?;
    seek(clock, &cuts, None, cost).err()?.1
}

/// As `clock::gaps`, for a statement that costs so much.
fn seek(
    clock: &Clock<'_>,
    cuts: &Cuts,
    snapshot: Option<&pg_sys::SnapshotData>,
    cost: f64,
) -> Result<Vec<u8>, NotSought> {
    let opens = |table, conditions| opens_at_once(clock, table, conditions);
    clock::gaps(clock, cuts, snapshot, Allowed { cost, opens: &opens })
}

/// Returns true if planning a search of a table, with these conditions on relation 1, waits for nobody and is quick.
/// It opens the tables that may have such rows, and all of their indexes: more than a statement that excludes some of
/// these, or than a kept plan that does not scan an index.
fn opens_at_once(clock: &Clock<'_>, table: Oid, conditions: *mut pg_sys::List) -> bool {
    let params = clock.params.map_or(std::ptr::null_mut(), Tree::as_ptr);
    // SAFETY: the locks go with the transaction. A table that is locked, and conditions on its columns that cannot
    // fail.
    unsafe {
        let can_lock = |relation: Oid| keeping(|| lock_at_once(relation));
        if !can_lock(table) {
            return false;
        }
        let tables: Vec<Oid> = if kept!(pg_sys::get_rel_relkind(table)) as u8 == pg_sys::RELKIND_PARTITIONED_TABLE {
            let Ok(found) = leaves(table, &[], fold(conditions.cast(), params).expression.cast()) else { return false };
            found.tables.into_iter().chain(found.leaves.iter().map(|leaf| leaf.relation)).collect()
        } else {
            oids(all_inheritors(table)).collect()
        };
        tables.len() <= MOST_TABLES
            && tables.into_iter().all(|table| can_lock(table) && indexes_of(table).into_iter().all(can_lock))
    }
}

/// What a search may cost: as much as the statement itself.
///
/// # Errors
/// `MovingClock` if nothing is sought for such a plan. One that combines parts reads the leaves of this moment, and
/// with another cut in the same gap it might read others.
fn cost_allowed(plan: Tree<'_, pg_sys::PlannedStmt>) -> Result<f64, Reason> {
    if is_combined(plan) || children!(plan.rtable as RangeTblEntry).len() > MOST_TABLES {
        return Err(Reason::MovingClock);
    }
    Ok(child!(plan.planTree).map_or(0.0, |top| top.total_cost))
}
