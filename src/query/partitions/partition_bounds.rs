//! The values that bound the partitions of one table, as the server keeps them, and what is found out about each partition by them.

use pgrx::pg_sys;

/// What the bounds of a query mean for a partition.
#[derive(Clone, Copy, Default)]
pub struct Fate {
    /// It has no row that passes them all.
    pub is_empty: bool,
    /// The bounds, as bits, that all of its rows pass.
    pub implied: u64,
}

/// The sorted values that bound the partitions of an open table.
pub struct Bounds<'t> {
    info: &'t pg_sys::PartitionBoundInfoData,
}

impl<'t> Bounds<'t> {
    /// The bounds of a table that stays open as long as this value is used.
    pub fn of(info: &'t pg_sys::PartitionBoundInfoData) -> Self {
        Self { info }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.info.ndatums as usize
    }

    /// A value; none of a range that is not finite.
    pub fn value(&self, number: usize) -> pg_sys::Datum {
        assert!(number < self.len());
        // SAFETY: there are so many values, each an array with one item, because the key is one column.
        unsafe { **self.info.datums.add(number) }
    }

    /// Is the value of a range finite? Asked of ranges only.
    pub fn kind(&self, number: usize) -> pg_sys::PartitionRangeDatumKind::Type {
        assert!(number < self.len() && !self.info.kind.is_null());
        // SAFETY: ranges have as many kinds as values.
        unsafe { **self.info.kind.add(number) }
    }

    /// The partition that a value leads to, if there is one.
    pub fn partition(&self, number: usize) -> Option<usize> {
        assert!(number < self.info.nindexes as usize);
        // SAFETY: there are so many numbers of partitions.
        usize::try_from(unsafe { *self.info.indexes.add(number) }).ok()
    }

    /// The partition that accepts NULL, if there is one.
    pub fn null_partition(&self) -> Option<usize> {
        usize::try_from(self.info.null_index).ok()
    }

    /// The default partition, if there is one.
    pub fn default_partition(&self) -> Option<usize> {
        usize::try_from(self.info.default_index).ok()
    }
}
