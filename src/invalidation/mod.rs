//! What a transaction has changed, and telling everybody before anybody can see it (architecture: *Publish before visible*).

pub mod definitions;
pub mod foreign;
pub mod last_callback;
pub mod publication;
pub mod write_set;
