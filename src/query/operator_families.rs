//! Code of users that the server finds through operator families, without naming it in a query: how values are hashed and sorted by an
//! operator of the server's own, and which operators compare the bounds of a range. Reads catalogs; keeps nothing.

use pgrx::pg_sys;

use super::trusted_extensions::{is_trusted_family, is_trusted_function};
use crate::pg::lists::oids;
use crate::pg::object_ids::FIRST_UNPINNED_OID;

fn is_of_user(function: pg_sys::Oid) -> bool {
    function.to_u32() >= FIRST_UNPINNED_OID && !is_trusted_function(function)
}

fn is_family_of_user(family: pg_sys::Oid) -> bool {
    family.to_u32() >= FIRST_UNPINNED_OID && !is_trusted_family(family)
}

/// Are values hashed or sorted by code of a user where they are compared with this operator in bulk? An operator of the server's that has no
/// family of the server's may be put into one by a superuser. If it has one, the planner sorts by that: it takes the first family of the
/// list, which is in the order of OIDs (an index scan of pg_amop), and OIDs of users are the greater ones. It takes another family only to
/// merge with the rows of an index of that family, in one of several plans.
pub fn hash_or_sort_by_user(operator: pg_sys::Oid) -> bool {
    let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: reads catalogs about an operator that the query uses; the list holds OIDs.
    unsafe {
        let hashes = kept!(pg_sys::get_op_hash_functions(operator, &raw mut left, &raw mut right));
        let sorting = oids(kept!(pg_sys::get_mergejoin_opfamilies(operator))).next();
        (hashes && (is_of_user(left) || is_of_user(right))) || sorting.is_some_and(is_family_of_user)
    }
}

/// Are there operators of a user among those that compare the bounds of a range, of elements of this type? From 17 on the planner puts them
/// in the place of `element <@ range` if the range is a constant.
pub fn compares_by_user(family: pg_sys::Oid, element: pg_sys::Oid) -> bool {
    (pg_sys::BTLessStrategyNumber..=pg_sys::BTGreaterStrategyNumber).any(|strategy| {
        // SAFETY: reads catalogs; InvalidOid for what is not there.
        let (operator, function) = unsafe {
            let operator = kept!(pg_sys::get_opfamily_member(family, element, element, strategy as i16));
            (operator, kept!(pg_sys::get_opcode(operator)))
        };
        operator.to_u32() >= FIRST_UNPINNED_OID || is_of_user(function)
    })
}

/// Returns true if values of this type are ordered, or hashed, by code of the server alone (or of extensions that the DBA
/// trusts): the family, and the function. Values that hold others are compared by whatever orders those.
pub fn is_ordered_by_server(family: pg_sys::Oid, type_oid: pg_sys::Oid, function: pg_sys::Oid) -> bool {
    let holds_others =
        matches!(type_oid, pg_sys::ANYARRAYOID | pg_sys::ANYRANGEOID | pg_sys::ANYMULTIRANGEOID | pg_sys::RECORDOID);
    !holds_others && !is_family_of_user(family) && !is_of_user(function)
}
