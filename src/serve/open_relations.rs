//! The tables and indexes that a real plan would hold open, as lists of OIDs for the scan that stands for it.

use pgrx::pg_sys;

use crate::pg::tree::Tree;
use crate::query::opened_relations::{Opened, opened_by};

/// Lists of OIDs, each once. Who owns them depends on the memory context that they were made in.
#[derive(Clone, Copy)]
pub struct OpenRelations {
    /// The tables.
    pub tables: *mut pg_sys::List,
    /// The indexes.
    pub indexes: *mut pg_sys::List,
    /// Some are left out when the plan starts, and which is not known before.
    pub prunes_at_start: bool,
}

impl OpenRelations {
    /// No relations.
    pub const NONE: Self = Self { tables: std::ptr::null_mut(), indexes: std::ptr::null_mut(), prunes_at_start: false };

    /// What a plan would hold open. In the current memory context.
    pub fn of(real: Tree<'_, pg_sys::PlannedStmt>) -> Self {
        let Opened { tables, indexes, prunes_at_start, .. } = opened_by(real);
        Self { tables: list(tables), indexes: list(indexes), prunes_at_start }
    }
}

fn list(relations: Vec<pg_sys::Oid>) -> *mut pg_sys::List {
    relations.into_iter().fold(std::ptr::null_mut(), |list, relation| {
        // SAFETY: a list of OIDs that was made here.
        unsafe { pg_sys::list_append_unique_oid(list, relation) }
    })
}
