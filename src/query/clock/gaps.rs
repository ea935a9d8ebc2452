//! How the gaps of a statement are found that has cuts (`cuts`): by searches that the server plans, when its answer is
//! about to be stored. Keeps nothing.

use arrow_cache_core::{Reason, RoomyVec};
use pgrx::pg_sys::{self, Datum, Oid};

use super::carried::Carried;
use super::column_comparisons::Split;
use super::cuts::{Cuts, rank};
use super::evaluation::{Clock, are_given, in_own_memory};
use super::time_operators::time_column;
use crate::pg::neighbour_search::{Planned, Side, plan};

/// What a search may cost at least, as the planner counts: it reads a table of about two megabytes.
const SMALL_COST: f64 = 500.0;

/// What a search may do.
#[derive(Clone, Copy)]
pub struct Allowed<'q> {
    /// What the plan of the statement costs, as the planner counts. A search may cost as much.
    pub cost: f64,
    /// Tells whether a table, and all that has rows of it for which these conditions on relation 1 hold, may be opened.
    pub opens: &'q dyn Fn(Oid, *mut pg_sys::List) -> bool,
}

/// Why gaps are not found, and the relation and the column of the cut whose gap may not be sought.
pub type NotSought = (Reason, Option<(Oid, i16)>);

/// The gaps around these cuts of a statement, as bytes. It runs under the snapshot: an MVCC snapshot that is registered
/// or active. Without one, nothing is run, and nothing is given: whether the gaps may be sought is checked.
///
/// # Errors
/// `MovingClock` if a search may not be done; `OutOfMemory`.
pub fn gaps(
    clock: &Clock<'_>,
    cuts: &Cuts,
    snapshot: Option<&pg_sys::SnapshotData>,
    allowed: Allowed<'_>,
) -> Result<Vec<u8>, NotSought> {
    in_own_memory(|| {
        // SAFETY: the statement that carries the expressions is being planned or started.
        let entries = unsafe { if are_given(clock) { clock.trees.entries() } else { &[] } };
        let mut gaps = Vec::new();
        for (place, cut) in cuts.each() {
            let entry = entries.get(place).and_then(|entry| Some((entry, entry.noted.split.as_ref()?)));
            let (entry, split) = entry.ok_or((Reason::MovingClock, None))?;
            let not_sought = (Reason::MovingClock, Some((split.relation, split.column)));
            let [before, behind] = searches(clock, entry, split, cut, allowed).ok_or(not_sought)?;
            let Some(snapshot) = snapshot else { continue };
            // SAFETY: planned in the present memory context; the snapshot is that of the statement.
            let [before, behind] = unsafe { [before.value(snapshot), behind.value(snapshot)] };
            let rank = |value| rank(split.type_oid, value);
            let gap = [before.map_or(i64::MIN, rank), behind.map_or(i64::MAX, rank)];
            for number in gap {
                gaps.add_all(&number.to_ne_bytes()).map_err(|_| (Reason::OutOfMemory, None))?;
            }
        }
        Ok(gaps)
    })
}

/// The searches on both sides of a cut; `None` if they may not be done.
fn searches(clock: &Clock<'_>, entry: &Carried, split: &Split, cut: i64, allowed: Allowed<'_>) -> Option<[Planned; 2]> {
    let column = time_column(split.relation, split.column, split.type_oid)?;
    if !(allowed.opens)(split.relation, entry.conditions) {
        return None;
    }
    let time = if split.type_oid == pg_sys::DATEOID { Datum::from(i32::try_from(cut).ok()?) } else { Datum::from(cut) };
    let params = clock.params.map_or(std::ptr::null_mut(), |params| params.as_ptr());
    let search = |side| {
        // SAFETY: a number is a value of the column's type; conditions and parameters of the statement.
        let planned = unsafe { plan(&column, time, side, entry.conditions, params) }?;
        (planned.cost() <= (allowed.cost / 2.0).max(SMALL_COST)).then_some(planned)
    };
    Some([search(Side::Before)?, search(Side::Behind)?])
}
