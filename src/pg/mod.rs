//! Everything that is only about the server: its functions and how errors pass through our calls of them, what differs between its
//! versions, what it knows of this backend, its trees and lists, memory, the client's connection. Nothing here knows of cached answers.
//! State of this backend only; no lock.

pub mod allocator;
pub mod backend;
pub mod backend_local;
pub mod built_in_functions;
pub mod catalog_columns;
pub mod catalog_row;
pub mod client;
pub mod compat;
pub mod context_callbacks;
pub mod encoding;
pub mod error_memory;
pub mod error_passing;
pub mod float_text;
pub mod function_call;
pub mod index_search;
pub mod inheritance;
pub mod lists;
pub mod object_ids;
pub mod privileges;
pub mod processes;
pub mod query_desc;
pub mod record_type;
pub mod relcache_listener;
pub mod returned;
pub mod row;
pub mod row_type;
pub mod server;
pub mod server_settings;
pub mod session_zone;
pub mod signature;
pub mod sql_body;
pub mod sql_function;
pub mod subtransaction;
pub mod table_search;
pub mod tee;
pub mod text_search;
pub mod transaction_changes;
pub mod tree;
pub mod tree_making;
pub mod tuplestore;
pub mod varlena;
pub mod waiting;
pub mod wal_record;
