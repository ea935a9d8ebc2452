//! Indexes that are held open until a statement ends, so that the server refuses to drop them in its own session, even
//! if rows are read later. After an error the server closes them.

use std::collections::BTreeMap;

use pgrx::pg_sys;

use crate::pg::tree::Tree;
use crate::query::opened_relations::opened_by;

/// Open indexes, by their OIDs.
#[derive(Default)]
pub struct HeldIndexes(BTreeMap<u32, pg_sys::Relation>);

impl HeldIndexes {
    /// Opens and locks the indexes that a plan scans, as its executor would.
    pub fn hold(&mut self, plan: Option<Tree<'_, pg_sys::PlannedStmt>>) {
        for index in plan.map_or_else(Vec::new, |plan| opened_by(plan).scanned) {
            // SAFETY: an index of a valid plan, whose tables are locked.
            let open = || unsafe { kept!(pg_sys::relation_open(index, pg_sys::AccessShareLock as _)) };
            self.0.entry(index.to_u32()).or_insert_with(open);
        }
    }

    /// Closes them. The locks go with the transaction.
    pub fn close(self) {
        for index in self.0.into_values() {
            // SAFETY: opened by `hold`, and not closed since.
            unsafe { kept!(pg_sys::relation_close(index, pg_sys::NoLock as _)) };
        }
    }
}
