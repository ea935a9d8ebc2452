//! Where the attributes of a row type lie, and what virtual columns are computed from.

use std::ffi::CStr;

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

/// Returns true if values of some columns are computed from others, whenever a row changes or is read.
///
/// # Safety
/// `descriptor` must be that of an open relation.
pub unsafe fn has_generated_columns(descriptor: pg_sys::TupleDesc) -> bool {
    // SAFETY: the caller's promise.
    unsafe { (*descriptor).constr.as_ref() }.is_some_and(|all| {
        #[cfg(feature = "pg18")]
        if all.has_generated_virtual {
            return true;
        }
        all.has_generated_stored
    })
}

/// Returns true if a relation, locked by the caller, has virtual columns, or is gone.
pub fn has_virtual_columns(relation: pg_sys::Oid) -> bool {
    #[cfg(not(feature = "pg18"))]
    {
        let _ = relation;
        false
    }
    #[cfg(feature = "pg18")]
    // SAFETY: the reference keeps the description; nothing between can raise.
    unsafe {
        let open = kept!(pg_sys::RelationIdGetRelation(relation));
        if open.is_null() {
            return true;
        }
        let found = (*(*open).rd_att).constr.as_ref().is_some_and(|all| all.has_generated_virtual);
        kept!(pg_sys::RelationClose(open));
        found
    }
}

/// Returns true if a column of a relation, locked by the caller, is a virtual one. No row has a value for it.
pub fn is_virtual_column(relation: pg_sys::Oid, column: i16) -> bool {
    #[cfg(not(feature = "pg18"))]
    {
        let _ = (relation, column);
        false
    }
    #[cfg(feature = "pg18")]
    // SAFETY: a catalog look-up of a column that is there.
    unsafe {
        kept!(pg_sys::get_attgenerated(relation, column)) as u8 == pg_sys::ATTRIBUTE_GENERATED_VIRTUAL
    }
}

/// The expressions of a relation's virtual columns, as the server writes them: the planner puts them in the place of
/// the columns. There are such columns from 18 on. Copies in the current memory context, which a user may have made
/// large: without memory for them the server raises.
///
/// # Safety
/// `descriptor` must be that of an open relation. The texts may be used as long as the current memory context lives.
pub unsafe fn virtual_expressions<'c>(descriptor: pg_sys::TupleDesc) -> Vec<&'c CStr> {
    #[cfg(not(feature = "pg18"))]
    {
        let _ = descriptor;
        Vec::new()
    }
    #[cfg(feature = "pg18")]
    // SAFETY: a relation's row type says how many expressions it has, each of which is of one of its columns; they are
    // texts that end with NUL.
    unsafe {
        let Some(constraints) = (*descriptor).constr.as_ref().filter(|all| all.has_generated_virtual) else {
            return Vec::new();
        };
        let expressions = std::slice::from_raw_parts(constraints.defval, usize::from(constraints.num_defval));
        let is_virtual = |column: i16| {
            let attribute = tuple_attribute(descriptor, column as usize - 1);
            (*attribute).attgenerated as u8 == pg_sys::ATTRIBUTE_GENERATED_VIRTUAL
        };
        let of_virtual = expressions.iter().filter(|one| is_virtual(one.adnum) && !one.adbin.is_null());
        of_virtual.map(|one| CStr::from_ptr(kept!(pg_sys::pstrdup(one.adbin)))).collect()
    }
}
