//! Whether equal values are the same bytes.

use pgrx::pg_sys;

use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::type_catalog::kind_of;

/// Returns true if values of this type are equal only if their bytes are.
///
/// They are not for numbers with a scale or a sign of zero, `char(n)`, intervals, times with a zone, jsonb, networks,
/// and text under a collation that is not deterministic. The answer is no for containers too, whose elements may be any
/// of these.
pub fn equality_is_bytewise(type_oid: pg_sys::Oid, collation: pg_sys::Oid) -> bool {
    match type_oid {
        pg_sys::BOOLOID
        | pg_sys::INT2OID
        | pg_sys::INT4OID
        | pg_sys::INT8OID
        | pg_sys::OIDOID
        | pg_sys::CHAROID
        | pg_sys::DATEOID
        | pg_sys::TIMEOID
        | pg_sys::TIMESTAMPOID
        | pg_sys::TIMESTAMPTZOID
        | pg_sys::MONEYOID
        | pg_sys::UUIDOID
        | pg_sys::BYTEAOID => true,
        // SAFETY: reads a catalog about a collation that the query names.
        pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::NAMEOID => unsafe {
            collation != pg_sys::InvalidOid && kept!(pg_sys::get_collation_isdeterministic(collation))
        },
        other => kind_of(other) == pg_sys::TYPTYPE_ENUM,
    }
}

/// Returns true for an operator of the server's own by which an index is searched for one value.
pub fn is_equality(operator: pg_sys::Oid) -> bool {
    // SAFETY: reads a catalog about an operator that the query uses.
    operator.to_u32() < FIRST_UNPINNED_OID && unsafe { !kept!(pg_sys::get_mergejoin_opfamilies(operator)).is_null() }
}
