//! Results as Arrow, from the cache if it has them: the SQL functions `arrow_cache.query`, `fetch`, `messages` and
//! `schema` (a file for each), and what COPY shares with them.
//!
//! The query takes the steps of any other query (`one_select`, `inner_query`) and is looked up (`decision`). On a hit
//! the stored batches are streamed (`stored_batches`); on a miss the plan runs once, its rows are encoded, sent, and
//! stored if that is allowed (`export_run`, `row_sink`, `ipc_stream`). All state belongs to one process.

mod arguments;
mod decision;
mod error_context;
mod export_run;
mod fetch_function;
mod inner_query;
mod ipc_stream;
mod messages_function;
mod one_select;
mod options;
mod parameters;
mod paused_export;
mod query_function;
mod row_sink;
mod schema_function;
mod stored_batches;

pub use arguments::{Argument, parameters as query_parameters, text as query_text};
pub use decision::{Decision, decide};
pub use error_context::within;
pub use export_run::Export;
pub use inner_query::{Pace, check_permitted, plan, under_callers_snapshot};
pub use ipc_stream::{END_OF_STREAM, Output};
pub use one_select::{OwnQuery, command_name, node_of, parse_one};
pub use options::from_words;
pub use parameters::Parameters;
