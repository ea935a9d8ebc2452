//! Comparisons of a column with a clock expression. Of the value of such an expression the answer has no more than which rows the
//! comparison splits off. So the *canonical bound* stands for the value: the greatest value of the column, among the rows that the snapshot
//! sees, that is not above it (`col > E`, `col <= E`), or that is below it (`col >= E`, `col < E`). Two values with the same canonical bound
//! split the same rows alike. Reads trees, and indexes; keeps nothing.

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, Datum, Oid};

use super::functions::Kind;
use crate::pg::index_search::{self, Equality, FixedColumn, Found, Limit, TableColumn, TimeOrder};
use crate::pg::object_ids::{INTEGER_FAMILY_OID, TEXT_FAMILY_OID};
use crate::pg::tree::{Tree, child, children};

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
    /// The type on both sides.
    pub kind: Kind,
    /// The column as the comparison names it.
    pub named: Tree<'t, pg_sys::Var>,
    /// The comparison itself. Not to be read.
    pub call: *mut pg_sys::Node,
}

/// What a column is in a comparison, if it stands on the left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

use Operator::{Greater, GreaterOrEqual, Less, LessOrEqual};

/// Operators, each with the function behind it and the type on both sides.
const OPERATORS: [(u32, u32, Kind, Operator); 12] = [
    (1095, 1087, Kind::Date, Less),
    (1096, 1088, Kind::Date, LessOrEqual),
    (1097, 1089, Kind::Date, Greater),
    (1098, 1090, Kind::Date, GreaterOrEqual),
    (2062, 2054, Kind::Timestamp, Less),
    (2063, 2055, Kind::Timestamp, LessOrEqual),
    (2064, 2057, Kind::Timestamp, Greater),
    (2065, 2056, Kind::Timestamp, GreaterOrEqual),
    (1322, 1154, Kind::TimestampTz, Less),
    (1323, 1155, Kind::TimestampTz, LessOrEqual),
    (1324, 1157, Kind::TimestampTz, Greater),
    (1325, 1156, Kind::TimestampTz, GreaterOrEqual),
];

impl Kind {
    /// How values are ordered, for a kind that is compared here.
    pub fn order(self) -> Option<TimeOrder> {
        let function = |wanted: Operator| {
            OPERATORS.iter().find(|(.., kind, operator)| *kind == self && *operator == wanted).map(|found| found.1)
        };
        Some(TimeOrder {
            type_oid: self.type_oid(),
            comparison: self.comparison()?,
            less: function(Less)?,
            less_or_equal: function(LessOrEqual)?,
        })
    }
}

impl<'t> Comparison<'t> {
    /// The comparison that an operator makes of a plain column of a relation and something else, which is `with`; or whatever it is, if that
    /// is not given. `query` tells the query as many levels up.
    pub fn of(
        call: Tree<'t, pg_sys::OpExpr>,
        with: Option<*mut pg_sys::Node>,
        query: impl Fn(u32) -> Option<Tree<'t, pg_sys::Query>>,
    ) -> Option<Self> {
        let number = call.opno.to_u32();
        let (_, function, kind, operator) = OPERATORS.iter().find(|(listed, ..)| *listed == number)?;
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
        if with.is_some_and(|with| with != other.as_ptr()) || column.vartype != kind.type_oid() || column.varattno <= 0
        {
            return None;
        }
        let named = column;
        let (relation, column) = origin(column, query(column.varlevelsup)?)?;
        // `col > E` and `col <= E` split behind E; so do `E < col` and `E >= col`.
        let below =
            if on_left { matches!(operator, Less | GreaterOrEqual) } else { matches!(operator, Greater | LessOrEqual) };
        let split = Split { relation, column, below, fixed: [0; MOST_FIXED] };
        let (operator, call) = ((call.opno, Oid::from(*function)), call.as_node().as_ptr());
        Some(Self { split, with: other, operator, kind: *kind, named, call })
    }

