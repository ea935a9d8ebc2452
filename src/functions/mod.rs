//! The SQL functions that do not deliver results: administration, statistics, explanations, policies. Each runs with
//! the privileges of its caller. Nothing is kept here but that the provider of labels is registered.

mod admin;
mod change_token;
mod change_trigger;
mod check;
mod last_status;
mod named_relations;
pub mod policy_label;
mod statement_stats;
mod stats;
mod unindexed_time;
mod visible;
pub mod wait;
mod why;
