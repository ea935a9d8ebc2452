//! The types of values in clock expressions: built-in ones, whose functions take no lock and keep nothing. A client
//! test compares the table with pg_type.

use pgrx::pg_sys::{self, Oid};

/// The types, each with pg_type.typlen and typbyval.
#[rustfmt::skip]
const TYPES: [(Oid, i16, bool); 17] = [
    (pg_sys::DATEOID, 4, true),
    (pg_sys::TIMEOID, 8, true),
    (pg_sys::TIMETZOID, 12, false),
    (pg_sys::TIMESTAMPOID, 8, true),
    (pg_sys::TIMESTAMPTZOID, 8, true),
    (pg_sys::INTERVALOID, 16, false),
    (pg_sys::INT2OID, 2, true),
    (pg_sys::INT4OID, 4, true),
    (pg_sys::INT8OID, 8, true),
    (pg_sys::FLOAT8OID, 8, true),
    (pg_sys::NUMERICOID, -1, false),
    (pg_sys::BOOLOID, 1, true),
    (pg_sys::TEXTOID, -1, false),
    (pg_sys::VARCHAROID, -1, false),
    (pg_sys::BPCHAROID, -1, false),
    (pg_sys::NAMEOID, 64, false),
    // A literal beside which nothing tells its type, as an argument of `concat`.
    (pg_sys::UNKNOWNOID, -2, false),
];

/// The length of the values of a type, and whether they are passed by value; `None` for a type that clock expressions
/// do not have.
pub fn form_of(type_oid: Oid) -> Option<(i16, bool)> {
    TYPES.iter().find(|(listed, ..)| *listed == type_oid).map(|(_, length, by_value)| (*length, *by_value))
}

/// Returns true if clock expressions may have values of this type.
pub fn is_known(type_oid: Oid) -> bool {
    form_of(type_oid).is_some()
}

/// Returns true if clock expressions may have values of this type, which are compared without a collation.
pub fn is_compared(type_oid: Oid) -> bool {
    let is_text = matches!(
        type_oid,
        pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID | pg_sys::NAMEOID | pg_sys::UNKNOWNOID
    );
    !is_text && is_known(type_oid)
}

/// Returns true if a text that becomes a value of this type may be a word for the time.
pub fn reads_time(type_oid: Oid) -> bool {
    matches!(type_oid, pg_sys::TIMESTAMPTZOID | pg_sys::TIMESTAMPOID | pg_sys::TIMEOID | pg_sys::TIMETZOID)
}

/// Returns true if a text that becomes a value of this type may be a word for a day, so that CURRENT_DATE is one more
/// clock expression of its query: date and its array.
pub fn has_dates(type_oid: Oid) -> bool {
    matches!(type_oid, pg_sys::DATEOID | pg_sys::DATEARRAYOID)
}
