//! Raising our errors in PostgreSQL.

use arrow_cache_core::{LONGEST_SHOWN, OutOfMemory};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, pg_sys};

use super::messages::CacheError;

/// The value; raises if there was no memory for it.
pub fn or_raise<T>(wanted: Result<T, OutOfMemory>) -> T {
    wanted.unwrap_or_else(|OutOfMemory| CacheError::out_of_memory().raise())
}

impl CacheError {
    /// Raises the error in PostgreSQL.
    pub fn raise(self) -> ! {
        self.send(PgLogLevel::ERROR);
        unreachable!("an ERROR report returned")
    }

    fn send(self, level: PgLogLevel) {
        let (message, hint) = (printable(self.message), printable(self.hint));
        ErrorReport::new(self.code, message, "pg_arrow_cache").set_hint(hint).report(level);
    }
}

/// Stops the server's start with the error, so that nobody overlooks that the cache cannot be set up.
pub fn fail_startup(error: CacheError) -> ! {
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
