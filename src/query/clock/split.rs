//! Comparisons of a column with a clock expression, and where the value of that cuts the values of the column. On one
//! side stands the column itself, or an interval beside it: `now() - at > interval '1 day'`, `at + interval '1 hour' <
//! now()`. That splits the column at a time that is the interval away from the clock's. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, Datum, INTERVALOID, Oid, TIMESTAMPOID, TIMESTAMPTZOID};

use super::comparisons::{self, DAY, has_limits_of, last_up_to, steady_offset};
use super::expression::closed;
use super::origin::{Origin, column_with_values, origin};
use crate::pg::compat;
use crate::pg::tree::{Tree, child};
use crate::query::enclosing::Enclosing;

/// What a comparison splits: the values of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    /// The relation.
    pub relation: Oid,
    /// The number of the column.
    pub column: i16,
    /// Its type.
    pub type_oid: Oid,
    /// The time itself belongs to the values behind the cut.
    pub below: bool,
    /// Where an interval stands that the column is away from the value.
    pub shift: Shift,
}

/// A comparison of a column with a clock expression.
pub struct Comparison<'t> {
    /// What it splits.
    pub split: Split,
    /// What the column is compared with.
    pub with: Tree<'t, pg_sys::Node>,
    /// The interval that the column is away from that, if there is one. It does not ask for the time.
    pub by: Option<Tree<'t, pg_sys::Node>>,
    /// The operators, each with the function behind it: the one that compares, and the one that moves the column.
    pub operators: [Option<(Oid, u32)>; 2],
    /// The greatest or least value of the column stands for it.
    pub is_extreme: bool,
    /// The number of the table of the innermost query that has the column; 0 if it is handed on.
    pub(super) table: i32,
}

