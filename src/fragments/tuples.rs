//! Rows of parts: their columns, and their way into the slot of a scan. Keeps nothing.

use pgrx::pg_sys;

use crate::arrow::column::{self, Column, Records};
use crate::pg::row_type::RowType;
use crate::query::decomposition::Part;
use crate::serve::slot_values;

/// The columns of the rows of a part.
pub fn columns_of(part: &Part) -> Option<Vec<Column>> {
    // SAFETY: the query of a part is valid, and the row type is made here.
    let row_type = unsafe { RowType::of(kept!(pg_sys::ExecTypeFromTL((*part.query).targetList))) };
    column::columns_of(row_type, Records::Stored).ok()
}

/// Writes the next row of a tuplestore into the values of a slot. False at the end.
///
/// # Safety
/// `tuple` must be a slot for minimal tuples, `slot` a virtual one, both with the columns of the tuplestore.
pub unsafe fn next_tuple(
    rows: *mut pg_sys::Tuplestorestate,
    tuple: *mut pg_sys::TupleTableSlot,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: the caller's promise. The values of a minimal tuple stay until the next one takes its place.
    unsafe {
        if !kept!(pg_sys::tuplestore_gettupleslot(rows, true, false, tuple)) {
            return false;
        }
        pg_sys::slot_getallattrs(tuple);
        copy_values(tuple, slot);
        true
    }
}

/// Copies the values of a row into a slot: those that are passed by reference stay where they are.
///
/// # Safety
/// Both must have the same columns, and all values of the row must be there.
pub unsafe fn copy_values(row: *mut pg_sys::TupleTableSlot, slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the caller's promise.
    unsafe {
        let (values, nulls) = slot_values(slot);
        let (from_values, from_nulls) = slot_values(row);
        values.copy_from_slice(from_values);
        nulls.copy_from_slice(from_nulls);
    }
}
