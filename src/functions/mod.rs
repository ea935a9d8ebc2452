//! The SQL functions that are not about delivering results: administration, statistics, explanations, policies. Each runs with the
//! rights of its caller.

pub mod admin;
pub mod set_policy;
mod stats;
mod why;
