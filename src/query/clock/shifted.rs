//! Comparisons in which an interval stands beside the column: `now() - at > interval '1 day'`, `at + interval '1 hour'
//! < now()`. They split the column at a time that is the interval away from the clock's. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, Datum, Oid, TIMESTAMPOID, TIMESTAMPTZOID};

use super::comparisons::{DAY, Operator, steady_offset};
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
    pub(super) fn apply(self, type_oid: Oid, limit: Datum, by: &pg_sys::Interval) -> Option<Datum> {
        let days = i64::from(by.day).checked_add(if self == Self::Other { i64::from(by.month) * 30 } else { 0 })?;
        let length = days.checked_mul(DAY)?.checked_add(by.time)?;
        let limit = limit.value() as i64;
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
        Some(Datum::from(time))
    }
}

/// Longest interval over which an offset is looked at, in steps of four days.
const MOST_STEPS: i64 = 100;

/// A comparison with an interval beside the column.
pub(super) struct Shifted<'t> {
    /// Where it stands.
    pub shift: Shift,
    /// The column, or its greatest or least value.
    pub side: Tree<'t, pg_sys::Node>,
    /// What the column, moved by the interval, is compared with, or subtracted from.
    pub with: Tree<'t, pg_sys::Node>,
    /// The interval: whatever stands there.
    pub by: Tree<'t, pg_sys::Node>,
    /// What the comparison says of the column, if that stood on the left.
    pub says: Operator,
    /// The operator that moves the column, with the function behind it.
    pub moves: (pg_sys::Oid, u32),
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

/// What an operator that compares intervals says, and the function behind it.
pub(super) fn of_intervals(operator: pg_sys::Oid) -> Option<(u32, Operator)> {
    OF_INTERVALS.iter().find(|(listed, ..)| *listed == operator.to_u32()).map(|(_, function, says)| (*function, *says))
}

impl<'t> Shifted<'t> {
    /// `clock - column` beside an interval, on the left of the operator or not; with the type of the column.
    pub(super) fn difference(
        difference: Tree<'t, pg_sys::Node>,
        interval: Tree<'t, pg_sys::Node>,
        says: Operator,
        on_left: bool,
    ) -> Option<(Self, Oid)> {
        let call = difference.as_a::<pg_sys::OpExpr>()?;
        let (_, function, type_oid) = *DIFFERENCES.iter().find(|(listed, ..)| *listed == call.opno.to_u32())?;
        let (with, side) = both(call)?;
        column_with_values(side).filter(|column| column.vartype == type_oid)?;
        // The later the column, the shorter the difference.
        let says = if on_left { says.turned() } else { says };
        let moves = (call.opno, function);
        Some((Self { shift: Shift::Other, side, with, by: interval, says, moves }, type_oid))
    }

    /// `column + interval`, or `column - interval`, beside something, on the left of the operator or not; with the type
    /// of the column.
    pub(super) fn moved(
        moved: Tree<'t, pg_sys::Node>,
        with: Tree<'t, pg_sys::Node>,
        says: Operator,
        on_left: bool,
    ) -> Option<(Self, Oid)> {
        let call = moved.as_a::<pg_sys::OpExpr>()?;
        let (_, function, type_oid, shift) = *MOVES.iter().find(|(listed, ..)| *listed == call.opno.to_u32())?;
        let (side, by) = both(call)?;
        column_with_values(side).filter(|column| column.vartype == type_oid)?;
        let says = if on_left { says } else { says.turned() };
        let moves = (call.opno, function);
        Some((Self { shift, side, with, by, says, moves }, type_oid))
    }
}

/// Both arguments of a call.
pub(super) fn both(call: Tree<'_, pg_sys::OpExpr>) -> Option<(Tree<'_, pg_sys::Node>, Tree<'_, pg_sys::Node>)> {
    let mut items = child!(call.args)?.items();
    match (items.next().flatten(), items.next().flatten(), items.next()) {
        (Some(left), Some(right), None) => Some((left, right)),
        _ => None,
    }
}
