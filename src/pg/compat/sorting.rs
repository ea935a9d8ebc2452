//! Sorting: clauses of ORDER BY, which say since 18 whether they sort downwards, and operators of B-trees.

use pgrx::pg_sys::{self, Oid};

use crate::pg::tree_making::new_node;

/// A clause that sorts by a target entry with this reference, by `operator`: downwards with NULLs first, or upwards
/// with NULLs last, as an index does it.
pub fn order_clause(reference: u32, equal: Oid, operator: Oid, downwards: bool) -> *mut pg_sys::SortGroupClause {
    let clause = new_node::<pg_sys::SortGroupClause>();
    // SAFETY: a new node.
    unsafe {
        (*clause).tleSortGroupRef = reference;
        (*clause).eqop = equal;
        (*clause).sortop = operator;
        (*clause).nulls_first = downwards;
        #[cfg(feature = "pg18")]
        {
            (*clause).reverse_sort = downwards;
        }
    }
    clause
}

/// Returns true if an operator compares like one of a B-tree: `<`, `<=`, `=`, `>=`, `>`, or `<>` beside such an `=`.
pub fn compares(operator: Oid) -> bool {
    // SAFETY: reads the catalogs about an operator.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return !kept!(pg_sys::get_op_btree_interpretation(operator)).is_null();
        #[cfg(feature = "pg18")]
        return !kept!(pg_sys::get_op_index_interpretation(operator)).is_null();
    }
}
