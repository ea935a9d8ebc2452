//! What records of the WAL say of files.

use pgrx::pg_sys;

use crate::pg::wal_record::RelationFile;

/// The file that a block belongs to.
pub fn file_of_block(block: &pg_sys::DecodedBkpBlock) -> RelationFile {
    #[cfg(feature = "pg15")]
    let (database, number) = (block.rnode.dbNode, block.rnode.relNode);
    #[cfg(not(feature = "pg15"))]
    let (database, number) = (block.rlocator.dbOid, block.rlocator.relNumber);
    RelationFile { database: database.to_u32(), number: number.to_u32() }
}
