//! What the process that replays the WAL of a primary keeps of transactions that have not ended, until it publishes that for them
//! (docs/architecture/exactness.md, On a standby). The files, each of which imports only files further down:
//!
//! | file | what it holds |
//! |---|---|
//! | `state` | whether replay tells of every change |
//! | `notes` | what the running transactions have changed |
//! | `lately_noted` | which of that need not be noted again |
//! | `hot_files` | of that, rows of the files that records name most often |
//! | `recent_changes` | all else |
//! | `changes` | a table of that for any number of changes |

pub mod changes;
mod hot_files;
mod lately_noted;
pub mod notes;
pub mod recent_changes;
pub(crate) mod state;

pub use changes::{CatalogChange, Change, ChangeKind, Full};
pub use hot_files::{Marks, RelationFile};
pub use lately_noted::{LatelyNoted, Touched};
pub use notes::ReplayedChanges;
pub use state::{ReplayFault, ReplayState};
