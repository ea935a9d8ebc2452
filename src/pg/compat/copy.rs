//! What COPY reads.

/// Does `COPY name TO` read a materialized view, if it is populated? From 18 on.
pub const fn copies_materialized_views() -> bool {
    cfg!(feature = "pg18")
}