impl<'t> Comparison<'t> {
    /// The comparison that an operator makes of a plain column of a relation and what `is_clock`. `queries` are those
    /// around the call.
    pub fn of(
        call: Tree<'t, pg_sys::OpExpr>,
        is_clock: impl Fn(Tree<'t, pg_sys::Node>) -> bool,
        queries: &Enclosing<'t>,
    ) -> Option<Self> {
        let (left, right) = both(call)?;
        Self::of_sides(call, (left, right), false, &is_clock, queries)
            .or_else(|| Self::of_sides(call, (right, left), true, &is_clock, queries))
    }

    /// As `of`, with the column in the first of both sides, which are `turned` if that is the right one.
    fn of_sides(
        call: Tree<'t, pg_sys::OpExpr>,
        (one, other): (Tree<'t, pg_sys::Node>, Tree<'t, pg_sys::Node>),
        turned: bool,
        is_clock: impl Fn(Tree<'t, pg_sys::Node>) -> bool,
        queries: &Enclosing<'t>,
    ) -> Option<Self> {
        let (compares, left, right, says) = comparisons::listed(call.opno)?;
        let inner = one.as_a::<pg_sys::OpExpr>();
        let (says, type_oid, (side, with, by, shift), moves) = if left == INTERVALOID {
            let inner = inner?;
            let (_, moves, type_oid) = *DIFFERENCES.iter().find(|(listed, ..)| *listed == inner.opno.to_u32())?;
            let (with, side) = both(inner)?;
            // The later the column, the shorter the difference.
            (says.turned(), type_oid, (side, with, Some(other), Shift::Other), Some((inner.opno, moves)))
        } else {
            let (type_oid, other_type) = if turned { (right, left) } else { (left, right) };
            if !has_limits_of(type_oid, other_type) {
                return None;
            }
            let (sides, moves) = match inner {
                None => ((one, other, None, Shift::None), None),
                Some(inner) => {
                    let (_, moves, of, shift) = *MOVES.iter().find(|(listed, ..)| *listed == inner.opno.to_u32())?;
                    let (side, by) = both(inner).filter(|_| of == type_oid)?;
                    ((side, other, Some(by), shift), Some((inner.opno, moves)))
                }
            };
            (says, type_oid, sides, moves)
        };
        let is_known = |by| closed(by).is_some_and(|found| !found.asks);
        let var = column_with_values(side).filter(|var| var.vartype == type_oid && var.varattno > 0)?;
        if !is_clock(with) || !by.is_none_or(is_known) {
            return None;
        }
        let below = if turned { says.turned() } else { says }.splits_below();
        let Origin { relation, column, is_extreme, is_handed_on } = origin(side, *queries)?;
        let is_plain = !is_extreme && !is_handed_on && var.varlevelsup == 0;
        Some(Self {
            split: Split { relation, column, type_oid, below, shift },
            with,
            by,
            operators: [Some((call.opno, compares)), moves],
            is_extreme,
            table: if is_plain { var.varno } else { 0 },
        })
    }

    /// Returns true if gaps may be sought: it is a column of a table that rows have a value for. The relation is
    /// locked.
    pub fn may_have_gaps(&self) -> bool {
        // SAFETY: reads a catalog about a relation that the query names.
        let kind = unsafe { kept!(pg_sys::get_rel_relkind(self.split.relation)) } as u8;
        matches!(kind, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW | pg_sys::RELKIND_PARTITIONED_TABLE)
            && !compat::is_virtual_column(self.split.relation, self.split.column)
    }
}

impl Split {
    /// The cut for a value that is not NULL, from which the column is away `by` an interval. `None` if there is
    /// no telling.
    pub(super) fn cut(&self, value: (Oid, Datum), by: Option<&pg_sys::Interval>) -> Option<i64> {
        let (mut last, is_equal) = last_up_to(self.type_oid, value)?;
        if self.shift != Shift::None {
            last = self.shift.apply(self.type_oid, last, by?)?;
        }
        if self.below && is_equal { Some(last) } else { last.checked_add(1) }
    }
}

/// Where the interval stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shift {
    /// Nowhere: the column is compared with the clock.
    None,
    /// On the other side: `clock - column` is compared with it.
    Other,
    /// It is added to the column.
    Added,
    /// It is subtracted from the column.
    Subtracted,
}

impl Shift {
    /// The time at which a column of this type is split, if it is so far from this limit of it; `None` if there is no
    /// telling.
    ///
    /// An interval is compared as the server compares it, with 30 days in a month and 24 hours in a day. A sum has as
    /// many days as the calendar has, so there must be no months, and, if the column has a time zone, its offset must
    /// be the same from one time to the other.
    pub(super) fn apply(self, type_oid: Oid, limit: i64, by: &pg_sys::Interval) -> Option<i64> {
        let days = i64::from(by.day).checked_add(if self == Self::Other { i64::from(by.month) * 30 } else { 0 })?;
        let length = days.checked_mul(DAY)?.checked_add(by.time)?;
        let time = if self == Self::Subtracted { limit.checked_add(length)? } else { limit.checked_sub(length)? };
        // So far from the ends of what there is that no difference overflows.
        const FARTHEST: u64 = i64::MAX as u64 / 4;
        if limit.unsigned_abs() > FARTHEST || time.unsigned_abs() > FARTHEST {
            return None;
        }
        // The server subtracts the last timestamps from one before 2000 without noticing that the difference overflows
        // (15), or raises.
        if self == Self::Other && limit < 0 {
            return None;
        }
        if self != Self::Other {
            let is_steady = || {
                // The days are added first, then the rest. In steps that leave no day out.
                let rest =
                    if self == Self::Subtracted { limit.checked_add(by.time) } else { limit.checked_sub(by.time) }?;
                let (first, last) = (limit.min(time).min(rest), limit.max(time).max(rest));
                let steps = (last - first) / (4 * DAY) + 1;
                let offset = steady_offset(first)?;
                let same = |step: i64| steady_offset((first + step * 4 * DAY).min(last)) == Some(offset);
                (steps <= MOST_STEPS && (0..=steps).all(same)).then_some(())
            };
            if by.month != 0 || (type_oid == TIMESTAMPTZOID && by.day != 0 && is_steady().is_none()) {
                return None;
            }
        }
        Some(time)
    }
}

/// Longest interval over which an offset is looked at, in steps of four days.
const MOST_STEPS: i64 = 100;

/// `-` of two timestamps, with the function behind it and their type: timestamptz_mi, timestamp_mi.
const DIFFERENCES: [(u32, u32, Oid); 2] = [(1328, 1188, TIMESTAMPTZOID), (2067, 2031, TIMESTAMPOID)];

/// `+` and `-` of a timestamp and an interval: timestamptz_pl_interval, timestamptz_mi_interval, timestamp_pl_interval,
/// timestamp_mi_interval.
const MOVES: [(u32, u32, Oid, Shift); 4] = [
    (1327, 1189, TIMESTAMPTZOID, Shift::Added),
    (1329, 1190, TIMESTAMPTZOID, Shift::Subtracted),
    (2066, 2032, TIMESTAMPOID, Shift::Added),
    (2068, 2033, TIMESTAMPOID, Shift::Subtracted),
];

/// Both arguments of a call.
fn both(call: Tree<'_, pg_sys::OpExpr>) -> Option<(Tree<'_, pg_sys::Node>, Tree<'_, pg_sys::Node>)> {
    let mut items = child!(call.args)?.items();
    match (items.next().flatten(), items.next().flatten(), items.next()) {
        (Some(left), Some(right), None) => Some((left, right)),
        _ => None,
    }
}
