//! What the process that replays the WAL of a primary keeps of transactions that have not ended, until it publishes
//! that for them (docs/architecture/exactness-standby.md). `state` says whether replay tells of every change, and from
//! where on. `changes` is the table of what running transactions have changed.

pub mod changes;
pub(crate) mod state;

pub use changes::{Change, ChangeKind, ChangeTable, Full};
pub(crate) use state::WalPlaceWords;
pub use state::{ReplayFault, ReplayState, WalPlace};

/// What the running transactions of a primary have changed, as the process that replays keeps it.
pub type ReplayedChanges = ChangeTable<8192, 1024, 14>;
