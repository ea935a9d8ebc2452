//! What the catalog says of a type. All but the kind raise for a type that is not there. Keeps nothing.

use pgrx::pg_sys::{self, Oid};

/// The kind of a type (`TYPTYPE_…`); 0 for one that is not there.
pub fn kind_of(type_oid: Oid) -> u8 {
    // SAFETY: reads a catalog.
    unsafe { kept!(pg_sys::get_typtype(type_oid)) as u8 }
}

/// The length of the values of a type (pg_type.typlen), and whether they are passed by value.
pub fn form_of(type_oid: Oid) -> (i16, bool) {
    let (mut length, mut by_value) = (0, false);
    // SAFETY: reads a catalog, and writes both.
    unsafe { kept!(pg_sys::get_typlenbyval(type_oid, &mut length, &mut by_value)) };
    (length, by_value)
}

/// The function that writes values of a type as texts.
pub fn output_function(type_oid: Oid) -> Oid {
    let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
    // SAFETY: reads a catalog, and writes both.
    unsafe { kept!(pg_sys::getTypeOutputInfo(type_oid, &mut function, &mut is_varlena)) };
    function
}

/// The function that reads values of a type from texts, and its parameter.
pub fn input_function(type_oid: Oid) -> (Oid, Oid) {
    let (mut function, mut parameter) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: reads a catalog, and writes both.
    unsafe { kept!(pg_sys::getTypeInputInfo(type_oid, &mut function, &mut parameter)) };
    (function, parameter)
}
