//! What is told of each decision: counters that all backends share, and lines in the server's log.

pub mod decision_log;
pub mod tally;
