//! What a backend knows about itself, and the clock: functions of the server that read variables and can neither raise nor
//! wait. pgrx guards each function that it binds against errors, which costs many times what these do; so they are
//! declared here without a guard.

use pgrx::pg_sys;

use super::server;

/// The id of the transaction under way, 0 if it has none (yet).
pub fn top_transaction_id() -> u64 {
    server::GetTopFullTransactionIdIfAny().value
}

/// How many levels of subtransactions are open, the transaction itself included.
pub fn transaction_nest_level() -> i32 {
    server::GetCurrentTransactionNestLevel()
}

/// Is there a transaction that has not begun to end? A subtransaction that has failed is part of one that may go on, though the
/// server speaks of none in progress.
pub fn in_transaction() -> bool {
    server::IsTransactionState() || server::GetCurrentTransactionNestLevel() > 1
}

/// The clock, in the server's microseconds.
pub fn now() -> i64 {
    server::GetCurrentTimestamp()
}

/// When the message came that the statement under way belongs to, in the server's microseconds.
pub fn statement_start() -> i64 {
    server::GetCurrentStatementStartTimestamp()
}

/// The role that acts at the moment.
pub fn user_id() -> pg_sys::Oid {
    server::GetUserId()
}

/// The encoding of the database.
pub fn database_encoding() -> i32 {
    server::GetDatabaseEncoding()
}

/// Is the server being recovered, or a standby?
pub fn is_in_recovery() -> bool {
    server::RecoveryInProgress()
}

/// Does this process apply changes of another server?
pub fn is_logical_worker() -> bool {
    server::IsLogicalWorker()
}
