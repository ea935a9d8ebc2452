//! Comparisons of a column with a clock expression, and where the value of that cuts the values of the column. On one
//! side stands the column itself, or an interval beside it: `now() - at > interval '1 day'`, `at + interval '1 hour' <
//! now()`. That splits the column at a time that is the interval away from the clock's. So does what compares a number
//! that tells how long the difference is (`lengths`). Reads trees; keeps nothing.

use pgrx::pg_sys::{self, Datum, INTERVALOID, Oid, TIMESTAMPOID, TIMESTAMPTZOID};

use super::expression::{both, closed};
use super::lengths::{Length, OF_NUMBERS};
use super::origin::{Origin, column_with_values, origin};
use super::time_operators::{self, DAY, Operator, has_limits_of, last_up_to, steady_offset};
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
    /// The interval that the column is away from that, or the number that its length is compared with, if there is one.
    /// It does not ask for the time, nor does what the length is divided by.
    pub by: Option<Tree<'t, pg_sys::Node>>,
    /// The number that is compared, if it is the length of a difference.
    pub length: Option<Length<'t>>,
    /// The function that takes a length or an age, if there is one.
    pub function: Option<Oid>,
    /// The operators, each with the function behind it: the one that compares, the one that moves the column, and the
    /// one that divides a length.
    pub operators: [Option<(Oid, u32)>; 3],
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
        let (left, right) = both(child!(call.args))?;
        Self::of_sides(call, (left, right), false, &is_clock, queries)
            .or_else(|| Self::of_sides(call, (right, left), true, &is_clock, queries))
    }

    /// As `of`, with the column in the first of both sides. They are `turned` if that is the right-hand one.
    fn of_sides(
        call: Tree<'t, pg_sys::OpExpr>,
        (one, other): (Tree<'t, pg_sys::Node>, Tree<'t, pg_sys::Node>),
        turned: bool,
        is_clock: impl Fn(Tree<'t, pg_sys::Node>) -> bool,
        queries: &Enclosing<'t>,
    ) -> Option<Self> {
        let sides = Sides::of_difference(call, one, other)
            .or_else(|| Sides::of_length(call, one, other))
            .or_else(|| Sides::of_times(call, one, other, turned))?;
        let Sides { column: side, type_oid, with, by, shift, length, function, compares, says, moves } = sides;
        let is_known = |by: &Tree<'t, pg_sys::Node>| closed(*by).is_some_and(|found| !found.asks);
        let divided = length.as_ref().and_then(|length| length.divided);
        let var = column_with_values(side).filter(|var| var.vartype == type_oid && var.varattno > 0)?;
        if !is_clock(with) || ![by, divided.map(|(_, by)| by)].iter().flatten().all(is_known) {
            return None;
        }
        // A length turns at one that belongs to the greater ones, which earlier columns have.
        let says = if length.is_some() {
            Operator::LessOrEqual
        } else if turned {
            says.turned()
        } else {
            says
        };
        let Origin { relation, column, is_extreme, is_handed_on } = origin(side, *queries)?;
        let is_plain = !is_extreme && !is_handed_on && var.varlevelsup == 0;
        Some(Self {
            split: Split { relation, column, type_oid, below: says.splits_below(), shift },
            with,
            by,
            length,
            function,
            operators: [Some((call.opno, compares)), moves, divided.map(|(operator, _)| operator)],
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

/// Both sides of a comparison, by what its operators are.
struct Sides<'t> {
    column: Tree<'t, pg_sys::Node>,
    type_oid: Oid,
    with: Tree<'t, pg_sys::Node>,
    by: Option<Tree<'t, pg_sys::Node>>,
    shift: Shift,
    length: Option<Length<'t>>,
    function: Option<Oid>,
    /// The function behind the operator that compares.
    compares: u32,
    /// What it says of the column.
    says: Operator,
    /// The operator that moves the column, with the function behind it.
    moves: Option<(Oid, u32)>,
}

impl<'t> Sides<'t> {
    /// A difference or an age, compared with an interval.
    fn of_difference(
        call: Tree<'t, pg_sys::OpExpr>,
        one: Tree<'t, pg_sys::Node>,
        by: Tree<'t, pg_sys::Node>,
    ) -> Option<Self> {
        let (compares, of, _, says) = time_operators::listed(call.opno)?;
        if of != INTERVALOID {
            return None;
        }
        let sides = match one.as_a::<pg_sys::FuncExpr>() {
            None => Self::subtracted(one.as_a()?, by)?,
            Some(age) => {
                let (_, type_oid) = *AGES.iter().find(|(listed, _)| *listed == age.funcid.to_u32())?;
                let (with, column) = both(child!(age.args))?;
                let (by, function) = (Some(by), Some(age.funcid));
                Self {
                    column,
                    type_oid,
                    with,
                    by,
                    shift: Shift::Age,
                    length: None,
                    function,
                    compares,
                    says,
                    moves: None,
                }
            }
        };
        // The later the column, the shorter the difference.
        Some(Self { compares, says: says.turned(), ..sides })
    }

    /// A number that tells how long a difference is, compared with another one.
    fn of_length(
        call: Tree<'t, pg_sys::OpExpr>,
        one: Tree<'t, pg_sys::Node>,
        by: Tree<'t, pg_sys::Node>,
    ) -> Option<Self> {
        let (_, compares) = *OF_NUMBERS.iter().find(|(listed, _)| *listed == call.opno.to_u32())?;
        let length = Length::of(one)?;
        let sides = Self::subtracted(length.difference, by)?;
        Some(Self { function: Some(length.function), length: Some(length), compares, ..sides })
    }

    /// The sides of a comparison of a difference, without what compares it.
    fn subtracted(difference: Tree<'t, pg_sys::OpExpr>, by: Tree<'t, pg_sys::Node>) -> Option<Self> {
        let (_, moves, type_oid) = *DIFFERENCES.iter().find(|(listed, ..)| *listed == difference.opno.to_u32())?;
        let (with, column) = both(child!(difference.args))?;
        let moves = Some((difference.opno, moves));
        let (by, shift, says) = (Some(by), Shift::Other, Operator::LessOrEqual);
        Some(Self { column, type_oid, with, by, shift, length: None, function: None, compares: 0, says, moves })
    }

    /// A column, or one that is moved, compared with a time.
    fn of_times(
        call: Tree<'t, pg_sys::OpExpr>,
        one: Tree<'t, pg_sys::Node>,
        with: Tree<'t, pg_sys::Node>,
        turned: bool,
    ) -> Option<Self> {
        let (compares, left, right, says) = time_operators::listed(call.opno)?;
        let (type_oid, other_type) = if turned { (right, left) } else { (left, right) };
        if left == INTERVALOID || !has_limits_of(type_oid, other_type) {
            return None;
        }
        let (column, by, shift, moves) = match one.as_a::<pg_sys::OpExpr>() {
            None => (one, None, Shift::None, None),
            Some(inner) => {
                let (_, moves, of, shift) = *MOVES.iter().find(|(listed, ..)| *listed == inner.opno.to_u32())?;
                let (side, by) = both(child!(inner.args)).filter(|_| of == type_oid)?;
                (side, Some(by), shift, Some((inner.opno, moves)))
            }
        };
        Some(Self { column, type_oid, with, by, shift, length: None, function: None, compares, says, moves })
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
    /// On the other side: `age(clock, column)` is compared with it.
    Age,
    /// It is added to the column.
    Added,
    /// It is subtracted from the column.
    Subtracted,
}

impl Shift {
    /// Returns true if the interval is compared, and not added.
    fn compares(self) -> bool {
        matches!(self, Self::Other | Self::Age)
    }

    /// The last time before the cut of a column of this type that is `by` an interval away from `limit`, the last time
    /// before the clock's; `None` if there is no telling.
    ///
    /// An interval is compared as the server compares it, with 30 days in a month and 24 hours in a day. A sum has as
    /// many days as the calendar has, so there must be no months, and, if the column has a time zone, its offset must
    /// be the same from one time to the other.
    ///
    /// So it must be for an age, which is counted in local time. Up to 28 days an age is the difference, and there it
    /// is shorter than any month. Beyond, a month of 31 days is compared as one of 30, and the comparison turns twice.
    pub(super) fn apply(self, type_oid: Oid, limit: i64, by: &pg_sys::Interval) -> Option<i64> {
        let days = i64::from(by.day).checked_add(if self.compares() { i64::from(by.month) * 30 } else { 0 })?;
        let length = days.checked_mul(DAY)?.checked_add(by.time)?;
        let time = if self == Self::Subtracted { limit.checked_add(length)? } else { limit.checked_sub(length)? };
        // Times within it are so far from the ends of the type that no difference overflows.
        const FARTHEST: u64 = i64::MAX as u64 / 4;
        if limit.unsigned_abs() > FARTHEST || time.unsigned_abs() > FARTHEST {
            return None;
        }
        // The server subtracts the last timestamps from one before 2000 without noticing that the difference overflows
        // (15), or raises.
        if self == Self::Other && limit < 0 {
            return None;
        }
        if self == Self::Age && !(0..28 * DAY).contains(&length) {
            return None;
        }
        if self != Self::Other {
            let is_steady = || {
                // The server adds the days first, then the rest. The steps leave no day out.
                let rest =
                    if self == Self::Subtracted { limit.checked_add(by.time) } else { limit.checked_sub(by.time) }?;
                let (first, last) = (limit.min(time).min(rest), limit.max(time).max(rest));
                let steps = (last - first) / (4 * DAY) + 1;
                let offset = steady_offset(first)?;
                let same = |step: i64| steady_offset((first + step * 4 * DAY).min(last)) == Some(offset);
                (steps <= MOST_STEPS && (0..=steps).all(same)).then_some(())
            };
            let has_days = by.day != 0 || self == Self::Age;
            if (by.month != 0 && !self.compares()) || (type_oid == TIMESTAMPTZOID && has_days && is_steady().is_none())
            {
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

/// age(timestamptz, timestamptz) and age(timestamp, timestamp), with the type.
const AGES: [(u32, Oid); 2] = [(1199, TIMESTAMPTZOID), (2058, TIMESTAMPOID)];

/// `+` and `-` of a timestamp and an interval: timestamptz_pl_interval, timestamptz_mi_interval, timestamp_pl_interval,
/// timestamp_mi_interval.
const MOVES: [(u32, u32, Oid, Shift); 4] = [
    (1327, 1189, TIMESTAMPTZOID, Shift::Added),
    (1329, 1190, TIMESTAMPTZOID, Shift::Subtracted),
    (2066, 2032, TIMESTAMPOID, Shift::Added),
    (2068, 2033, TIMESTAMPOID, Shift::Subtracted),
];
