//! The terms on which a statement's answer is taken from the cache and stored there: those of its hint
//! (`statement_text`), or else those of the session's settings.

use crate::settings;

/// The terms of one statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatementTerms {
    /// The statement asks to be stored: its run time and the number of its runs do not matter.
    pub insisted: bool,
    /// The statement's own `ttl` in seconds, 0 for no limit.
    pub(super) ttl: Option<u32>,
    /// The statement's own `max_stale` in milliseconds, 0 for never.
    pub(super) max_stale: Option<u32>,
    /// The statement may be computed from fragments, as far as it says itself.
    pub fragments: bool,
}

impl StatementTerms {
    /// The terms of a statement that says nothing about them.
    pub const USUAL: Self = Self { insisted: false, ttl: None, max_stale: None, fragments: true };

    /// The terms of what is stored at its first run, whatever it takes.
    pub const INSISTED: Self = Self { insisted: true, ttl: None, max_stale: Some(0), fragments: false };

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
