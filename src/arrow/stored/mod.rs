//! Stored batches: from the rows of the executor to the bytes of an entry, and back.
//!
//! `column` is the table of types: how the values of each are kept. `encode` takes the rows one by one and collects
//! them in a `row_block`; one builder for each column turns a full block into Arrow buffers (`scalar_builder`,
//! `reference_builder`). `chunk` is the layout of a finished batch, around an `ipc_message`, which `decode` reads.
//! `last_value` is how a row that was just encoded is sent to the client.

pub mod chunk;
pub mod column;
pub mod decode;
pub mod encode;
mod ipc_message;
mod last_value;
mod null_bitmap;
mod reference_builder;
mod row_block;
mod scalar_builder;
