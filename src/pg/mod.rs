//! What is only about the server: calling it and the libraries before ours without disturbing errors, what differs between its
//! versions, what it knows of this backend, memory, the client's connection. Nothing here knows of cached answers; state of this
//! backend only, no lock.

pub mod allocator;
pub mod backend;
pub mod backend_local;
pub mod catalog_columns;
pub mod client;
pub mod compat;
pub mod encoding;
pub mod error_memory;
pub mod error_passing;
pub mod float_text;
pub mod inheritance;
pub mod lists;
pub mod object_ids;
pub mod privileges;
pub mod query_desc;
pub mod relcache_listener;
pub mod server;
pub mod server_settings;
pub mod sql_function;
pub mod tee;
pub mod transaction_changes;
pub mod tree;
pub mod tuplestore;
