//! How the heap tells which indexes an update concerns: all or none, and from 16 on by their kind.

#[cfg(feature = "pg15")]
pub type UpdatedIndexes = bool;
#[cfg(not(feature = "pg15"))]
pub type UpdatedIndexes = pgrx::pg_sys::TU_UpdateIndexes::Type;
