//! Delivery: stored batches as the Arrow columns that a client asked for.
//!
//! `delivery_type` determines the type that a column is delivered as. `deliver` puts a delivery together: it passes
//! stored columns on and has the others converted (`convert`, and `convert_leaf` for values without parts). `facts`
//! tells whether two deliveries of an entry are the same bytes.

mod convert;
mod convert_leaf;
pub mod deliver;
mod delivery_type;
mod facts;
mod pinned_settings;
pub mod schema;
mod stored_column;
mod text_output;
