//! Bounds: what the definition of a leaf may decide for all of its rows.

use pgrx::pg_sys;

/// A conjunct of WHERE that compares a column of the table with a constant.
pub struct Bound {
    pub clause: *mut pg_sys::Node,
    /// The column, by its number in the parent.
    pub column: i16,
    /// The operator, with the column on its left side.
    pub operator: pg_sys::Oid,
    /// What is on its right side; not null.
    pub value: *mut pg_sys::Const,
}
