//! Misses: the rows of a query are copied into Arrow batches on their way to the client, and published as an entry once
//! the last one has been read. If anything goes wrong, the query runs on and nothing is stored.
//!
//! The walk of a miss through the executor's hooks:
//!
//! 1. ExecutorStart: `prepare` keeps what `lookup` has decided, the server starts the query, and `begin` puts the query
//!    on the list of queries under way (`running`).
//! 2. ExecutorRun: `before_run` puts a receiver in front of the client's, which feeds each row to the fill (`fill`).
//!    `after_run` sees whether the result was read to its end. If so, `outcome` publishes the fill, or counts why it
//!    did not.
//! 3. ExecutorEnd: `end` takes the query off the list. A result that was not read to its end is given up.
//!
//! After an error there is no ExecutorEnd. Then the end of the query's memory context takes it off the list, and what
//! was stored is left without a pin, for the next store operation to reclaim.
//!
//! | file | question |
//! |---|---|
//! | `running` | Which queries under way concern the cache? |
//! | `start` | How does a query get on the list? |
//! | `run` | What happens around each run, and at the end? |
//! | `miss_run` | How far is a miss that is executed? |
//! | `fill` | How do rows become an entry? |
//! | `outcome` | Is the finished result stored, and who is told? |
//! | `unread` | On which relations does the result not rest after all? |
//! | `probed_keys` | By which keys has the run read rows of an index? |
//! | `export_fill` | How is the result of an export stored? |
//! | `part_fill` | How is a part stored that was computed together with others? |
//!
//! Hits that are executed and compared (`verify`) are on the same list. The list belongs to this backend.

mod export_fill;
mod fill;
mod miss_run;
mod outcome;
mod part_fill;
mod probed_keys;
mod run;
mod running;
mod start;
mod unread;

pub use export_fill::ExportFill;
pub use part_fill::PartFill;
pub use run::{after_run, before_run, end};
pub use running::idle;
pub use start::{begin, begin_task, forget, is_prepared, prepare};
