//! What can be wrong with a call of our SQL functions, the report that a user gets for it, and what is written to the
//! server's log.
//!
//! The only folder that names SQLSTATEs. Transparent caching never raises: these errors come from functions that the
//! user called by name, or from a server that was started with bad settings or by pg_upgrade without the library.
//! Nothing is kept.

mod backtraces;
mod log;
mod messages;
mod raise;
mod sqlstates;

pub use backtraces::keep_stacks_private;
pub use log::{
    log_loaded, log_lost_client, log_not_loaded, log_not_saved, log_other_release, log_replay_fault, log_unexpected,
    notice_unclear_hint, notice_undecided_check, warn_of_difference,
};
pub use messages::CacheError;
pub use raise::{fail_startup, or_raise};
pub use sqlstates::{is_about_a_value, is_about_memory, is_cancel};
