//! Values as bytes: the server's own formats, the wire's, and what clients can ask for. Pure functions, without PostgreSQL.

pub mod column_buffers;
pub mod decimal;
mod digit_pairs;
pub mod epoch;
pub mod jsonb;
pub mod numeric;
pub mod options;
pub mod profile;
pub mod undeliverable;
pub mod wire;
