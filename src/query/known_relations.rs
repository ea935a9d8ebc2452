//! What this backend has found out about relations, each until its definition may have changed. Bounded; no other process sees it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use pgrx::pg_sys;

/// Relations remembered; when there are more, all are forgotten.
const MOST: usize = 4096;

/// A table with a line for each relation, by OID.
pub struct KnownRelations<V>(RefCell<BTreeMap<u32, V>>);

impl<V: Copy> KnownRelations<V> {
    /// An empty table.
    pub const fn new() -> Self {
        Self(RefCell::new(BTreeMap::new()))
    }

    /// What is known of a relation, or else what `find` finds out, which is remembered.
    pub fn get_or_find(&self, relation: pg_sys::Oid, find: impl FnOnce(pg_sys::Oid) -> V) -> V {
        let number = relation.to_u32();
        if let Some(known) = self.0.borrow().get(&number).copied() {
            return known;
        }
        // Not borrowed meanwhile: a look at a catalog may bring messages about changed relations.
        let found = find(relation);
        let mut known = self.0.borrow_mut();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(number, found);
        found
    }

    /// Forgets a relation, whose definition may have changed; InvalidOid stands for all. Calls nothing of the server's.
    pub fn forget(&self, relation: pg_sys::Oid) {
        if relation == pg_sys::InvalidOid {
            self.clear();
        } else {
            self.0.borrow_mut().remove(&relation.to_u32());
        }
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}
