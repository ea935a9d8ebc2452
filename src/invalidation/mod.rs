//! What a transaction has changed, and telling everybody before anybody can see it (architecture: *Publish before
//! visible*).
//!
//! In the order in which the files may import each other: `write_set` and `track_counts` hold what the hooks have noted
//! of the transaction under way; `catalogs` and `queried_relations` say what of it can matter to an answer;
//! `own_writes` tells readers what their own transaction has written; `definitions` lists what was redefined; `writer`
//! writes versions to the slots; `rows` notes which values changed rows of tracked relations have, `known_as` says by
//! which number they are tracked, `registration` decides which relations these are, and `extent` says which slots a
//! changed relation has; `publication` publishes everything at the commit, `redefinition` the definitions once more;
//! `foreign` and `targets` note what statements are about to change. `last_callback` gives the publication the last
//! place in line. `replay` does all this for the transactions of a primary, on a standby.

pub mod catalogs;
pub mod definitions;
mod extent;
pub mod foreign;
pub mod known_as;
pub mod last_callback;
pub mod own_writes;
pub mod publication;
pub mod queried_relations;
pub mod redefinition;
pub mod registration;
pub mod replay;
pub mod rows;
pub mod targets;
pub mod track_counts;
pub mod waking;
pub mod write_set;
mod writer;
