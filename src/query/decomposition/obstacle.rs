//! Why a query has no decomposition, in words for `why()`.

use std::ffi::{CStr, c_char};

use pgrx::pg_sys;

/// Why a query has no decomposition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// No query level groups, or aggregates, the rows of a table with partitions or children.
    NoTable,
    /// It reads two such tables.
    TwoTables(pg_sys::Oid, pg_sys::Oid),
    /// This relation is joined, and is no plain table or materialized view.
    Relation(pg_sys::Oid),
    /// FROM has something other than relations.
    FromItem,
    /// The table is on the side of an outer join whose rows may be missing.
    OuterJoin,
    /// TABLESAMPLE
    Sample,
    /// FOR UPDATE and the like.
    RowLocks,
    /// GROUPING SETS, ROLLUP, CUBE, GROUPING().
    GroupingSets,
    /// A function that returns sets.
    SetReturning,
    /// Keys of this type may be equal, but not the same.
    Key(pg_sys::Oid),
    /// This aggregate is not on the list.
    Aggregate(pg_sys::Oid),
    /// min or max of this type, whose values may be equal, but not the same.
    Extreme(pg_sys::Oid),
    /// DISTINCT, ORDER BY, WITHIN GROUP or VARIADIC in the call of an aggregate.
    CallOfAggregate,
    /// A sub-query in WHERE, in a join condition, in a key or in an argument.
    SubLink,
    /// A system column, or a whole row, of the table.
    SystemColumn,
    /// A virtual column, which the leaves may compute otherwise.
    VirtualColumn,
    /// A column that is neither a key nor depends on one.
    UngroupedColumn,
    /// A parameter whose value is not known.
    Parameter,
    /// A sub-query aggregates, and the query may raise an error: what is around the sub-query may decide which rows it computes.
    MayFail,
    /// Its parts would have more columns than the server lets rows have.
    ManyColumns,
}

impl Obstacle {
    /// One sentence.
    pub fn sentence(self) -> String {
        match self {
            Self::NoTable => "It does not aggregate the rows of a table that has partitions or children.".into(),
            Self::TwoTables(one, other) => {
                format!(
                    "It joins two tables that have partitions or children, {} and {}.",
                    relation(one),
                    relation(other)
                )
            }
            Self::Relation(oid) => {
                format!("It joins {}, which is no plain table or materialized view.", relation(oid))
            }
            Self::FromItem => "FROM has something other than tables.".into(),
            Self::OuterJoin => "An outer join adds rows for which the partitioned table has none.".into(),
            Self::Sample => "It has TABLESAMPLE.".into(),
            Self::RowLocks => "It locks rows.".into(),
            Self::GroupingSets => "It has grouping sets.".into(),
            Self::SetReturning => "It calls a function that returns a set.".into(),
            Self::Key(oid) => {
                format!("It groups by a value of type {}, of which equal values may look different.", type_name(oid))
            }
            Self::Aggregate(oid) => {
                format!("The aggregate {} cannot be computed from the results of partitions.", function(oid))
            }
            Self::Extreme(oid) => {
                format!(
                    "It asks for a min or max of type {}, of which equal values may look different.",
                    type_name(oid)
                )
            }
            Self::CallOfAggregate => "A call of an aggregate has DISTINCT, ORDER BY, WITHIN GROUP or VARIADIC.".into(),
            Self::SubLink => {
                "A sub-query stands in WHERE, in a join, in a key or in the argument of an aggregate.".into()
            }
            Self::SystemColumn => "It reads a system column, or whole rows, of the partitioned table.".into(),
            Self::VirtualColumn => "The partitioned table has virtual columns.".into(),
            Self::UngroupedColumn => "It uses a column that is not grouped.".into(),
            Self::Parameter => "The value of a parameter is not known when it is planned.".into(),
            Self::MayFail => "A sub-query aggregates, and computing the query may raise an error.".into(),
            Self::ManyColumns => "Its parts would have more columns than a row may have.".into(),
        }
    }
}

/// The name of something in a catalog, or its number if it is gone.
fn name(oid: pg_sys::Oid, find: unsafe fn(pg_sys::Oid) -> *mut c_char) -> String {
    // SAFETY: a catalog search by OID, whose result is null or a text that ends with NUL.
    unsafe {
        let name = find(oid);
        if name.is_null() { oid.to_u32().to_string() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
    }
}

fn relation(oid: pg_sys::Oid) -> String {
    name(oid, pg_sys::get_rel_name)
}

fn function(oid: pg_sys::Oid) -> String {
    name(oid, pg_sys::get_func_name)
}

fn type_name(oid: pg_sys::Oid) -> String {
    name(oid, pg_sys::format_type_be)
}
