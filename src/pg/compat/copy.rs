//! What COPY reads.

/// Returns true if `COPY name TO` reads a materialized view, if it is populated. From 18 on.
pub const fn copies_materialized_views() -> bool {
    cfg!(feature = "pg18")
}