    /// Is there an index by which canonical bounds are found, in which such columns may stand before the one that is compared? The relation is locked.
    pub fn has_index(&self, fixed: &Fixed) -> bool {
        let order = self.kind.order();
        order.is_some_and(|order| index_search::has_index(self.split.table_column(), &fixed.columns, order))
    }

    /// Would an index help that begins with the column? The relation is locked.
    pub fn may_have_index(&self) -> bool {
        index_search::may_be_searched(self.split.relation)
    }
}

/// The relation, and the number of its column, that all values of a column come from which a query names; NULLs aside, which a join may add. The
/// query may name it through sub-queries, and views, which hand it on as it is.
fn origin<'t>(column: Tree<'t, pg_sys::Var>, query: Tree<'t, pg_sys::Query>) -> Option<(Oid, i16)> {
    let (mut column, mut query) = (column, query);
    loop {
        let place = usize::try_from(column.varno).ok()?.checked_sub(1)?;
        let entry = children!(query.rtable as RangeTblEntry).nth(place)?;
        match entry.rtekind {
            pg_sys::RTEKind::RTE_RELATION => return Some((entry.relid, column.varattno)),
            pg_sys::RTEKind::RTE_SUBQUERY => {
                query = child!(entry.subquery)?;
                // The columns of a set operation come from more than one query.
                if !query.setOperations.is_null() {
                    return None;
                }
                let number = column.varattno;
                let inner = children!(query.targetList as TargetEntry).find(|target| target.resno == number)?;
                column = child!(inner.expr)?.as_node().as_a::<pg_sys::Var>()?;
                if column.varlevelsup != 0 || column.varattno <= 0 {
                    return None;
                }
            }
            _ => return None,
        }
    }
}

/// What canonical bounds are found with.
#[derive(Clone, Copy)]
pub struct Sight<'q> {
    /// The snapshot that the statement runs under, or is likely to: an MVCC snapshot that is registered or active.
    pub snapshot: &'q pg_sys::SnapshotData,
    /// The relations that the answer rests on, ascending: those that may be asked. `None` if all that the query names are locked, and the
    /// bounds are found again before an answer is used.
    pub relations: Option<&'q [u32]>,
}

impl Split {
    fn table_column(&self) -> TableColumn {
        TableColumn { table: self.relation, number: self.column }
    }

    /// The canonical bound for a value that is not NULL, where the fixed columns have these values (`None` for NULL). `None` if there is no row below.
    ///
    /// # Errors
    /// `MovingClock` if no index tells.
    pub fn canonical_bound(
        &self,
        (kind, value): (Kind, Datum),
        fixed: [(Kind, Option<Datum>); MOST_FIXED],
        sight: &Sight<'_>,
    ) -> Result<Option<Datum>, Reason> {
        if sight.relations.is_some_and(|relations| relations.binary_search(&self.relation.to_u32()).is_err()) {
            return Err(Reason::MovingClock);
        }
        let order = kind.order().ok_or(Reason::MovingClock)?;
        let limit = Limit { value, excluded: self.below };
        let mut columns = [FixedColumn::NONE; MOST_FIXED];
        for ((place, number), (kind, value)) in columns.iter_mut().zip(self.fixed).zip(fixed) {
            if number == 0 {
                break;
            }
            // Nothing is equal to NULL.
            let Some(value) = value else { return Ok(None) };
            let equality = |column, type_oid| equality_of(column, Kind::of(type_oid)?);
            *place = FixedColumn { number, value, type_oid: kind.type_oid(), equality };
        }
        // SAFETY: whoever made `sight` vouches for the snapshot. The index that is searched is of the kinds of the values.
        match unsafe { index_search::greatest(self.table_column(), &columns, order, limit, sight.snapshot) } {
            Found::Value(bound) => Ok(Some(bound)),
            Found::Nothing => Ok(None),
            Found::Unknown => Err(Reason::MovingClock),
        }
    }
}
