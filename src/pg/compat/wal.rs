//! What records of the WAL, and those who replay them, know.

use arrow_cache_core::RelationFile;
use pgrx::pg_sys;

/// The file that a block belongs to.
#[inline(always)]
pub fn file_of_block(block: &pg_sys::DecodedBkpBlock) -> RelationFile {
    #[cfg(feature = "pg15")]
    {
        RelationFile::new(block.rnode.dbNode.to_u32(), block.rnode.relNode.to_u32())
    }
    #[cfg(not(feature = "pg15"))]
    {
        RelationFile::new(block.rlocator.dbOid.to_u32(), block.rlocator.relNumber.to_u32())
    }
}

/// How many transactions have ended since the server's start. In recovery only the startup process changes this, and only it may call.
pub fn completed_transactions() -> u64 {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    // SAFETY: points into shared memory for the life of the process.
    let count = unsafe { &raw const (*pg_sys::ShmemVariableCache).xactCompletionCount };
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: points into shared memory for the life of the process.
    let count = unsafe { &raw const (*pg_sys::TransamVariables).xactCompletionCount };
    // SAFETY: an aligned word that nobody but the caller's process changes.
    unsafe { count.read_volatile() }
}
