//! Comparisons of a column with a clock expression. Of the value of such an expression the answer has no more than which rows the
//! comparison splits off. So the *canonical bound* stands for the value: the greatest value of the column, among the rows that the snapshot
//! sees, that is not above it (`col > E`, `col <= E`), or that is below it (`col >= E`, `col < E`). Two values with the same canonical bound
//! split the same rows alike. Reads trees, and indexes; keeps nothing.

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, Datum, Oid};

use super::comparisons::{self, Operator};
use super::functions::Kind;
use super::origin::origin;
use super::sight::{Sight, Tables};
use crate::pg::index_search::{self, Equality, FixedColumn, Found, Limit, Rows, TableColumn, TimeOrder};
use crate::pg::object_ids::{INTEGER_FAMILY_OID, TEXT_FAMILY_OID};
use crate::pg::tree::{Tree, child};

/// Most columns that are fixed beside one comparison (`fixed`).
pub const MOST_FIXED: usize = 4;

/// Operators `=`, each with the types of both sides, and how an index finds equal values.
pub(super) const EQUALITIES: [(u32, Oid, Kind, Equality); 6] = [
    (94, pg_sys::INT2OID, Kind::Int2, Equality { column: pg_sys::INT2OID, function: 63, family: INTEGER_FAMILY_OID }),
    (532, pg_sys::INT2OID, Kind::Int4, Equality { column: pg_sys::INT2OID, function: 158, family: INTEGER_FAMILY_OID }),
    (96, pg_sys::INT4OID, Kind::Int4, Equality { column: pg_sys::INT4OID, function: 65, family: INTEGER_FAMILY_OID }),
    (410, pg_sys::INT8OID, Kind::Int8, Equality { column: pg_sys::INT8OID, function: 467, family: INTEGER_FAMILY_OID }),
    (416, pg_sys::INT8OID, Kind::Int4, Equality { column: pg_sys::INT8OID, function: 474, family: INTEGER_FAMILY_OID }),
    (98, pg_sys::TEXTOID, Kind::Text, Equality { column: pg_sys::TEXTOID, function: 67, family: TEXT_FAMILY_OID }),
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

/// How an index finds the values of a column, of this type in the index, that are equal to a value of this kind.
fn equality_of(column: Oid, value: Kind) -> Option<Equality> {
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
    pub kind: Kind,
    /// The bound itself belongs to the values above: the canonical bound lies below it.
    pub below: bool,
    /// Columns that have one value in all rows on which the comparison decides; 0 for none.
    pub fixed: [i16; MOST_FIXED],
}

/// A comparison of a column with something.
pub struct Comparison<'t> {
    /// What it splits.
    pub split: Split,
    /// What the column is compared with.
    pub with: Tree<'t, pg_sys::Node>,
    /// The operator, with the function behind it.
    pub operator: (Oid, Oid),
    /// The column as the comparison names it.
    pub named: Tree<'t, pg_sys::Var>,
    /// The comparison itself. Not to be read.
    pub call: *mut pg_sys::Node,
}

use Operator::{Greater, GreaterOrEqual, Less, LessOrEqual};

impl<'t> Comparison<'t> {
    /// The comparison that an operator makes of a plain column of a relation and something else, which is `with`; or whatever it is, if that
    /// is not given. `query` tells the query as many levels up.
    pub fn of(
        call: Tree<'t, pg_sys::OpExpr>,
        with: Option<*mut pg_sys::Node>,
        query: impl Fn(u32) -> Option<Tree<'t, pg_sys::Query>>,
    ) -> Option<Self> {
        let (_, function, left_kind, right_kind, operator) = *comparisons::listed(call.opno)?;
        let arguments = child!(call.args)?;
        let mut items = arguments.items();
        let (Some(left), Some(right), None) = (items.next().flatten(), items.next().flatten(), items.next()) else {
            return None;
        };
        let (column, other, on_left) = match (left.as_a::<pg_sys::Var>(), right.as_a::<pg_sys::Var>()) {
            (Some(column), None) => (column, right, true),
            (None, Some(column)) => (column, left, false),
            _ => return None,
        };
        let (kind, other_kind) = if on_left { (left_kind, right_kind) } else { (right_kind, left_kind) };
        let is_fit = column.vartype == kind.type_oid() && column.varattno > 0 && kind.has_limits_of(other_kind);
        if with.is_some_and(|with| with != other.as_ptr()) || !is_fit {
            return None;
        }
        let named = column;
        let (relation, column) = origin(column, query)?;
        // `col > E` and `col <= E` split behind E; so do `E < col` and `E >= col`.
        let below =
            if on_left { matches!(operator, Less | GreaterOrEqual) } else { matches!(operator, Greater | LessOrEqual) };
        let split = Split { relation, column, kind, below, fixed: [0; MOST_FIXED] };
        let (operator, call) = ((call.opno, Oid::from(function)), call.as_node().as_ptr());
        Some(Self { split, with: other, operator, named, call })
    }

    /// May there be canonical bounds: is it a column of a table, partitioned or not? The relation is locked.
    pub fn may_have_bounds(&self) -> bool {
        index_search::may_be_searched(self.split.relation)
    }
}

impl Split {
    /// The same in a table that inherits from the relation: its columns have the same names, and may have other numbers. `None` if one is missing.
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

    /// The canonical bound, which is of the type of the column, for a value that is not NULL, where the fixed columns have these values (`None` for NULL). `None` if there is no row below.
    ///
    /// # Errors
    /// `MovingClock` if nothing tells; `OutOfMemory`.
    pub fn canonical_bound(
        &self,
        value: (Kind, Datum),
        fixed: [(Kind, Option<Datum>); MOST_FIXED],
        sight: &Sight<'_>,
    ) -> Result<Option<Datum>, Reason> {
        let order = self.kind.order().ok_or(Reason::MovingClock)?;
        let limit = self.kind.limit(value, self.below).ok_or(Reason::MovingClock)?;
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
        fixed: &[(Kind, Option<Datum>); MOST_FIXED],
        rows: Rows,
        sight: &Sight<'_>,
    ) -> Result<Option<Datum>, Reason> {
        if !sight.may_ask(self.relation) {
            return Err(Reason::MovingClock);
        }
        let mut columns = [FixedColumn::NONE; MOST_FIXED];
        for ((place, number), (kind, value)) in columns.iter_mut().zip(self.fixed).zip(fixed) {
            if number == 0 {
                break;
            }
            // Nothing is equal to NULL.
            let Some(value) = *value else { return Ok(None) };
            let equality = |column, type_oid| equality_of(column, Kind::of(type_oid)?);
            *place = FixedColumn { number, value, type_oid: kind.type_oid(), equality };
        }
        let column = self.table_column();
        // SAFETY: whoever made `sight` vouches for the snapshot. The index that is searched is of the kinds of the values.
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
        let name = pg_sys::get_attname(parent, column, true);
        if name.is_null() { 0 } else { pg_sys::get_attnum(table, name) }
    };
    (number > 0).then_some(number)
}
