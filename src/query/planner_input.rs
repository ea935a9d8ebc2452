//! What a plan computes that no query tree shows, because the planner takes it from the definitions of relations: the
//! expressions of virtual columns (18), and indexes whose access methods are of users. Constraints, predicates and
//! operator classes only decide which of several plans is made. Reads catalogs; keeps nothing.

use std::ffi::CStr;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::eligibility;
use super::opened_relations::Opened;
use super::relations::{self, RelationRefusal};
use crate::pg::catalog_row::CatalogRow;
use crate::pg::compat;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::tree::Tree;

/// Checks the definitions of a plan's relations, which this transaction has locked. `opened` is what the plan's
/// executor opens.
///
/// # Errors
/// The relation or index to blame, and why.
pub fn check(plan: Tree<'_, pg_sys::PlannedStmt>, opened: &Opened) -> Result<(), RelationRefusal> {
    for relation in relations::read_by(plan) {
        check_virtual_columns(relation)?;
    }
    opened.indexes.iter().try_for_each(|index| check_method(*index))?;
    if opened.has_unknown_nodes {
        let relation = relations::read_by(plan).next().unwrap_or(pg_sys::InvalidOid);
        return Err(RelationRefusal { reason: Reason::TooComplex, relation });
    }
    Ok(())
}

/// Checks the expressions of virtual columns. That one reads settings would not be seen in the query, which would say
/// so of itself for cursors.
fn check_virtual_columns(relation: pg_sys::Oid) -> Result<(), RelationRefusal> {
    if !compat::has_virtual_columns(relation) {
        return Ok(());
    }
    // SAFETY: the reference keeps the description; an error leaves the reference to the resource owner.
    let reason = unsafe {
        let open = kept!(pg_sys::RelationIdGetRelation(relation));
        if open.is_null() {
            return Err(RelationRefusal { reason: Reason::UnsupportedRelation, relation });
        }
        let reason = compat::virtual_expressions((*open).rd_att).into_iter().find_map(refusal_unless_fixed);
        kept!(pg_sys::RelationClose(open));
        reason
    };
    reason.map_or(Ok(()), |reason| Err(RelationRefusal { reason, relation }))
}

/// Why an expression that the server has written as text is refused, one that reads settings among them; `None` if it
/// is not.
fn refusal_unless_fixed(text: &CStr) -> Option<Reason> {
    // SAFETY: the server reads a valid tree from the text, into the current memory context, or raises.
    let expression = unsafe { Tree::enter(kept!(pg_sys::stringToNode(text.as_ptr())).cast()) };
    match eligibility::check_expression(expression) {
        Ok(reads_settings) => reads_settings.then_some(Reason::StableFunction),
        Err(reason) => Some(reason),
    }
}

/// Refuses an index with an access method of a user, which may give other rows than a scan of the table, by settings of
/// its own, and one that is gone.
fn check_method(index: pg_sys::Oid) -> Result<(), RelationRefusal> {
    let is_of_server = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, index)
        .is_some_and(|row| row.relation().is_some_and(|class| class.relam.to_u32() < FIRST_USER_OID));
    if is_of_server { Ok(()) } else { Err(RelationRefusal { reason: Reason::IndexMethod, relation: index }) }
}
