//! Where the attributes of a row type lie.

use pgrx::pg_sys;

/// Attribute number `index`, from 0, of a row type. The array moved in 18.
///
/// # Safety
/// `descriptor` must be valid and have more than `index` attributes.
pub unsafe fn tuple_attribute(descriptor: pg_sys::TupleDesc, index: usize) -> *mut pg_sys::FormData_pg_attribute {
    #[cfg(not(feature = "pg18"))]
    // SAFETY: `attrs` is the flexible array at the end of the struct.
    unsafe {
        (&raw mut (*descriptor).attrs).cast::<pg_sys::FormData_pg_attribute>().add(index)
    }
    #[cfg(feature = "pg18")]
    // SAFETY: the full attributes follow the array of compact ones (tupdesc.h, TupleDescAttr).
    unsafe {
        let natts = (*descriptor).natts as usize;
        let compact = (&raw mut (*descriptor).compact_attrs).cast::<pg_sys::CompactAttribute>();
        compact.add(natts).cast::<pg_sys::FormData_pg_attribute>().add(index)
    }
}
