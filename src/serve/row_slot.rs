//! The values of an executor's slot.

use pgrx::pg_sys;

/// The value arrays of a slot, to be written: one element per attribute.
///
/// # Safety
/// The slot must be valid, and used by nobody else while the result is.
pub unsafe fn slot_values<'a>(slot: *mut pg_sys::TupleTableSlot) -> (&'a mut [pg_sys::Datum], &'a mut [bool]) {
    // SAFETY: the caller vouches for the slot; both arrays have one element per attribute of its descriptor.
    unsafe {
        let natts = (*(*slot).tts_tupleDescriptor).natts as usize;
        if natts == 0 {
            return (&mut [], &mut []);
        }
        (
            std::slice::from_raw_parts_mut((*slot).tts_values, natts),
            std::slice::from_raw_parts_mut((*slot).tts_isnull, natts),
        )
    }
}

/// Copies the first values of a row into an empty slot with as many columns: junk columns stand last.
///
/// # Safety
/// Both must be valid, the slot a virtual one, and the values must be there.
pub unsafe fn copy_row(row: *mut pg_sys::TupleTableSlot, slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the caller's promise.
    unsafe {
        let ((values, nulls), (row_values, row_nulls)) = (slot_values(slot), slot_values(row));
        values.copy_from_slice(&row_values[..values.len()]);
        nulls.copy_from_slice(&row_nulls[..nulls.len()]);
        kept!(pg_sys::ExecStoreVirtualTuple(slot));
    }
}
