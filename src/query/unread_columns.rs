//! Which columns of a relation a plan does not read: a change of these alone leaves its answer as it is. The rights
//! that a statement asks for name all columns that its query reads, whatever plan computes it. Three readers are not
//! named. Policies of row security may read any column (`has_row_security`). Generated columns read others, so whoever
//! changes a table that has some changes all. Scans for which no right is asked, as of children, read all. Keeps
//! nothing.

use arrow_cache_core::bit_of;
use pgrx::pg_sys::{self, RTEKind};

use crate::pg::catalog_row::CatalogRow;
use crate::pg::compat;
use crate::pg::tree::{Tree, child, child_text, children};

/// The columns that no scan of a plan reads, by their bits, of each relation of its range table, sorted by relation.
/// The entries of one relation count together: the planner may have one scan read the columns of two (18).
pub fn unread_columns(plan: Tree<'_, pg_sys::PlannedStmt>) -> Vec<(u32, u64)> {
    let relations = children!(plan.rtable as RangeTblEntry).filter(|entry| entry.rtekind == RTEKind::RTE_RELATION);
    let mut all: Vec<_> = relations.map(|entry| (entry.relid.to_u32(), unread_of(plan, entry))).collect();
    all.sort_unstable();
    all.dedup_by(|later, first| {
        first.1 &= if later.0 == first.0 { later.1 } else { u64::MAX };
        later.0 == first.0
    });
    all
}

/// The columns among the first 63 that an entry of the range table has and does not read; none if it reads all that are
/// there.
fn unread_of(plan: Tree<'_, pg_sys::PlannedStmt>, entry: Tree<'_, pg_sys::RangeTblEntry>) -> u64 {
    let Some(names) = child!(entry.eref) else { return 0 };
    let (mut unread, mut there) = (0, 0);
    for (column, name) in (1..64).zip(children!(names.colnames as String)) {
        unread |= bit_of(column);
        // One that was dropped has no name.
        let is_there = child_text!(name.sval).is_some_and(|name| !name.is_empty());
        there |= if is_there { bit_of(column) } else { 0 };
    }
    let is_known = compat::for_each_selected_column(plan, entry, |column| {
        // A whole row, or a column of the server's own, such as the place of the row.
        unread &= if column > 0 { !bit_of(column) } else { 0 };
    });
    if is_known && unread & there != 0 { unread } else { 0 }
}

/// Returns true if policies of row security may read any columns of a relation, or it has gone.
pub fn has_row_security(relation: u32) -> bool {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, pg_sys::Oid::from(relation));
    row.as_ref().and_then(CatalogRow::relation).is_none_or(|class| class.relrowsecurity)
}
