//! What records of the WAL say of files.

use pgrx::pg_sys;

/// The name of a relation's file, apart from its tablespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RelationFile {
    /// The database; 0 for the catalogs that all databases share.
    pub database: u32,
    /// The number in the database (`relfilenode`).
    pub number: u32,
}

/// The file that a block belongs to.
pub fn file_of_block(block: &pg_sys::DecodedBkpBlock) -> RelationFile {
    #[cfg(feature = "pg15")]
    let (database, number) = (block.rnode.dbNode, block.rnode.relNode);
    #[cfg(not(feature = "pg15"))]
    let (database, number) = (block.rlocator.dbOid, block.rlocator.relNumber);
    RelationFile { database: database.to_u32(), number: number.to_u32() }
}
