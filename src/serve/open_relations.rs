//! The tables and indexes that a real plan would hold open, as lists of OIDs for the scan that stands for it.

use pgrx::pg_sys;

use crate::pg::tree::Tree;
use crate::query::opened_relations::opened_by;

/// Lists of OIDs, each once. Who owns them depends on the memory context that they were made in.
#[derive(Clone, Copy)]
pub struct OpenRelations {
    /// The tables.
    pub tables: *mut pg_sys::List,
    /// The indexes.
    pub indexes: *mut pg_sys::List,
    /// Some are left out when the plan starts, and which is not known before.
    pub prunes_at_start: bool,
    /// Starting the plan does nothing but what `rerun::start_late` can do later in the same way.
    pub may_start_late: bool,
}

impl OpenRelations {
    /// No relations.
    pub const NONE: Self = Self {
        tables: std::ptr::null_mut(),
        indexes: std::ptr::null_mut(),
        prunes_at_start: false,
        may_start_late: false,
    };

    /// What a plan would hold open. In the current memory context.
    pub fn of(real: Tree<'_, pg_sys::PlannedStmt>) -> Self {
        let opened = opened_by(real);
        let prunes_at_start = opened.prunes_at_start();
        let may_start_late = !prunes_at_start && !opened.has_unknown_nodes && !opened.has_foreign_nodes;
        Self { tables: list(opened.tables), indexes: list(opened.indexes), prunes_at_start, may_start_late }
    }
}

fn list(relations: Vec<pg_sys::Oid>) -> *mut pg_sys::List {
    relations.into_iter().fold(std::ptr::null_mut(), |list, relation| {
        // SAFETY: a list of OIDs that was made here.
        unsafe { kept!(pg_sys::list_append_unique_oid(list, relation)) }
    })
}
