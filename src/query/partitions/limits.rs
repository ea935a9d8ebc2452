//! The values that divide a table into partitions, and what the bounds of a query mean for a partition.

use pgrx::pg_sys;

/// What the bounds of a query mean for a partition.
#[derive(Clone, Copy, Default)]
pub struct Fate {
    /// It has no row that passes them all.
    pub is_empty: bool,
    /// The bounds, as bits, that all of its rows pass.
    pub implied: u64,
}

/// The sorted values that divide an open table into partitions.
pub struct Limits<'t>(&'t pg_sys::PartitionBoundInfoData);

impl<'t> Limits<'t> {
    /// What the server knows of the partitions of an open table whose key is one column.
    pub fn of(info: &'t pg_sys::PartitionBoundInfoData) -> Self {
        Self(info)
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.0.ndatums as usize
    }

    /// A value; none of a range that is not finite.
    pub fn value(&self, number: usize) -> pg_sys::Datum {
        assert!(number < self.len());
        // SAFETY: there are so many values, each an array with one item, because the key is one column.
        unsafe { **self.0.datums.add(number) }
    }

    /// Is the value of a range finite? Asked of ranges only.
    pub fn kind(&self, number: usize) -> pg_sys::PartitionRangeDatumKind::Type {
        assert!(number < self.len() && !self.0.kind.is_null());
        // SAFETY: ranges have as many kinds as values.
        unsafe { **self.0.kind.add(number) }
    }

    /// The partition that a value leads to, if there is one.
    pub fn partition(&self, number: usize) -> Option<usize> {
        assert!(number < self.0.nindexes as usize);
        // SAFETY: there are so many numbers of partitions.
        usize::try_from(unsafe { *self.0.indexes.add(number) }).ok()
    }

    /// The partition that accepts NULL, if there is one.
    pub fn null_partition(&self) -> Option<usize> {
        usize::try_from(self.0.null_index).ok()
    }

    /// The default partition, if there is one.
    pub fn default_partition(&self) -> Option<usize> {
        usize::try_from(self.0.default_index).ok()
    }
}
