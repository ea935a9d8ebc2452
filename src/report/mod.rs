//! Telling what became of statements: counters that all backends share (atomics, so no lock), and lines in the server's
//! log.

pub mod decision_log;
pub mod tally;
