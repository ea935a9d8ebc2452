//! The hint in a comment before a statement, and the terms on which the statement's answer is taken from the cache and
//! stored there: those of the hint, or else those of the session's settings.

use arrow_cache_core::{Hint, Reason, hint};

use super::statement_text::{self, Text};
use crate::settings;

/// The terms of one statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatementTerms {
    /// The statement asks to be stored: its run time and the number of its runs do not matter.
    pub insisted: bool,
    /// The statement's own `ttl` in seconds, 0 for no limit.
    ttl: Option<u32>,
    /// The statement's own `max_stale` in milliseconds, 0 for never.
    max_stale: Option<u32>,
    /// The statement may be computed from fragments, as far as it says itself.
    pub fragments: bool,
}

impl StatementTerms {
    /// The terms of a statement that says nothing about them.
    pub const USUAL: Self = Self { insisted: false, ttl: None, max_stale: None, fragments: true };

    /// The terms of what is stored at its first run, whatever it takes.
    pub const INSISTED: Self = Self { insisted: true, ttl: None, max_stale: Some(0), fragments: false };

    /// The terms of the statement with this text.
    ///
    /// # Errors
    /// `NoCacheHint` when the statement asks to be left alone.
    pub fn of(text: Text) -> Result<Self, Reason> {
        if statement_text::begins_with_select(&text) {
            return Ok(Self::USUAL);
        }
        match hint(statement_text::with_what_is_before(&text)) {
            None => Ok(Self::USUAL),
            Some(Hint::Always { ttl, fragments, max_stale }) => Ok(Self { insisted: true, ttl, max_stale, fragments }),
            Some(Hint::Never) => Err(Reason::NoCacheHint),
        }
    }

    /// Oldest answer accepted and longest life of what is stored, in microseconds; `None` when there is no limit.
    pub fn ttl_micros(self) -> Option<i64> {
        match self.ttl {
            None => settings::ttl_micros(),
            Some(0) => None,
            Some(seconds) => Some(i64::from(seconds) * 1_000_000),
        }
    }

    /// How old an outdated answer is accepted, in microseconds; `None` when the answer has to be exact.
    #[inline]
    pub fn max_stale_micros(self) -> Option<i64> {
        let milliseconds = self.max_stale.unwrap_or_else(settings::max_stale_ms);
        (milliseconds > 0).then_some(i64::from(milliseconds) * 1000)
    }

    /// The execution at which the result is stored, 1 being the first.
    pub fn min_runs(self) -> u32 {
        if self.insisted { 1 } else { settings::min_runs() }
    }
}
