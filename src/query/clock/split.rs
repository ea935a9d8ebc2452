//! Comparisons of a column with a clock expression. Of the value of such an expression the answer has no more than
//! which rows the comparison splits off. So the *canonical bound* stands for the value: the greatest value of the
//! column, among the rows that the snapshot sees, that is not above it (`col > E`, `col <= E`), or that is below it
//! (`col >= E`, `col < E`). Two values with the same canonical bound split the same rows alike. Reads trees, and
//! indexes; keeps nothing.

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, Datum, INT2OID, INT4OID, INT8OID, Oid, TEXTOID};

use super::comparisons::{limit_of, order_of};
use super::origin::{Origin, column_with_values, origin};
use super::sides::{Shift, Sides};
use super::sight::{Sight, Tables};
use crate::pg::compat;
use crate::pg::index_search::{self, Equality, FixedColumn, Found, Limit, Rows, TableColumn, TimeOrder};
use crate::pg::object_ids::{INTEGER_FAMILY_OID, TEXT_FAMILY_OID};
use crate::pg::tree::Tree;

/// Most columns that are fixed beside one comparison (`fixed`).
pub const MOST_FIXED: usize = 4;

/// Operators `=`, each with the types of both sides, and how an index finds equal values.
pub(super) const EQUALITIES: [(u32, Oid, Oid, Equality); 6] = [
    (94, INT2OID, INT2OID, Equality { column: INT2OID, function: 63, family: INTEGER_FAMILY_OID }),
    (532, INT2OID, INT4OID, Equality { column: INT2OID, function: 158, family: INTEGER_FAMILY_OID }),
    (96, INT4OID, INT4OID, Equality { column: INT4OID, function: 65, family: INTEGER_FAMILY_OID }),
    (410, INT8OID, INT8OID, Equality { column: INT8OID, function: 467, family: INTEGER_FAMILY_OID }),
    (416, INT8OID, INT4OID, Equality { column: INT8OID, function: 474, family: INTEGER_FAMILY_OID }),
    (98, TEXTOID, TEXTOID, Equality { column: TEXTOID, function: 67, family: TEXT_FAMILY_OID }),
];

/// Columns with the constants or parameters that they are compared with. Plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fixed {
    /// Their numbers; 0 for none.
    pub columns: [i16; MOST_FIXED],
    /// What they are equal to.
    pub values: [*mut pg_sys::Node; MOST_FIXED],
}

impl Fixed {
    /// There are none.
    pub const NONE: Self = Self { columns: [0; MOST_FIXED], values: [std::ptr::null_mut(); MOST_FIXED] };
}

/// How an index finds the values of a column, of this type in the index, that are equal to a value of this type.
fn equality_of(column: Oid, value: Oid) -> Option<Equality> {
    EQUALITIES.iter().find(|(_, left, right, _)| *left == column && *right == value).map(|found| found.3)
}

/// What a comparison splits: the values of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    /// The relation.
    pub relation: Oid,
    /// The number of the column.
    pub column: i16,
    /// Its type.
    pub type_oid: Oid,
    /// The bound itself belongs to the values above: the canonical bound lies below it.
    pub below: bool,
    /// Where an interval stands that the column is away from the value.
    pub shift: Shift,
    /// Columns that have one value in all rows on which the comparison decides; 0 for none.
    pub fixed: [i16; MOST_FIXED],
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
    /// The column as the comparison names it.
    pub named: Tree<'t, pg_sys::Var>,
    /// The greatest or least value of the column stands for it.
    pub is_extreme: bool,
    /// The comparison itself. Not to be read.
    pub call: *mut pg_sys::Node,
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
        let named = column_with_values(found.side)?;
        if with.is_some_and(|with| with != found.with.as_ptr()) || named.varattno <= 0 {
            return None;
        }
        let Sides { side, type_oid, with, operator, moves, by, shift, says } = found;
        let Origin { relation, column, is_extreme } = origin(side, query)?;
        let split = Split { relation, column, type_oid, below: says.splits_below(), shift, fixed: [0; MOST_FIXED] };
        let operators =
            [Some((call.opno, Oid::from(operator))), moves.map(|(operator, code)| (operator, Oid::from(code)))];
        Some(Self { split, with, by, operators, named, is_extreme, call: call.as_node().as_ptr() })
    }

    /// Returns true if there may be canonical bounds: it is a column of a table that rows have a value for. The
    /// relation is locked.
    pub fn may_have_bounds(&self) -> bool {
        index_search::may_be_searched(self.split.relation)
            && !compat::is_virtual_column(self.split.relation, self.split.column)
    }
}

