//! Everything that is only about the server: its functions and how errors pass through our calls of them, what differs
//! between its versions, what it knows of this backend, its trees and lists, memory, the client's connection. Nothing
//! here knows of cached answers. State of this backend only; no lock.

#[macro_use]
pub mod calls;

pub mod allocator;
pub mod array;
pub mod attention;
pub mod backend;
pub mod backend_local;
pub mod built_in_functions;
pub mod catalog_row;
pub mod catalog_scan;
pub mod client;
pub mod compat;
pub mod computing;
pub mod custom_scan;
pub mod encoding;
pub mod enum_catalog;
pub mod error_passing;
pub mod extension;
pub mod float_text;
pub mod folding;
pub mod function_call;
pub mod given_values;
pub mod index_list;
pub mod inheritance;
pub mod inlined_call;
pub mod inlining;
pub mod jsonb;
pub mod lists;
pub mod log_line;
pub mod lone_expression;
pub mod memory_context;
pub mod neighbour_search;
pub mod newer_snapshot;
pub mod object_ids;
pub mod own_execution;
pub mod own_rows;
pub mod plain_output;
pub mod privileges;
pub mod processes;
pub mod query_desc;
pub mod relcache_listener;
pub mod returned;
pub mod roles;
pub mod row;
pub mod row_type;
pub mod search_path;
pub mod server;
pub mod server_settings;
pub mod session_zone;
pub mod sql_body;
pub mod sql_function;
pub mod subtransaction;
pub mod tee;
pub mod text_search;
pub mod transaction_changes;
pub mod tree;
pub mod tree_making;
pub mod tree_search;
pub mod tuplestore;
pub mod type_catalog;
pub mod varlena;
pub mod waiting;
pub mod wal_record;
