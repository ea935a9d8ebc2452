//! What a role may do with a relation, as the server's catalogs tell. Keeps nothing.

use pgrx::pg_sys;

use super::catalog_row::CatalogRow;
use super::server;

/// The role that the present code runs as. In a SECURITY DEFINER function that is the function's owner.
pub fn current_role() -> pg_sys::Oid {
    server::GetUserId()
}

/// Returns true if the relation is there, and the role may do this with it, or with some column of it.
pub fn has(role: pg_sys::Oid, relation: pg_sys::Oid, privilege: u32) -> bool {
    let mut missing = false;
    // SAFETY: catalog searches by OID; `missing` tells of a relation that is gone, so that nothing is raised.
    unsafe {
        let whole =
            kept!(pg_sys::pg_class_aclcheck_ext(relation, role, privilege as pg_sys::AclMode, &raw mut missing));
        if whole == pg_sys::AclResult::ACLCHECK_OK {
            return true;
        }
        !missing
            && kept!(pg_sys::pg_attribute_aclcheck_all(
                relation,
                role,
                privilege as pg_sys::AclMode,
                pg_sys::AclMaskHow::ACLMASK_ANY,
            )) == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// Returns true if the role may change rows of the relation in some way, or owns the relation.
pub fn may_change(role: pg_sys::Oid, relation: pg_sys::Oid) -> bool {
    // SAFETY: a search of memberships.
    let owns = || owner(relation).is_some_and(|owner| unsafe { kept!(pg_sys::has_privs_of_role(role, owner)) });
    [pg_sys::ACL_INSERT, pg_sys::ACL_UPDATE, pg_sys::ACL_DELETE, pg_sys::ACL_TRUNCATE]
        .into_iter()
        .any(|privilege| has(role, relation, privilege))
        || owns()
}

/// The owner of the relation; `None` if it is gone.
pub fn owner(relation: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, relation)?;
    row.relation().map(|class| class.relowner)
}
