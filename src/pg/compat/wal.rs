//! What records of the WAL, and those who replay them, know.

use std::mem::offset_of;

use arrow_cache_core::RelationFile;
use pgrx::pg_sys;
#[cfg(not(feature = "pg15"))]
use pgrx::pg_sys::RelFileLocator as Locator;
#[cfg(feature = "pg15")]
use pgrx::pg_sys::RelFileNode as Locator;

/// Where the OIDs of the database and of the file stand in the name of a file.
#[cfg(feature = "pg15")]
const DATABASE_AND_FILE: [usize; 2] = [offset_of!(Locator, dbNode), offset_of!(Locator, relNode)];
#[cfg(not(feature = "pg15"))]
const DATABASE_AND_FILE: [usize; 2] = [offset_of!(Locator, dbOid), offset_of!(Locator, relNumber)];

const _: () = assert!(DATABASE_AND_FILE[1] == DATABASE_AND_FILE[0] + size_of::<u32>());

/// The file that a block belongs to.
#[inline(always)]
pub fn file_of_block(block: &pg_sys::DecodedBkpBlock) -> RelationFile {
    #[cfg(feature = "pg15")]
    let locator = &raw const block.rnode;
    #[cfg(not(feature = "pg15"))]
    let locator = &raw const block.rlocator;
    // SAFETY: both OIDs stand behind each other in the locator, as is asserted above. The word need not be aligned.
    RelationFile::of_neighbours(unsafe { locator.byte_add(DATABASE_AND_FILE[0]).cast::<u64>().read_unaligned() })
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
