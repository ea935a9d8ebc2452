//! Cuts and gaps. Of a time that is compared with a column the answer has no more than which rows the comparison splits
//! off. The *cut* is that time, as a number: the values of the column that are less lie before it, the others behind it.
//! The *gap* is the space between the last value before the cut and the first one behind it. Any other cut in the same
//! gap splits the same rows alike. So gaps are stored with an answer, and it is given to whoever has cuts in them.
//!
//! Gaps are sought when an answer is about to be stored, by searches that the server plans. As bytes, in the order of the
//! machine, a gap is two numbers of eight bytes. Keeps nothing.

use arrow_cache_core::{Reason, RoomyVec};
use pgrx::pg_sys::{self, Datum, Oid};

use super::comparisons::time_column;
use super::evaluation::{Clock, Computed, with_values};
use super::noted::MOST;
use super::split::Split;
use crate::pg::neighbour_search::{Planned, Side, plan};

/// What a search may cost at least, as the planner counts: it reads a table of about two megabytes.
const SMALL_COST: f64 = 500.0;

/// The cuts of a statement, in the order of its clock expressions. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    cuts: [i64; MOST],
    count: usize,
}

impl Cuts {
    /// There are none.
    pub const NONE: Self = Self { cuts: [0; MOST], count: 0 };

    /// One more, unless there are too many.
    pub(super) fn add(&mut self, cut: i64) -> Option<()> {
        *self.cuts.get_mut(self.count)? = cut;
        self.count += 1;
        Some(())
    }

    /// Returns true if there are none.
    pub fn is_none(&self) -> bool {
        self.count == 0
    }

    /// What was stored before the gaps, if each cut lies in its gap. `stored` belongs to the same question.
    pub fn without_gaps<'s>(&self, stored: &'s [u8]) -> Option<&'s [u8]> {
        let (before, gaps) = stored.split_at_checked(stored.len().checked_sub(self.count * GAP)?)?;
        let (gaps, _) = gaps.as_chunks::<GAP>();
        let fits = |(cut, gap): (&i64, &[u8; GAP])| {
            let [before, behind] = numbers(gap);
            before < *cut && *cut <= behind
        };
        self.cuts.iter().zip(gaps).all(fits).then_some(before)
    }
}

/// Bytes of a gap.
const GAP: usize = 16;

fn numbers(gap: &[u8; GAP]) -> [i64; 2] {
    let [before, behind] = [gap.first_chunk(), gap.last_chunk()];
    [before, behind].map(|number| number.map_or(0, |number| i64::from_ne_bytes(*number)))
}

/// A number that is greater for a greater value: all types of dates and timestamps are integers.
pub(super) fn rank(type_oid: Oid, value: Datum) -> i64 {
    if type_oid == pg_sys::DATEOID { i64::from(value.value() as i32) } else { value.value() as i64 }
}

/// What gaps are sought for.
#[derive(Clone, Copy)]
pub struct Searched<'q> {
    /// The snapshot that the statement runs under: an MVCC snapshot that is registered or active.
    pub snapshot: &'q pg_sys::SnapshotData,
    /// What the plan of the statement costs, as the planner counts. A search may cost as much.
    pub cost: f64,
}

/// The gaps of a statement that has cuts, as bytes.
///
/// # Errors
/// `MovingClock` if a search would cost too much, or a value cannot be computed any more; `OutOfMemory`.
pub fn gaps(clock: &Clock<'_>, searched: Searched<'_>) -> Result<Vec<u8>, Reason> {
    with_values(clock, |values| {
        let mut gaps = Vec::new();
        for (computed, split) in splits(values) {
            let [before, behind] = searches(clock, computed, split, searched.cost).ok_or(Reason::MovingClock)?;
            // SAFETY: planned in the memory context of the computation, which is still there; the snapshot is that of
            // the statement.
            let [before, behind] = unsafe { [before.value(searched.snapshot), behind.value(searched.snapshot)] };
            let rank = |value| rank(split.type_oid, value);
            let gap = [before.map_or(i64::MIN, rank), behind.map_or(i64::MAX, rank)];
            for number in gap {
                gaps.add_all(&number.to_ne_bytes()).map_err(|_| Reason::OutOfMemory)?;
            }
        }
        Ok(gaps)
    })?
}

/// The relation and the column of the first cut whose gap would cost too much to seek.
pub fn too_dear(clock: &Clock<'_>, cost: f64) -> Option<(Oid, i16)> {
    let found = with_values(clock, |values| {
        let is_too_dear = |(computed, split): &(&Computed, &Split)| searches(clock, computed, split, cost).is_none();
        splits(values).find(is_too_dear).map(|(_, split)| (split.relation, split.column))
    });
    found.ok().flatten()
}

/// The values that are cuts.
fn splits(values: &[Computed]) -> impl Iterator<Item = (&Computed, &Split)> {
    values.iter().filter_map(|computed| Some((computed, computed.split.as_ref().filter(|_| !computed.value.is_null)?)))
}

/// The searches on both sides of a cut; `None` if they cost too much.
fn searches(clock: &Clock<'_>, computed: &Computed, split: &Split, cost: f64) -> Option<[Planned; 2]> {
    let column = time_column(split)?;
    let cut = computed.cut()?;
    let time = if split.type_oid == pg_sys::DATEOID { Datum::from(i32::try_from(cut).ok()?) } else { Datum::from(cut) };
    let params = clock.params.map_or(std::ptr::null_mut(), |params| params.as_ptr());
    let search = |side| {
        // SAFETY: a number is a value of the column's type; conditions and parameters of the statement.
        let planned = unsafe { plan(&column, time, side, computed.conditions, params) }?;
        (planned.cost() <= (cost / 2.0).max(SMALL_COST)).then_some(planned)
    };
    Some([search(Side::Before)?, search(Side::Behind)?])
}
