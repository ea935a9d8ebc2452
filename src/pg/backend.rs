//! What a backend knows about itself, and the clock: functions of the server that read variables and can neither raise nor
//! wait. pgrx guards each function that it binds against errors, which costs many times what these do; so they are
//! declared here without a guard.

use std::ffi::c_int;

use pgrx::pg_sys;

mod raw {
    use super::{c_int, pg_sys};

    unsafe extern "C" {
        /// access/xact.h
        pub safe fn GetTopFullTransactionIdIfAny() -> pg_sys::FullTransactionId;
        /// access/xact.h
        pub safe fn GetCurrentTransactionNestLevel() -> c_int;
        /// access/xact.h
        pub safe fn IsTransactionState() -> bool;
        /// utils/timestamp.h
        pub safe fn GetCurrentTimestamp() -> pg_sys::TimestampTz;
        /// access/xact.h
        pub safe fn GetCurrentStatementStartTimestamp() -> pg_sys::TimestampTz;
        /// miscadmin.h
        pub safe fn GetUserId() -> pg_sys::Oid;
        /// mb/pg_wchar.h
        pub safe fn GetDatabaseEncoding() -> c_int;
        /// access/xlog.h; asks shared memory as long as the answer was yes.
        pub safe fn RecoveryInProgress() -> bool;
        /// replication/logicalworker.h
        pub safe fn IsLogicalWorker() -> bool;
    }
}

/// The id of the transaction under way, 0 if it has none (yet).
pub fn top_transaction_id() -> u64 {
    raw::GetTopFullTransactionIdIfAny().value
}

/// How many levels of subtransactions are open, the transaction itself included.
pub fn transaction_nest_level() -> i32 {
    raw::GetCurrentTransactionNestLevel()
}

/// Is there a transaction that has not begun to end? A subtransaction that has failed is part of one that may go on, though the
/// server speaks of none in progress.
pub fn in_transaction() -> bool {
    raw::IsTransactionState() || raw::GetCurrentTransactionNestLevel() > 1
}

/// The clock, in the server's microseconds.
pub fn now() -> i64 {
    raw::GetCurrentTimestamp()
}

/// When the message came that the statement under way belongs to, in the server's microseconds.
pub fn statement_start() -> i64 {
    raw::GetCurrentStatementStartTimestamp()
}

/// The role that acts at the moment.
pub fn user_id() -> pg_sys::Oid {
    raw::GetUserId()
}

/// The encoding of the database.
pub fn database_encoding() -> i32 {
    raw::GetDatabaseEncoding()
}

/// Is the server being recovered, or a standby?
pub fn is_in_recovery() -> bool {
    raw::RecoveryInProgress()
}

/// Does this process apply changes of another server?
pub fn is_logical_worker() -> bool {
    raw::IsLogicalWorker()
}