impl Split {
    /// The same in a table that inherits from the relation: its columns have the same names, and may have other
    /// numbers. `None` if one is missing.
    pub fn in_table(&self, table: Oid) -> Option<Self> {
        if table == self.relation {
            return Some(*self);
        }
        let mut fixed = [0; MOST_FIXED];
        for (place, column) in fixed.iter_mut().zip(self.fixed).filter(|(_, column)| *column != 0) {
            *place = counterpart(self.relation, column, table)?;
        }
        Some(Self { relation: table, column: counterpart(self.relation, self.column, table)?, fixed, ..*self })
    }

    fn table_column(&self) -> TableColumn {
        TableColumn { table: self.relation, number: self.column }
    }

    /// The canonical bound, which is of the type of the column, for a value that is not NULL, from which the column is
    /// away `by` an interval, where the fixed columns have these values (`None` for NULL). `None` if there is no row
    /// below.
    ///
    /// # Errors
    /// `MovingClock` if nothing tells; `OutOfMemory`.
    pub fn canonical_bound(
        &self,
        value: (Oid, Datum),
        by: Option<&pg_sys::Interval>,
        fixed: [(Oid, Option<Datum>); MOST_FIXED],
        sight: &Sight<'_>,
    ) -> Result<Option<Datum>, Reason> {
        let order = order_of(self.type_oid).ok_or(Reason::MovingClock)?;
        let mut limit = limit_of(self.type_oid, value, self.below).ok_or(Reason::MovingClock)?;
        if self.shift != Shift::None {
            let moved = by.and_then(|by| self.shift.apply(self.type_oid, limit.value, by));
            limit.value = moved.ok_or(Reason::MovingClock)?;
        }
        match sight.tables(self.relation)? {
            Tables::Itself => self.greatest(order, limit, &fixed, Rows::All, sight),
            Tables::Several(tables) => {
                let mut greatest: Option<Datum> = None;
                for table in tables {
                    let split = self.in_table(table).ok_or(Reason::MovingClock)?;
                    let found = split.greatest(order, limit, &fixed, Rows::Own, sight)?;
                    greatest = greatest.into_iter().chain(found).max_by_key(|value| order.rank(*value));
                }
                Ok(greatest)
            }
        }
    }

    /// The greatest value of the column in rows of the table, up to a limit.
    ///
    /// # Errors
    /// As `canonical_bound`.
    fn greatest(
        &self,
        order: TimeOrder,
        limit: Limit,
        fixed: &[(Oid, Option<Datum>); MOST_FIXED],
        rows: Rows,
        sight: &Sight<'_>,
    ) -> Result<Option<Datum>, Reason> {
        if !sight.may_ask(self.relation) || compat::is_virtual_column(self.relation, self.column) {
            return Err(Reason::MovingClock);
        }
        let mut columns = [FixedColumn::NONE; MOST_FIXED];
        for ((place, number), (type_oid, value)) in columns.iter_mut().zip(self.fixed).zip(fixed) {
            if number == 0 {
                break;
            }
            // Nothing is equal to NULL.
            let Some(value) = *value else { return Ok(None) };
            *place = FixedColumn { number, value, type_oid: *type_oid, equality: equality_of };
        }
        let column = self.table_column();
        // SAFETY: whoever made `sight` vouches for the snapshot. The index that is searched is of the types of the
        // values.
        let mut found = unsafe { index_search::greatest(column, rows, &columns, order, limit, sight.snapshot) };
        if let (Found::Unknown, Some(unindexed)) = (found, sight.unindexed) {
            found = unindexed.greatest(column, rows, order, limit)?;
        }
        match found {
            Found::Value(bound) => Ok(Some(bound)),
            Found::Nothing => Ok(None),
            Found::Unknown => Err(Reason::MovingClock),
        }
    }
}

/// The number of the column of a table that has the name of a column of its parent.
fn counterpart(parent: Oid, column: i16, table: Oid) -> Option<i16> {
    // SAFETY: catalog searches about locked relations; null, or 0, if there is none.
    let number = unsafe {
        let name = kept!(pg_sys::get_attname(parent, column, true));
        if name.is_null() { 0 } else { kept!(pg_sys::get_attnum(table, name)) }
    };
    (number > 0).then_some(number)
}
