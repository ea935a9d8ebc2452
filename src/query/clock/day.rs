//! What reads today's date without a clock leaf: texts that become dates, among them those that are part of arrays,
//! ranges and JSON, and ages. CURRENT_DATE is one more clock expression of a query with such a part. The walk that
//! identifies a query and the check of its form ask here, so that they count the same. Reads no catalog: the first of
//! them runs each time a query is planned.

use pgrx::pg_sys;

/// Returns true if a text that becomes a value of this type may be a word for a day. So with date, daterange,
/// datemultirange and their arrays.
pub fn has_dates(type_oid: pg_sys::Oid) -> bool {
    matches!(type_oid.to_u32(), 1082 | 1182 | 3912 | 3913 | 4535 | 6155)
}

/// Does the function make rows of a named type out of JSON, whose columns may be dates: jsonb_populate_record,
/// jsonb_populate_recordset, json_populate_record, json_populate_recordset?
pub fn makes_named_row(function: pg_sys::Oid) -> bool {
    matches!(function.to_u32(), 3209 | 3475 | 3960 | 3961)
}

/// Returns true for `age` with one argument, which counts from the present date: age(timestamptz), age(timestamp).
/// CURRENT_DATE is in its body.
pub fn counts_from_today(function: pg_sys::Oid) -> bool {
    matches!(function.to_u32(), 1386 | 2059)
}
