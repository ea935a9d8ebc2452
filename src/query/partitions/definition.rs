//! What the catalog says of a table or partition now, and whether a snapshot sees that.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::pg::catalog_row::CatalogRow;

/// The active snapshot, which stays as long as a statement is planned or started.
///
/// # Errors
/// There is none that tells which transactions it sees.
pub fn active_snapshot<'s>() -> Result<&'s pg_sys::SnapshotData, Reason> {
    // SAFETY: asks for the head of the backend's stack of snapshots.
    let active =
        unsafe { if kept!(pg_sys::ActiveSnapshotSet()) { kept!(pg_sys::GetActiveSnapshot()).as_ref() } else { None } };
    active.filter(|snapshot| snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC).ok_or(Reason::Snapshot)
}

/// What the catalog says of a relation.
pub struct Definition {
    /// Its kind (`RELKIND_…`).
    pub kind: u8,
    is_temporary: bool,
    /// True if it is a partition of another.
    is_partition: bool,
    /// The snapshot that was asked about sees who wrote the row of the catalog.
    is_seen: bool,
}

impl Definition {
    /// Reads the definition of a relation that is locked, for rows that the snapshot sees.
    ///
    /// # Errors
    /// There is no such relation any more.
    pub fn read(relation: pg_sys::Oid, snapshot: &pg_sys::SnapshotData) -> Result<Self, Reason> {
        let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, relation).ok_or(Reason::DdlInProgress)?;
        let class = row.relation().ok_or(Reason::DdlInProgress)?;
        Ok(Self {
            kind: class.relkind as u8,
            is_temporary: class.relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP,
            is_partition: class.relispartition,
            is_seen: row.is_seen_by(snapshot),
        })
    }

    /// Checks that the relation is no temporary one.
    ///
    /// # Errors
    /// It is one.
    pub fn check_permanent(&self) -> Result<(), Reason> {
        if self.is_temporary { Err(Reason::TemporaryRelation) } else { Ok(()) }
    }

    /// Checks that every row that the snapshot sees in this partition, which is locked, is within its bounds.
    ///
    /// Bounds are checked when rows are written, and when a table becomes a partition; but then only for the rows that
    /// are there at that moment. An older snapshot may see rows that were deleted before, and are not within the
    /// bounds. The row of the catalog is written anew when a table becomes a partition, so a snapshot that sees who
    /// wrote it is younger than that.
    ///
    /// # Errors
    /// The snapshot may be older, or the relation is no partition any more.
    pub fn check_bounds_hold(&self) -> Result<(), Reason> {
        if self.is_partition && self.is_seen { Ok(()) } else { Err(Reason::DdlInProgress) }
    }
}
