//! `COPY … TO STDOUT (FORMAT arrow, …)`.
//!
//! The server runs the statement as any COPY of a query: it checks, plans, starts and ends it, and every other library
//! sees what it always sees. The server is given the statement without our options (`copy_statement`). The executor
//! hooks take the rows from it (`stages`), and batches are sent where it would send lines (`client_stream`), behind an
//! answer of our own (`opening_response`).

mod client_stream;
mod copy_statement;
mod opening_response;
mod stages;

pub use copy_statement::shape_for_client;
pub use stages::{after_run, after_start, before_run, before_start, claims, enter, exports, is_deciding, leave};
