//! What a process has found out about relations, each until its definition may have changed. Bounded; no other process
//! sees it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Relations remembered; when there are more, all are forgotten.
const MOST: usize = 4096;

/// A table with a line for each relation, by number.
pub struct KnownRelations<V> {
    lines: RefCell<BTreeMap<u32, V>>,
    /// How often something was forgotten.
    changes: Cell<u64>,
}

impl<V: Copy> KnownRelations<V> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { lines: RefCell::new(BTreeMap::new()), changes: Cell::new(0) }
    }

    /// What is known of a relation, or else what `find` finds out. That is remembered, unless `find` was told meanwhile
    /// of a changed relation: it may have read the definition before the change.
    pub fn get_or_find(&self, relation: u32, find: impl FnOnce() -> V) -> V {
        if let Some(known) = self.lines.borrow().get(&relation).copied() {
            return known;
        }
        let changes = self.changes.get();
        // Not borrowed meanwhile: reading a catalog may bring messages about changed relations.
        let found = find();
        if self.changes.get() == changes {
            let mut lines = self.lines.borrow_mut();
            if lines.len() >= MOST {
                lines.clear();
            }
            lines.insert(relation, found);
        }
        found
    }

    /// Forgets a relation, whose definition may have changed.
    pub fn forget(&self, relation: u32) {
        self.changes.set(self.changes.get() + 1);
        self.lines.borrow_mut().remove(&relation);
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.changes.set(self.changes.get() + 1);
        self.lines.borrow_mut().clear();
    }
}

impl<V: Copy> Default for KnownRelations<V> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_not_looked_for_again() {
        let known = KnownRelations::new();
        assert_eq!(known.get_or_find(1, || "first"), "first");
        assert_eq!(known.get_or_find(1, || unreachable!()), "first");
        known.forget(1);
        assert_eq!(known.get_or_find(1, || "second"), "second");
        known.clear();
        assert_eq!(known.get_or_find(1, || "third"), "third");
    }

    #[test]
    fn what_changes_while_it_is_looked_for_is_not_remembered() {
        for change in [|known: &KnownRelations<&str>| known.forget(1), |known: &KnownRelations<&str>| known.clear()] {
            let known = KnownRelations::new();
            let found = known.get_or_find(1, || {
                change(&known);
                "before"
            });
            assert_eq!(found, "before");
            assert_eq!(known.get_or_find(1, || "after"), "after");
        }
    }

    #[test]
    fn the_table_is_bounded() {
        let known = KnownRelations::new();
        for relation in 0..=u32::try_from(MOST).expect("small") {
            known.get_or_find(relation, || ());
        }
        assert_eq!(known.lines.borrow().len(), 1);
    }
}
