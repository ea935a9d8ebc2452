//! Rows as Arrow batches and back. Knows types, builders and bytes; knows no cache.
//!
//! Two mappings meet here. *Storage* is exact for every value: a column that Arrow cannot hold
//! exactly keeps PostgreSQL's own flat image of each value (`column`, `encode`, `decode`).
//! *Delivery* is what clients get and depends on the row type and the options alone (`form`, `convert`, `deliver`).

pub mod array;
mod bits;
mod block;
mod build;
pub mod chunk;
pub mod column;
pub mod compress;
pub mod convert;
mod convert_leaf;
pub mod decode;
pub mod deliver;
mod elements;
pub mod encode;
pub mod form;
pub mod message;
mod output;
pub mod pinned;
pub mod varlena;

use arrow_cache_core::formats::epoch;
