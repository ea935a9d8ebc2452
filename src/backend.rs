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
        /// utils/timestamp.h
        pub safe fn GetCurrentTimestamp() -> pg_sys::TimestampTz;
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

/// The clock, in the server's microseconds.
pub fn now() -> i64 {
    raw::GetCurrentTimestamp()
}

/// Does this process apply changes of another server?
pub fn is_logical_worker() -> bool {
    raw::IsLogicalWorker()
}
