//! `verify_sample_rate`: some of the hits are executed as well, under the same snapshot, and compared with what the
//! cache holds.
//!
//! A chosen hit keeps its own plan, and the client gets the rows of that plan. In everything else it is a hit. The rows
//! are digested on their way. After the last one the stored rows are digested in the same way. If the two digests
//! differ, a WARNING with the query's id is logged, the difference is counted, and the entry is dropped.
//!
//! Compared are the values of each row and how often each row occurs, in any order. All hits that were drawn are
//! counted (`verify_samples`). Not compared, and not counted as checks, are
//!
//! * queries whose answer SQL leaves open (`query::repeatability`), a LIMIT that may have left rows out among them;
//! * answers that other columns are computed from at each hit (`fragments::shown_clock`);
//! * results that the client did not read to their end, or read under other settings or definitions than they started
//!   with;
//! * scrollable cursors, whose rows may be read in any order: they are served from the cache;
//! * EXPLAIN, which shows what a hit does;
//! * exports, which are given the same entries as statements.
//!
//! At the same rate an answer that has just been stored is read back, and compared with the rows that it was made of.
//! That counts neither as a sample nor as a check, but a difference does.
//!
//! | file | question |
//! |---|---|
//! | `conditions` | Is this hit executed as well, and may its rows still be compared? |
//! | `comparison` | The stored answer and the rows that were executed: are they the same? |
//! | `read_back` | An answer that was just stored and the rows that it was made of: are they the same? |
//! | `row_digest` | How are rows digested? |
//!
//! A comparison belongs to one execution in one backend; nothing here is shared or locked. `capture` feeds it. The
//! entry stays pinned from the decision on, by a hold in the query's own memory: whatever ends the query lets the entry
//! go. A comparison needs the same memory however many rows there are.

mod comparison;
mod conditions;
mod read_back;
mod row_digest;

pub use comparison::{Comparison, Sample, sample};
pub use conditions::{Conditions, draw};
pub use read_back::ReadBack;
