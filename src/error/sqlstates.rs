//! ERRORs of the server, told apart by their SQLSTATEs.

use pgrx::PgSqlErrorCode;

/// Returns true if an ERROR with this code means that a prepared transaction was not ended. There is none of that name,
/// or it belongs to another role or another database, another session is ending it at the moment, or the statement was
/// given inside a transaction.
pub fn refuses_prepared(code: i32) -> bool {
    [
        PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
    ]
    .contains(&PgSqlErrorCode::from(code))
}

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
