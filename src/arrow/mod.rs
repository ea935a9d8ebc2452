//! Rows as Arrow, in two mappings. Nothing here knows of keys, entries or shared memory.
//!
//! * `stored`: how rows are kept. The mapping is exact for every value: where Arrow has no exact type for a column, it
//!   keeps the bytes of PostgreSQL's own values. `encode` turns rows into batches, `decode` turns batches into rows
//!   again.
//! * `delivery`: what clients get. The mapping depends on the row type and the options of an export alone. Columns that
//!   need no change go out as they are stored, the others are converted value by value.

pub mod delivery;
mod stored;

pub use stored::{chunk, column, decode, encode};
