//! What the server counts about relations.

use arrow_cache_core::versions::noted_rows::RowChanges;
use pgrx::pg_sys;

/// The OID of the relation that was counted.
pub fn counted_relation(status: &pg_sys::PgStat_TableStatus) -> pg_sys::Oid {
    #[cfg(feature = "pg15")]
    {
        status.t_id
    }
    #[cfg(not(feature = "pg15"))]
    {
        status.id
    }
}

/// How many changes of its rows are counted of earlier transactions, and of levels that were rolled back.
pub fn changes_over(status: &pg_sys::PgStat_TableStatus) -> RowChanges {
    #[cfg(feature = "pg15")]
    {
        let counts = &status.t_counts;
        RowChanges {
            inserted: counts.t_tuples_inserted,
            updated: counts.t_tuples_updated,
            deleted: counts.t_tuples_deleted,
        }
    }
    #[cfg(not(feature = "pg15"))]
    {
        let counts = &status.counts;
        RowChanges { inserted: counts.tuples_inserted, updated: counts.tuples_updated, deleted: counts.tuples_deleted }
    }
}
