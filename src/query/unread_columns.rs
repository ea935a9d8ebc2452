//! Which columns of a relation a plan does not read: a change of these alone leaves its answer as it is. The rights
//! that a statement asks for name all columns that its query reads, whatever plan computes it. Three readers are not
//! named. Policies of row security may read any column (`has_row_security`). Generated columns read others, so whoever
//! changes a table that has some changes all. Scans for which no right is asked read all, but those of leaves and other
//! children: they read the columns that stand for those of the parent. Keeps nothing.

use arrow_cache_core::bit_of;
use pgrx::pg_sys::{self, RTEKind};

use crate::pg::catalog_row::CatalogRow;
use crate::pg::compat;
use crate::pg::tree::{Tree, child, child_text, children};

/// The columns that no scan of a plan reads, by their bits, of each relation of its range table, sorted by relation.
/// The entries of one relation count together: the planner may have one scan read the columns of two (18).
pub fn unread_columns(plan: Tree<'_, pg_sys::PlannedStmt>) -> Vec<(u32, u64)> {
    let entries: Vec<_> = children!(plan.rtable as RangeTblEntry).collect();
    let mut parents = vec![None; entries.len()];
    for child in children!(plan.appendRelations as AppendRelInfo) {
        // The branches of UNION ALL have rights of their own.
        if child.parent_reloid != pg_sys::InvalidOid
            && let Some(place) = parents.get_mut((child.child_relid as usize).wrapping_sub(1))
        {
            *place = Some(child);
        }
    }
    let table = RangeTable { plan, entries, parents };
    let relations = table.entries.iter().enumerate().filter(|(_, entry)| entry.rtekind == RTEKind::RTE_RELATION);
    let mut all: Vec<_> = relations.map(|(place, entry)| (entry.relid.to_u32(), table.unread_of(place))).collect();
    all.sort_unstable();
    all.dedup_by(|later, first| {
        first.1 &= if later.0 == first.0 { later.1 } else { u64::MAX };
        later.0 == first.0
    });
    all
}

/// The range table of a plan, with how its entries for children have come from those for their parents.
struct RangeTable<'t> {
    plan: Tree<'t, pg_sys::PlannedStmt>,
    entries: Vec<Tree<'t, pg_sys::RangeTblEntry>>,
    parents: Vec<Option<Tree<'t, pg_sys::AppendRelInfo>>>,
}

impl RangeTable<'_> {
    /// The columns among the first 63 that an entry has and does not read; none if it reads all that are there.
    fn unread_of(&self, place: usize) -> u64 {
        let Some(child) = self.parents[place] else { return self.unread_by_rights(place) };
        let parent = (child.parent_relid as usize).wrapping_sub(1);
        // The policies of the table that the query names hold for its children as well.
        if parent >= self.entries.len() || parent == place || has_row_security(child.parent_reloid.to_u32()) {
            return 0;
        }
        let of_parent = self.unread_of(parent);
        let columns = match child.num_child_cols as usize {
            0 => &[],
            // SAFETY: the planner has made as many numbers as it says, and a plan keeps them.
            count => unsafe { std::slice::from_raw_parts(child.parent_colnos, count) },
        };
        // The first bit is that of no column: none of the parent, or one far behind.
        let stands_for_unread = |column: &i16| of_parent & !1 & bit_of(*column) != 0;
        let unread = (1..64).zip(columns).filter(|(_, of_parent)| stands_for_unread(of_parent));
        unread.fold(0, |set, (column, _)| set | bit_of(column))
    }

    /// The same, of an entry that asks for rights.
    fn unread_by_rights(&self, place: usize) -> u64 {
        let entry = self.entries[place];
        let Some(names) = child!(entry.eref) else { return 0 };
        let (mut unread, mut there) = (0, 0);
        for (column, name) in (1..64).zip(children!(names.colnames as String)) {
            unread |= bit_of(column);
            // One that was dropped has no name.
            let is_there = child_text!(name.sval).is_some_and(|name| !name.is_empty());
            there |= if is_there { bit_of(column) } else { 0 };
        }
        let is_known = compat::for_each_selected_column(self.plan, entry, |column| {
            // A whole row, or a column of the server's own, such as the place of the row.
            unread &= if column > 0 { !bit_of(column) } else { 0 };
        });
        if is_known && unread & there != 0 { unread } else { 0 }
    }
}

/// Returns true if policies of row security may read any columns of a relation, or it has gone.
pub fn has_row_security(relation: u32) -> bool {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, pg_sys::Oid::from(relation));
    row.as_ref().and_then(CatalogRow::relation).is_none_or(|class| class.relrowsecurity)
}
