//! The indexes of a relation. Keeps nothing.

use pgrx::pg_sys;

use super::lists::oids;

/// The indexes of a relation that is locked; none of one that is gone.
pub fn indexes_of(relation: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: the reference keeps the description; an error leaves the reference to the resource owner.
    unsafe {
        let relation = kept!(pg_sys::RelationIdGetRelation(relation));
        if relation.is_null() {
            return Vec::new();
        }
        let indexes = oids(kept!(pg_sys::RelationGetIndexList(relation))).collect();
        kept!(pg_sys::RelationClose(relation));
        indexes
    }
}
