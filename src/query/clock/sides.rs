//! What stands on the sides of a comparison of a column: the column itself, or an interval beside it, `now() - at >
//! interval '1 day'`, `at + interval '1 hour' < now()`. That splits the column at a time that is the interval away from
//! the clock's. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, Oid, TIMESTAMPOID, TIMESTAMPTZOID};

use super::comparisons::{self, DAY, Operator, has_limits_of, steady_offset};
use super::origin::column_with_values;
use crate::pg::tree::{Tree, child};

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

/// What stands on the sides of a comparison of a column with something.
pub(super) struct Sides<'t> {
    /// The column, or its greatest or least value.
    pub side: Tree<'t, pg_sys::Node>,
    /// The type of the column.
    pub type_oid: Oid,
    /// What the column, moved by the interval if there is one, is compared with, or subtracted from.
    pub with: Tree<'t, pg_sys::Node>,
    /// The function behind the operator that compares.
    pub operator: u32,
    /// The operator that moves the column, with the function behind it.
    pub moves: Option<(Oid, u32)>,
    /// The interval: whatever stands there.
    pub by: Option<Tree<'t, pg_sys::Node>>,
    /// Where it stands.
    pub shift: Shift,
    /// What the comparison says of the column, if that stood on the left.
    pub says: Operator,
}

/// Operators that compare intervals, each with the function behind it: interval_lt, interval_le, interval_gt,
/// interval_ge.
const OF_INTERVALS: [(u32, u32, Operator); 4] = [
    (1332, 1164, Operator::Less),
    (1333, 1165, Operator::LessOrEqual),
    (1334, 1167, Operator::Greater),
    (1335, 1166, Operator::GreaterOrEqual),
];

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

impl<'t> Sides<'t> {
    /// The sides of a comparison of a column, or of its greatest or least value, with anything.
    pub(super) fn of(call: Tree<'t, pg_sys::OpExpr>) -> Option<Self> {
        Self::plain(call).or_else(|| Self::shifted(call))
    }

    /// The column itself, and something else.
    fn plain(call: Tree<'t, pg_sys::OpExpr>) -> Option<Self> {
        let (left, right) = both(call)?;
        let (_, operator, left_type, right_type, says) = *comparisons::listed(call.opno)?;
        let (side, column, with, type_oid, other_type, says) =
            match (column_with_values(left), column_with_values(right)) {
                (Some(column), None) => (left, column, right, left_type, right_type, says),
                (None, Some(column)) => (right, column, left, right_type, left_type, says.turned()),
                _ => return None,
            };
        let is_fit = column.vartype == type_oid && has_limits_of(type_oid, other_type);
        is_fit.then_some(Self { side, type_oid, with, operator, moves: None, by: None, shift: Shift::None, says })
    }

    /// The column and an interval, and the time; or the time without the column, and an interval.
    pub(super) fn shifted(call: Tree<'t, pg_sys::OpExpr>) -> Option<Self> {
        let (left, right) = both(call)?;
        let of_intervals = OF_INTERVALS.iter().find(|(listed, ..)| *listed == call.opno.to_u32());
        if let Some((_, operator, says)) = of_intervals {
            // The later the column, the shorter the difference.
            return Self::difference(left, right, *operator, says.turned())
                .or_else(|| Self::difference(right, left, *operator, *says));
        }
        let (_, operator, left_type, right_type, says) = *comparisons::listed(call.opno)?;
        Self::moved(left, (right, right_type), operator, says).filter(|found| found.type_oid == left_type).or_else(
            || {
                let found = Self::moved(right, (left, left_type), operator, says.turned());
                found.filter(|found| found.type_oid == right_type)
            },
        )
    }

    /// `clock - column` beside an interval.
    fn difference(
        difference: Tree<'t, pg_sys::Node>,
        interval: Tree<'t, pg_sys::Node>,
        operator: u32,
        says: Operator,
    ) -> Option<Self> {
        let call = difference.as_a::<pg_sys::OpExpr>()?;
        let (_, function, type_oid) = *DIFFERENCES.iter().find(|(listed, ..)| *listed == call.opno.to_u32())?;
        let (with, side) = both(call)?;
        column_with_values(side).filter(|column| column.vartype == type_oid)?;
        let moves = Some((call.opno, function));
        Some(Self { side, type_oid, with, operator, moves, by: Some(interval), shift: Shift::Other, says })
    }

    /// `column + interval`, or `column - interval`, beside something of a type.
    fn moved(
        moved: Tree<'t, pg_sys::Node>,
        (with, other_type): (Tree<'t, pg_sys::Node>, Oid),
        operator: u32,
        says: Operator,
    ) -> Option<Self> {
        let call = moved.as_a::<pg_sys::OpExpr>()?;
        let (_, function, type_oid, shift) = *MOVES.iter().find(|(listed, ..)| *listed == call.opno.to_u32())?;
        let (side, by) = both(call)?;
        column_with_values(side).filter(|column| column.vartype == type_oid && has_limits_of(type_oid, other_type))?;
        let moves = Some((call.opno, function));
        Some(Self { side, type_oid, with, operator, moves, by: Some(by), shift, says })
    }
}

/// Both arguments of a call.
fn both(call: Tree<'_, pg_sys::OpExpr>) -> Option<(Tree<'_, pg_sys::Node>, Tree<'_, pg_sys::Node>)> {
    let mut items = child!(call.args)?.items();
    match (items.next().flatten(), items.next().flatten(), items.next()) {
        (Some(left), Some(right), None) => Some((left, right)),
        _ => None,
    }
}
