//! ERRORs of the server, told apart by their SQLSTATEs.

use pgrx::PgSqlErrorCode;

/// Returns true if an ERROR with this code says that a value is out of range, or not understood (class 22), or of a
/// kind that the function does not take; that the role may not call the function; or that a parameter is not there.
pub fn is_about_a_value(code: i32) -> bool {
    /// The characters of a class, six bits each.
    const CLASS: i32 = 0xFFF;
    let class_of = |known: PgSqlErrorCode| known as i32 & CLASS;
    code & CLASS == class_of(PgSqlErrorCode::ERRCODE_DATA_EXCEPTION)
        || [
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        ]
        .iter()
        .any(|known| code == *known as i32)
}

/// Returns true if an ERROR with this code says that there is no memory.
pub fn is_about_memory(code: i32) -> bool {
    code == PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as i32
}

/// Returns true if an ERROR with this code says that the statement was cancelled, or ran out of time.
pub fn is_cancel(code: i32) -> bool {
    code == PgSqlErrorCode::ERRCODE_QUERY_CANCELED as i32
}
