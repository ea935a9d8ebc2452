//! What a backend knows about itself, and the clock. These functions of the server read variables and can neither raise
//! nor wait, so they are called without pgrx's guard; only `accept_interrupts` may raise. Nothing is kept.

use arrow_cache_core::WalPlace;
use pgrx::pg_sys;

use super::server;

/// The next transaction id that will be given. Whoever is given it, or a later one, sees what this process has written
/// before the call: both take the lock of the counter.
pub fn next_transaction_id() -> u64 {
    // SAFETY: reads a counter in shared memory under its lock; no lock of ours is held.
    unsafe { kept!(pg_sys::ReadNextFullTransactionId()).value }
}

/// The id of the present transaction, 0 if it has none (yet).
pub fn top_transaction_id() -> u64 {
    server::GetTopFullTransactionIdIfAny().value
}

/// How many levels of subtransactions are open, the transaction itself included.
pub fn transaction_nest_level() -> i32 {
    server::GetCurrentTransactionNestLevel()
}

/// Returns true if this transaction has looked at temporary relations, or made some. What ON COMMIT says of them is
/// done after PRE_COMMIT.
pub fn has_used_temporary_relations() -> bool {
    // SAFETY: a plain global of the backend.
    let flags = unsafe { pg_sys::MyXactFlags };
    flags & pg_sys::XACT_FLAGS_ACCESSEDTEMPNAMESPACE as i32 != 0
}

/// Returns true if the code runs in a subtransaction, which may fail without the whole transaction.
pub fn is_in_subtransaction() -> bool {
    transaction_nest_level() > 1
}

/// Returns true if there is a transaction that has not begun to end. After a failed subtransaction the transaction may
/// go on, although the server says that none is in progress.
pub fn in_transaction() -> bool {
    server::IsTransactionState() || server::GetCurrentTransactionNestLevel() > 1
}

/// Returns true if the code is in a read-only transaction, and in none of its subtransactions.
pub fn is_read_only_transaction() -> bool {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::XactReadOnly && transaction_nest_level() == 1 }
}

/// The present time, in microseconds since 2000-01-01 00:00 UTC, as the server counts.
pub fn now() -> i64 {
    server::GetCurrentTimestamp()
}

/// A random number; `None` if the server has no source of them.
pub fn random() -> Option<u64> {
    let mut bytes = [0; 8];
    // SAFETY: fills as many bytes as it is told.
    let is_random = unsafe { kept!(pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len())) };
    is_random.then(|| u64::from_le_bytes(bytes))
}

/// When the postmaster was started, in the server's microseconds.
pub fn server_start() -> i64 {
    // SAFETY: a plain global, which the processes of the server inherit.
    unsafe { pg_sys::PgStartTime }
}

/// When the client's message with the present statement arrived, in the server's microseconds.
pub fn statement_start() -> i64 {
    server::GetCurrentStatementStartTimestamp()
}

/// The role that the present code runs as.
pub fn user_id() -> pg_sys::Oid {
    server::GetUserId()
}

/// Returns true if an interrupt is to be served.
pub fn is_interrupted() -> bool {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::InterruptPending != 0 }
}

/// Lets interrupts in, if there are any: what they raise unwinds our frames.
pub fn accept_interrupts() {
    // SAFETY: a plain global of the backend; the function may be called wherever no lock is held.
    unsafe {
        if pg_sys::InterruptPending != 0 {
            kept!(pg_sys::ProcessInterrupts());
        }
    }
}

/// The OID of the database of this backend.
pub fn database() -> u32 {
    // SAFETY: a plain global of the backend, which does not change after its start.
    unsafe { pg_sys::MyDatabaseId.to_u32() }
}

/// The encoding of the database.
pub fn database_encoding() -> i32 {
    server::GetDatabaseEncoding()
}

/// Returns true if the server is being recovered, or is a standby.
pub fn is_in_recovery() -> bool {
    server::RecoveryInProgress()
}

/// How far this server has replayed WAL. It stays as it was when recovery has ended.
pub fn replayed() -> WalPlace {
    let mut timeline = 0;
    // SAFETY: writes the number of a timeline.
    let end = unsafe { server::GetXLogReplayRecPtr(&raw mut timeline) };
    WalPlace { end, timeline }
}

/// Returns true if the transaction is one of VACUUM without FULL, which snapshots never list as running. It changes
/// neither rows nor definitions.
pub fn is_vacuuming() -> bool {
    // SAFETY: the process's own place in shared memory, whose flags it alone sets.
    unsafe { u32::from((*pg_sys::MyProc).statusFlags) & pg_sys::PROC_IN_VACUUM != 0 }
}

/// Returns true if this process applies changes of another server.
pub fn is_logical_worker() -> bool {
    server::IsLogicalWorker()
}

/// How much of the stack a walk over a tree may use.
#[derive(Clone, Copy)]
pub struct WalkDepth {
    base: usize,
    most: usize,
}

impl WalkDepth {
    /// For a walk that begins here: at the address of a local.
    pub fn from(here: &u8) -> Self {
        // SAFETY: a plain global of the backend, in kilobytes. The server's own check would raise at this depth; the
        // walk must not, and leaves most of the stack to the planner, which needs less per level.
        Self { base: std::ptr::from_ref(here) as usize, most: unsafe { pg_sys::max_stack_depth as usize * 1024 / 4 } }
    }

    /// Returns true if the walk has come too deep.
    #[inline]
    pub fn is_passed(self, here: &u8) -> bool {
        self.base.abs_diff(std::ptr::from_ref(here) as usize) > self.most
    }
}
