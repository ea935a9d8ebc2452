//! The part of one leaf in a statement under way: where its rows come from. Belongs to `parts`.

use pgrx::pg_sys;

use super::part_run::{PartRun, Surroundings};
use super::recipe::LeafPart;
use crate::lookup::parts::{self, PartKey};
use crate::serve::Hold;
use crate::shmem::SharedStore;

/// Where the rows of a part come from.
pub enum Rows {
    /// From the store: pinned.
    Stored(*mut Hold),
    /// From running its query, which is still to be done.
    Waiting,
    /// From running its query, which is under way.
    Running(PartRun),
    /// There are none: the bounds of the statement exclude them.
    LeftOut,
    /// They came from running its query, and were read.
    Read,
}

/// The part of one leaf.
pub struct PartState {
    /// The leaf.
    pub leaf: pg_sys::Oid,
    /// One of the bounds that are asked in it is about a partition key.
    pub is_at_end: bool,
    /// What it is stored as; `None` if it is not looked up.
    pub key: Option<PartKey>,
    /// Where its rows come from.
    pub rows: Rows,
    /// How it is computed; null if it was stored when the statement was planned.
    pub plan: *mut pg_sys::PlannedStmt,
}

impl PartState {
    /// A part whose rows are not looked for yet.
    pub fn new(leaf: &LeafPart) -> Self {
        Self { leaf: leaf.relation, is_at_end: false, key: None, rows: Rows::Waiting, plan: leaf.plan }
    }

    /// Pins the stored part, if there is one that holds; says whether there is. What cannot be looked up is computed.
    pub fn look_up(&mut self, store: &SharedStore, surroundings: &Surroundings) -> bool {
        let Some(PartKey { key, .. }) = self.key else { return false };
        // SAFETY: the snapshot of the statement is registered; the context outlives the statement. A stored part has
        // the columns that were compared with its own.
        let hold = unsafe {
            parts::stored_part(store, key, &surroundings.columns, surroundings.snapshot.as_ref())
                .and_then(|pin| Hold::in_context(surroundings.context, pin, surroundings.columns.clone()))
        };
        if let Some(hold) = hold {
            self.rows = Rows::Stored(hold);
        }
        hold.is_some()
    }
}
