//! What the server has found out about the values of columns, which may have changed since. Reads a catalog; keeps
//! nothing.

use pgrx::pg_sys;

use super::catalog_row::CatalogRow;

/// Returns true if all rows of a relation had the same value in a column, or none, when the server looked last.
pub fn has_one_value(relation: u32, column: i16) -> bool {
    CatalogRow::find_statistics(pg_sys::Oid::from(relation), column)
        .as_ref()
        .and_then(CatalogRow::statistics)
        .is_some_and(|statistics| statistics.stadistinct == 1.0)
}
