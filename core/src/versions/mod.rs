//! What answers rest on, by the protocol "publish before visible" (docs/architecture/exactness.md). With `replay`, it
//! is the part of the core in which a mistake gives a wrong answer, and it imports nothing of the cache. The files,
//! each of which imports only files further down:
//!
//! | file | what it holds |
//! |---|---|
//! | `definers` | which slots stand for definitions that are being changed at this moment |
//! | `tracked` | of which relations writers note which values they change |
//! | `columns` | which columns are tracked, quiet, or wished for |
//! | `slots` | the slots of all relations, values and databases, and the floor below which nothing is known |
//! | `slot` | one version, and the transactions that have published to it |
//! | `value_slot` | the same in one word, which knows two publishers, and of more less |
//! | `snapshot` | which of these a snapshot sees |
//! | `xid_window` | a set of transaction ids in three words |
//! | `asked_xids` | which transactions run, remembered for one publication |
//! | `sequence` | the word under which some fields are read and written as a whole |
//! | `noted_rows` | which values one transaction has changed rows of, and whether these are all |
//! | `zones` | ranges of blocks, whose changes are noted as values of columns are |
//! | `places` | where relations have their places |

mod asked_xids;
pub mod columns;
pub(crate) mod definers;
pub mod noted_rows;
pub mod places;
mod sequence;
pub mod slot;
pub mod slots;
pub mod snapshot;
pub mod tracked;
pub mod value_slot;
pub mod xid_window;
pub mod zones;

pub use asked_xids::AskedXids;
pub use columns::{
    EACH_ROW, ITS_VALUE, QUIET, QuietColumns, TrackedColumns, Wish, bit_of, bits_of, members, pair, together,
};
pub use definers::Definers;
pub use places::quietly;
pub use slot::Slot;
pub use slots::{SlotId, Versions};
pub use snapshot::{SnapshotView, widen_xid};
pub use tracked::{Registry, TrackedRelation, Usage};
pub use value_slot::ValueSlot;
