//! Comparisons of a column with a clock expression, and where the value of that cuts the values of the column. On one
//! side stands the column itself, or an interval beside it: `now() - at > interval '1 day'`, `at + interval '1 hour' <
//! now()`. That splits the column at a time that is the interval away from the clock's. So does what compares a number
//! that tells how long the difference is (`lengths`). Reads trees; keeps nothing.

use pgrx::pg_sys::{self, Datum, INTERVALOID, Oid, TIMESTAMPTZOID};

use super::expression::{both, closed, type_of};
use super::lengths::Length;
use super::origin::{Origin, column_with_values, origin};
use super::time_operators::{
    Arithmetic, DAY, Operator, comparing, computing, has_limits_of, last_up_to, steady_offset,
};
use crate::pg::compat;
use crate::pg::tree::{Tree, child};
use crate::query::enclosing::Enclosing;
use crate::query::function_table::has;
use crate::query::function_table::properties::AGE;

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
    /// The functions that are called: those that compare, that move or subtract the column, that take a length, and
    /// that divide it.
    pub functions: [Option<Oid>; 4],
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
        let Sides { column: side, type_oid, with, by, shift, length, compares, says, moves } = sides;
        let is_known = |by: &Tree<'t, pg_sys::Node>| closed(*by).is_some_and(|found| !found.asks);
        let divided = length.as_ref().and_then(|length| length.divided);
        let takes = length.as_ref().map(|length| length.function);
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
            functions: [Some(compares), moves, takes, divided.map(|(function, _)| function)],
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
    /// The function behind the operator that compares.
    compares: Oid,
    /// What it says of the column.
    says: Operator,
    /// The function that moves the column, or takes it from the clock.
    moves: Option<Oid>,
}

impl<'t> Sides<'t> {
    /// A difference or an age, compared with an interval.
    fn of_difference(
        call: Tree<'t, pg_sys::OpExpr>,
        one: Tree<'t, pg_sys::Node>,
        by: Tree<'t, pg_sys::Node>,
    ) -> Option<Self> {
        let (says, _, _, compares) = comparing(call).filter(|(_, of, ..)| *of == INTERVALOID)?;
        let sides = match one.as_a::<pg_sys::FuncExpr>() {
            None => Self::subtracted(one.as_a()?, by, compares)?,
            Some(age) => {
                let (with, column) = both(child!(age.args)).filter(|_| has(age.funcid, AGE))?;
                let (type_oid, by, moves) = (type_of(column), Some(by), Some(age.funcid));
                Self { column, type_oid, with, by, shift: Shift::Age, length: None, compares, says, moves }
            }
        };
        // The later the column, the shorter the difference.
        Some(Self { says: says.turned(), ..sides })
    }

    /// A number that tells how long a difference is, compared with another one.
    fn of_length(
        call: Tree<'t, pg_sys::OpExpr>,
        one: Tree<'t, pg_sys::Node>,
        by: Tree<'t, pg_sys::Node>,
    ) -> Option<Self> {
        let (_, _, _, compares) = comparing(call)?;
        let length = Length::of(one)?;
        let sides = Self::subtracted(length.difference, by, compares)?;
        Some(Self { length: Some(length), ..sides })
    }

    /// The sides of a comparison of a difference.
    fn subtracted(difference: Tree<'t, pg_sys::OpExpr>, by: Tree<'t, pg_sys::Node>, compares: Oid) -> Option<Self> {
        let (_, type_oid, moves) = computing(difference).filter(|(gives, ..)| *gives == Arithmetic::Difference)?;
        let (with, column) = both(child!(difference.args))?;
        let (by, shift, says, moves) = (Some(by), Shift::Other, Operator::LessOrEqual, Some(moves));
        Some(Self { column, type_oid, with, by, shift, length: None, compares, says, moves })
    }

    /// A column, or one that is moved, compared with a time.
    fn of_times(
        call: Tree<'t, pg_sys::OpExpr>,
        one: Tree<'t, pg_sys::Node>,
        with: Tree<'t, pg_sys::Node>,
        turned: bool,
    ) -> Option<Self> {
        let (says, left, right, compares) = comparing(call)?;
        let (type_oid, other_type) = if turned { (right, left) } else { (left, right) };
        if !has_limits_of(type_oid, other_type) {
            return None;
        }
        let (column, by, shift, moves) = match one.as_a::<pg_sys::OpExpr>() {
            None => (one, None, Shift::None, None),
            Some(inner) => {
                let (gives, of, moves) = computing(inner)?;
                let shift = match gives {
                    Arithmetic::Sum => Shift::Added,
                    Arithmetic::Earlier => Shift::Subtracted,
                    Arithmetic::Difference | Arithmetic::Quotient => return None,
                };
                let (side, by) = both(child!(inner.args)).filter(|_| of == type_oid)?;
                (side, Some(by), shift, Some(moves))
            }
        };
        Some(Self { column, type_oid, with, by, shift, length: None, compares, says, moves })
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
