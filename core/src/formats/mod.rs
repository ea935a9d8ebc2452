//! Values as bytes: the server's own formats, the formats of the wire and of storage, and what clients can ask for.
//! Pure functions, without PostgreSQL.
//!
//! | file | what it holds |
//! |---|---|
//! | `column_buffers` | reading a value from the buffers of a stored column |
//! | `numeric` | the server's numeric, to text and back |
//! | `epoch` | the server's dates and timestamps, to Arrow's and back |
//! | `decimal` | numeric text as Arrow decimal or float |
//! | `wire` | rows as messages of the protocol |
//! | `options` | the options of an export |
//! | `profile` | those options that decide an export's schema |
//! | `undeliverable` | values that Arrow cannot hold |
//! | `digit_pairs` | two decimal digits at a time |

pub mod column_buffers;
pub mod decimal;
mod digit_pairs;
pub mod epoch;
pub mod numeric;
pub mod options;
pub mod profile;
pub mod undeliverable;
pub mod wire;
