//! The types of anonymous records, which the server numbers for each session. Keeps nothing itself; the server keeps a type once it has a
//! number, as it does for each record that a query makes.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::row_type::RowType;

/// An attribute of a record.
#[derive(Clone, Copy)]
pub struct Attribute<'t> {
    /// Its type.
    pub type_oid: pg_sys::Oid,
    /// The modifier of its type.
    pub typmod: i32,
    /// Its collation.
    pub collation: pg_sys::Oid,
    /// Its name.
    pub name: &'t CStr,
    /// It stands for a column that was dropped.
    pub is_dropped: bool,
}

/// Does something with each attribute of the type with this number, in their order, until that fails. `None` if the session has no such
/// type.
///
/// # Errors
/// What `act` returns.
pub fn attributes<E>(number: i32, mut act: impl FnMut(Attribute<'_>) -> Result<(), E>) -> Option<Result<(), E>> {
    // SAFETY: asks the server for a type by its number. It may raise when it takes over the type of a parallel worker and has no memory; the
    // resource owner gives the reference back then. The descriptor is valid until it is given back below, and names end with a NUL.
    unsafe {
        let descriptor = kept!(pg_sys::lookup_rowtype_tupdesc_noerror(pg_sys::RECORDOID, number, true));
        if descriptor.is_null() {
            return None;
        }
        let done = RowType::of(descriptor).attributes().try_for_each(|attribute| {
            act(Attribute {
                type_oid: attribute.atttypid,
                typmod: attribute.atttypmod,
                collation: attribute.attcollation,
                name: CStr::from_ptr(attribute.attname.data.as_ptr()),
                is_dropped: attribute.attisdropped,
            })
        });
        if (*descriptor).tdrefcount >= 0 {
            kept!(pg_sys::DecrTupleDescRefCount(descriptor));
        }
        Some(done)
    }
}

/// The number of the type with these attributes. The server gives it one if it has none. Raises if there is no memory, or no such type of an
/// attribute.
pub fn number<'t>(attributes: impl Iterator<Item = Attribute<'t>> + Clone) -> i32 {
    // SAFETY: a descriptor of as many attributes as are filled in, in the current memory context. The server copies it, and the names. These
    // are the steps of ExecTypeFromExprList and BlessTupleDesc.
    unsafe {
        let descriptor = kept!(pg_sys::CreateTemplateTupleDesc(attributes.clone().count() as i32));
        for (place, attribute) in (1..).zip(attributes) {
            let Attribute { type_oid, typmod, collation, name, .. } = attribute;
            kept!(pg_sys::TupleDescInitEntry(descriptor, place, name.as_ptr(), type_oid, typmod, 0));
            kept!(pg_sys::TupleDescInitEntryCollation(descriptor, place, collation));
        }
        kept!(pg_sys::assign_record_type_typmod(descriptor));
        let number = (*descriptor).tdtypmod;
        kept!(pg_sys::FreeTupleDesc(descriptor));
        number
    }
}
