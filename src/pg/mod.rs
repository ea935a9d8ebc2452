//! What is only about the server: calling it and the libraries before ours without disturbing errors, what differs between its
//! versions, what it knows of this backend, memory, the client's connection. Nothing here knows of cached answers; state of this
//! backend only, no lock.

pub mod allocator;
pub mod backend;
pub mod backend_local;
pub mod bare;
pub mod chain;
pub mod client;
pub mod compat;
pub mod encoding;
pub mod function_call;
pub mod lists;
pub mod query_desc;
pub mod raising;
pub mod relcache_listener;
pub mod rights;
pub mod row;
pub mod row_type;
pub mod tee;
pub mod tree;
pub mod varlena;
