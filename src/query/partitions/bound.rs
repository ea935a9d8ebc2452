//! Conditions on partition keys, and which of them can be compared with the bounds of partitions.

use std::cmp::Ordering;

use pgrx::pg_sys;

use super::order::{Order, Place};
use crate::pg::compat::PartitionColumn;
use crate::pg::lists::nodes;
use crate::pg::server;
use crate::pg::tree::Tree;
use crate::pg::tree_making::{copy, list_of};
use crate::query::operator_families::is_ordered_by_server;

/// A condition `column operator constant` of a query's WHERE, which only rows pass for which it is true.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The condition itself.
    pub clause: *mut pg_sys::Node,
    /// The column's number in the table that the query names.
    pub column: i16,
    /// The operator with the column on its left, so the commutator of the condition's own if the column stands on its right.
    pub operator: pg_sys::Oid,
    /// The constant, which is not null; a null pointer if its value is known later.
    pub value: *mut pg_sys::Const,
}

impl Bound {
    /// The condition, with NULL in the place of what the column is compared with.
    pub fn with_null(&self) -> *mut pg_sys::Node {
        // SAFETY: the condition is a comparison of two arguments, of which a copy is changed.
        unsafe {
            let clause: *mut pg_sys::OpExpr = copy(self.clause.cast());
            let mut arguments = nodes::<pg_sys::Node>((*clause).args);
            if let (Some(column), Some(value)) = (arguments.next(), arguments.next()) {
                let null = kept!(pg_sys::makeNullConst(server::exprType(value), -1, server::exprCollation(value)));
                (*clause).args = list_of([column, null.cast()]);
            }
            clause.cast()
        }
    }

    /// Returns true if it will say something about the order of the key, once its value is known. `column` is the number
    /// of its column in the table that the key belongs to.
    pub fn compares_later(&self, column: i16, key: &PartitionColumn) -> bool {
        // SAFETY: reads a catalog; 0 for an operator that is not in the family.
        self.value.is_null()
            && column == key.number
            && unsafe { kept!(pg_sys::get_op_opfamily_strategy(self.operator, key.family)) } != 0
    }
}

/// A bound that says something about the order of a partition key.
pub struct Comparison {
    /// Where the bound stands among all bounds, as a bit.
    pub bit: u64,
    relation: Relation,
    /// The constant.
    pub value: pg_sys::Datum,
}

/// How the rows that pass stand to the constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relation {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

/// The values of a partition in relation to a constant: those from `first` on, and before `end`.
pub struct Interval {
    /// The first value that there can be.
    pub first: Ordering,
    /// What no value reaches.
    pub end: Ordering,
    /// The last value that there can be, where the type tells which one that is.
    pub last: Option<Ordering>,
}

impl Comparison {
    /// The bound as a comparison with the partition key; `None` if it says nothing about the key's order. `column` is the number of the
    /// bound's column in the table that the key belongs to.
    ///
    /// # Safety
    /// The bound must be part of a valid query.
    pub unsafe fn of(bound: &Bound, bit: u64, column: i16, key: &PartitionColumn, order: &Order) -> Option<Self> {
        // SAFETY: the caller's promise.
        let (clause, value) = unsafe { (Tree::enter(bound.clause)?, Tree::enter(bound.value)?) };
        let clause = clause.as_a::<pg_sys::OpExpr>()?;
        let collates_alike = key.collation == pg_sys::InvalidOid || key.collation == clause.inputcollid;
        // A polymorphic key compares values of the column's own type.
        let is_of_type = value.consttype == key.input_type || value.consttype == key.type_oid;
        if column <= 0 || column != key.number || value.constisnull || !is_of_type || !collates_alike {
            return None;
        }
        let relation = relation_of(bound.operator, key)?;
        // SAFETY: reads a catalog about an operator of the query.
        let is_strict = unsafe { kept!(pg_sys::op_strict(bound.operator)) };
        let is_known = is_ordered_by_server(key.family, key.input_type, bound.operator, order.function());
        (is_strict && is_known).then_some(Self { bit, relation, value: value.constvalue })
    }

    /// Do rows pass whose value stands so to the constant?
    pub fn holds(&self, value: Ordering) -> bool {
        match self.relation {
            Relation::Less => value.is_lt(),
            Relation::LessOrEqual => value.is_le(),
            Relation::Equal => value.is_eq(),
            Relation::GreaterOrEqual => value.is_ge(),
            Relation::Greater => value.is_gt(),
        }
    }

    /// Do only rows pass whose value equals the constant?
    pub fn is_equality(&self) -> bool {
        self.relation == Relation::Equal
    }

    /// The values that may lead to rows that pass, as the planner numbers them: the first and the last of the `count` sorted values, and what
    /// is after them, that may end a range with such rows.
    pub fn ends(&self, place: &Place, count: usize) -> (usize, usize) {
        match self.relation {
            Relation::Less => (0, place.less()),
            Relation::LessOrEqual => (0, place.not_greater()),
            Relation::Equal => (place.not_greater(), place.not_greater()),
            Relation::GreaterOrEqual | Relation::Greater => (place.not_greater(), count),
        }
    }

    /// Is it certain that no value of the interval passes? The planner's pruning does not look at the type's last value, so that is not
    /// looked at here.
    pub fn excludes(&self, values: &Interval) -> bool {
        match self.relation {
            Relation::Less => values.first.is_ge(),
            Relation::LessOrEqual => values.first.is_gt(),
            Relation::Equal => values.first.is_gt() || values.end.is_le(),
            Relation::GreaterOrEqual | Relation::Greater => values.end.is_le(),
        }
    }

    /// Is it certain that every value of the interval passes?
    pub fn is_implied_by(&self, values: &Interval) -> bool {
        match self.relation {
            Relation::Less => values.end.is_le(),
            Relation::LessOrEqual => values.end.is_le() || values.last.is_some_and(Ordering::is_le),
            Relation::Equal => values.first.is_eq() && values.last.is_some_and(Ordering::is_eq),
            Relation::GreaterOrEqual => values.first.is_ge(),
            Relation::Greater => values.first.is_gt(),
        }
    }
}

/// What an operator says in the order of a key; `None` if it is no operator of the key's family for the key's own type on both sides.
fn relation_of(operator: pg_sys::Oid, key: &PartitionColumn) -> Option<Relation> {
    // SAFETY: reads a catalog; 0 for an operator that is not in the family.
    if unsafe { kept!(pg_sys::get_op_opfamily_strategy(operator, key.family)) } == 0 {
        return None;
    }
    let (mut strategy, mut left, mut right) = (0, pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: the operator is in the family, and is there to compare, not to give distances.
    unsafe {
        kept!(pg_sys::get_op_opfamily_properties(
            operator,
            key.family,
            false,
            &raw mut strategy,
            &raw mut left,
            &raw mut right,
        ));
    }
    if left != key.input_type || right != key.input_type {
        return None;
    }
    match strategy as u32 {
        pg_sys::BTLessStrategyNumber => Some(Relation::Less),
        pg_sys::BTLessEqualStrategyNumber => Some(Relation::LessOrEqual),
        pg_sys::BTEqualStrategyNumber => Some(Relation::Equal),
        pg_sys::BTGreaterEqualStrategyNumber => Some(Relation::GreaterOrEqual),
        pg_sys::BTGreaterStrategyNumber => Some(Relation::Greater),
        _ => None,
    }
}
