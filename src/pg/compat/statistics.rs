//! What the server counts about relations.

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
