//! What can be wrong with a call of our SQL functions, the report that a user gets for it, and what is written to the server's log.
//!
//! The only folder that names SQLSTATEs. Transparent caching never raises: these errors come from functions that the user called by
//! name, or from a server that was started with bad settings. Nothing is kept.

mod backtraces;
mod caught;
mod log;
mod report;

use arrow_cache_core::{LONGEST_SHOWN, OptionError, OutOfMemory, Reason, UndeliverableType, Unrepresentable};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, pg_sys};

pub use backtraces::keep_stacks_private;
pub use caught::{none_if_out_of_memory, refuses_prepared};
pub use log::{log, log_lost_client, warn_of_difference};
use report::Report;

/// An error that a user can cause and correct. Text that a user has written comes from `shown`, which cuts it before it copies it.
#[derive(Debug)]
pub enum CacheError {
    /// The library was not loaded by `shared_preload_libraries`.
    NotPreloaded,
    /// `pg_arrow_cache.memory` cannot hold the index for `max_entries`; `needed` is the size in bytes that can.
    MemoryTooSmall { needed: usize },
    /// The text given to an export function is not exactly one SELECT.
    NotOneSelect { found: String },
    /// The number of parameters passed differs from the number the query uses.
    MissingParameter { number: i32, given: usize },
    /// The finished stream would be larger than a `bytea` can be.
    StreamTooLarge { bytes: usize },
    /// A column cannot be delivered as the options ask for it.
    UndeliverableColumn { column: String, error: UndeliverableType },
    /// A value cannot be delivered; rows count from 1.
    UndeliverableValue { column: String, row: u64, problem: Unrepresentable },
    /// A result cannot be delivered as Arrow.
    Undeliverable { reason: Reason },
    /// An option of an export does not exist, or cannot have its value.
    BadOption { error: OptionError },
    /// The options of an export function are no JSON object.
    OptionsNotAnObject,
    /// A column was asked for that the result does not have, or has more than once (`repeated`). `columns` lists those that it has.
    NoSuchColumn { name: String, repeated: bool, columns: String },
    /// COPY cannot do with Arrow what the statement asks for.
    UnsupportedCopy { problem: &'static str, hint: &'static str },
    /// The trigger function was not called by a trigger.
    NotATrigger,
    /// An argument of the trigger function names no relation.
    UnknownRelation { name: String },
    /// An argument of the trigger function names a relation that neither the user nor the owner of the trigger's table may change.
    NotYoursToChange { name: String },
    /// An argument of the trigger function names a relation on which no result can rest.
    NothingRestsOn { name: String },
    /// A word that is no policy. `default` tells whether the word "default" is allowed here.
    UnknownPolicy { word: String, default: bool },
    /// A policy cannot be set for an object whose rows no query reads.
    NotARelation,
    /// A placeholder was executed as if it were a plan.
    PlaceholderRun,
    /// There is no memory for what the user has asked for.
    OutOfMemory,
}

impl From<OutOfMemory> for CacheError {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

/// The value; raises if there was no memory for it.
pub fn or_raise<T>(wanted: Result<T, OutOfMemory>) -> T {
    wanted.unwrap_or_else(|OutOfMemory| CacheError::OutOfMemory.raise())
}

impl CacheError {
    /// Raises the error in PostgreSQL.
    pub fn raise(self) -> ! {
        self.send(PgLogLevel::ERROR);
        unreachable!("an ERROR report returned")
    }

    fn send(&self, level: PgLogLevel) {
        let Report { code, message, hint } = self.report();
        let (message, hint) = (printable(message), printable(hint));
        ErrorReport::new(code, message, "pg_arrow_cache").set_hint(hint).report(level);
    }
}

/// Stops the server's start with the error, so that nobody overlooks that the cache cannot be set up.
pub fn fail_startup(error: &CacheError) -> ! {
    error.send(PgLogLevel::FATAL);
    unreachable!("a FATAL report returned")
}

/// A message that the database's encoding can hold: if that is not UTF-8, characters outside of ASCII are escaped.
fn printable(mut text: String) -> String {
    if text.len() > LONGEST_SHOWN {
        text.truncate(text.floor_char_boundary(LONGEST_SHOWN));
        text.push_str("...");
    }
    // SAFETY: reads the backend's state.
    if text.is_ascii() || unsafe { pg_sys::GetDatabaseEncoding() } == pg_sys::pg_enc::PG_UTF8 as i32 {
        return text;
    }
    text.chars().map(|c| if c.is_ascii() { c.to_string() } else { c.escape_unicode().to_string() }).collect()
}
