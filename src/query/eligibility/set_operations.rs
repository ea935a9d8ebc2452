//! The conversions below set operations. The parser leaves the columns of both sides in their own types, and the
//! planner converts them by the implicit casts to the common type. No node of the query names these casts, so they are
//! looked up here as the planner does it.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::EligibilityChecker;
use super::node_details::type_of;
use crate::pg::tree::{Tree, child, child_oids, children};
use crate::pg::tree_search::entry_at;

impl EligibilityChecker {
    /// Checks the casts from the types of both sides to those of a set operation, which belongs to the innermost query
    /// that is checked. True stops the walk.
    pub(super) fn check_conversions(&mut self, operation: Tree<'_, pg_sys::SetOperationStmt>) -> bool {
        let wanted: Vec<_> = child_oids!(operation.colTypes).collect();
        [child!(operation.larg), child!(operation.rarg)].into_iter().any(|side| {
            let Some(given) =
                side.and_then(|side| self.types_of_side(side)).filter(|given| given.len() == wanted.len())
            else {
                return self.refuse(Reason::TooComplex);
            };
            given.into_iter().zip(&wanted).any(|(from, to)| from != *to && self.check_conversion(from, *to))
        })
    }

    /// The types of the columns of one side.
    fn types_of_side(&self, side: Tree<'_, pg_sys::Node>) -> Option<Vec<pg_sys::Oid>> {
        if let Some(operation) = side.as_a::<pg_sys::SetOperationStmt>() {
            return Some(child_oids!(operation.colTypes).collect());
        }
        let place = side.as_a::<pg_sys::RangeTblRef>()?.rtindex;
        let query = self.queries.innermost()?;
        let entry = entry_at(child!(query.rtable), place)?;
        let columns = child!(entry.subquery)?;
        let mut types = Vec::new();
        for column in children!(columns.targetList as TargetEntry).filter(|column| !column.resjunk) {
            types.push(type_of(child!(column.expr)?.as_node()));
        }
        Some(types)
    }

    /// Checks the implicit cast from one type to another.
    fn check_conversion(&mut self, from: pg_sys::Oid, to: pg_sys::Oid) -> bool {
        let mut function = pg_sys::InvalidOid;
        // SAFETY: reads catalogs.
        let path = unsafe {
            kept!(pg_sys::find_coercion_pathway(
                to,
                from,
                pg_sys::CoercionContext::COERCION_IMPLICIT,
                &raw mut function
            ))
        };
        self.note_type(to);
        match path {
            pg_sys::CoercionPathType::COERCION_PATH_RELABELTYPE => false,
            pg_sys::CoercionPathType::COERCION_PATH_FUNC => self.check_function(function),
            _ => self.refuse(Reason::TooComplex),
        }
    }
}
