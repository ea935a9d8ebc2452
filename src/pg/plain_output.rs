//! Types whose values are always written alike: a closed list of the server's own, and enums. Nothing is kept.

use pgrx::pg_sys;

/// Returns true if the output and send functions of this type read nothing but the value, the client's encoding, the
/// settings DateStyle, IntervalStyle, TimeZone, `extra_float_digits` and `bytea_output`, and labels of enums. Not of a
/// domain; of an array if its elements are of such a type.
pub fn is_plain(base_type: pg_sys::Oid) -> bool {
    match base_type {
        pg_sys::BOOLOID
        | pg_sys::CHAROID
        | pg_sys::INT2OID
        | pg_sys::INT4OID
        | pg_sys::INT8OID
        | pg_sys::FLOAT4OID
        | pg_sys::FLOAT8OID => true,
        pg_sys::NUMERICOID | pg_sys::DATEOID | pg_sys::TIMEOID | pg_sys::TIMETZOID | pg_sys::TIMESTAMPOID => true,
        pg_sys::TIMESTAMPTZOID | pg_sys::INTERVALOID | pg_sys::UUIDOID | pg_sys::BYTEAOID | pg_sys::NAMEOID => true,
        pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID | pg_sys::JSONOID | pg_sys::JSONBOID => true,
        pg_sys::OIDOID | pg_sys::XIDOID | pg_sys::CIDOID | pg_sys::XID8OID | pg_sys::PG_LSNOID => true,
        pg_sys::INETOID | pg_sys::CIDROID | pg_sys::MACADDROID | pg_sys::MACADDR8OID => true,
        pg_sys::BITOID | pg_sys::VARBITOID | pg_sys::TSVECTOROID | pg_sys::TSQUERYOID => true,
        pg_sys::POINTOID | pg_sys::LSEGOID | pg_sys::PATHOID | pg_sys::BOXOID | pg_sys::POLYGONOID => true,
        pg_sys::LINEOID | pg_sys::CIRCLEOID => true,
        pg_sys::INT4RANGEOID | pg_sys::INT8RANGEOID | pg_sys::NUMRANGEOID => true,
        pg_sys::TSRANGEOID | pg_sys::TSTZRANGEOID | pg_sys::DATERANGEOID => true,
        pg_sys::INT4MULTIRANGEOID | pg_sys::INT8MULTIRANGEOID | pg_sys::NUMMULTIRANGEOID => true,
        pg_sys::TSMULTIRANGEOID | pg_sys::TSTZMULTIRANGEOID | pg_sys::DATEMULTIRANGEOID => true,
        other => {
            // SAFETY: catalog look-ups by OID, in a transaction; they give nothing for types that are not there.
            let (element, is_enum) =
                unsafe { (kept!(pg_sys::get_element_type(other)), kept!(pg_sys::type_is_enum(other))) };
            is_enum || (element != pg_sys::InvalidOid && is_plain(element))
        }
    }
}
