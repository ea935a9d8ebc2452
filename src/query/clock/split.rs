//! Comparisons of a column with a clock expression, and where the value of that cuts the values of the column. Reads
//! trees; keeps nothing.

use pgrx::pg_sys::{self, Datum, Oid};

use super::comparisons::last_up_to;
use super::origin::{Origin, column_with_values, origin};
use super::sides::{Shift, Sides};
use crate::pg::compat;
use crate::pg::tree::Tree;

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

/// A comparison of a column with something.
pub struct Comparison<'t> {
    /// What it splits.
    pub split: Split,
    /// What the column is compared with.
    pub with: Tree<'t, pg_sys::Node>,
    /// The interval that the column is away from that, if there is one: whatever stands there (`has_known_interval`).
    pub by: Option<Tree<'t, pg_sys::Node>>,
    /// The operators, each with the function behind it: the one that compares, and the one that moves the column.
    pub operators: [Option<(Oid, Oid)>; 2],
    /// The greatest or least value of the column stands for it.
    pub is_extreme: bool,
}

impl<'t> Comparison<'t> {
    /// The comparison that an operator makes of a plain column of a relation and something else, which is `with`; or
    /// whatever it is, if that is not given. `query` tells the query as many levels up.
    pub fn of(
        call: Tree<'t, pg_sys::OpExpr>,
        with: Option<*mut pg_sys::Node>,
        query: impl Fn(u32) -> Option<Tree<'t, pg_sys::Query>>,
    ) -> Option<Self> {
        let found = Sides::of(call)?;
        let column = column_with_values(found.side)?;
        if with.is_some_and(|with| with != found.with.as_ptr()) || column.varattno <= 0 {
            return None;
        }
        let Sides { side, type_oid, with, operator, moves, by, shift, says } = found;
        let Origin { relation, column, is_extreme } = origin(side, query)?;
        let split = Split { relation, column, type_oid, below: says.splits_below(), shift };
        let operators =
            [Some((call.opno, Oid::from(operator))), moves.map(|(operator, code)| (operator, Oid::from(code)))];
        Some(Self { split, with, by, operators, is_extreme })
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
