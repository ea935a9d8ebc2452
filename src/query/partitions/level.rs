//! One partitioned table: its partitions, and what the bounds of a query mean for each of them.

use std::marker::PhantomData;

use pgrx::pg_sys;

use super::bound::{Bound, Comparison};
use super::order::Order;
use super::{list, range};
use crate::pg::compat::{PartitionColumn, PartitionStrategy, partition_column};
use crate::pg::error_passing::kept;
use crate::pg::server;

/// What the bounds of a query mean for a partition.
#[derive(Clone, Copy, Default)]
pub struct Fate {
    /// It has no row that passes them all.
    pub is_empty: bool,
    /// The bounds, as bits, that all of its rows pass.
    pub implied: u64,
}

/// A partition of the table.
pub struct Partition {
    /// Its OID.
    pub relation: pg_sys::Oid,
    /// What the bounds mean for it.
    pub fate: Fate,
}

/// The sorted values that bound the partitions of an open table.
pub struct Bounds<'t> {
    info: &'t pg_sys::PartitionBoundInfoData,
    table: PhantomData<&'t ()>,
}

impl Bounds<'_> {
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

/// The partitions of a table, in the order that the planner reads them in. The caller has locked the table. `columns` are the numbers of
/// the columns of the bounds in this table.
///
/// # Safety
/// The table must be partitioned, and the bounds part of a valid query.
pub unsafe fn partitions(table: pg_sys::Oid, bounds: &[Bound], columns: &[i16]) -> Vec<Partition> {
    // SAFETY: the relation is open until the end, and with it its key and what describes its partitions. An error leaves it to the resource
    // owner. Partitions that are being detached are left out if the active snapshot sees that, as the planner does.
    unsafe {
        let relation = kept!(server::relation_open(table, pg_sys::NoLock as _));
        let described = &*kept!(server::RelationGetPartitionDesc(relation, true));
        let count = described.nparts as usize;
        let mut fates = vec![Fate::default(); count];
        if let (Some(info), Some(key)) = (described.boundinfo.as_ref(), partition_column(relation)) {
            decide(&Bounds { info, table: PhantomData }, &key, bounds, columns, &mut fates);
        }
        let partition = |(number, fate)| Partition { relation: *described.oids.add(number), fate };
        let partitions = fates.into_iter().enumerate().map(partition).collect();
        pg_sys::relation_close(relation, pg_sys::NoLock as _);
        partitions
    }
}

/// Decides what the bounds of a query mean for each partition.
///
/// # Safety
/// As `partitions`; the table must be open.
unsafe fn decide(
    partition_bounds: &Bounds<'_>,
    key: &PartitionColumn,
    bounds: &[Bound],
    columns: &[i16],
    fates: &mut [Fate],
) {
    let order = Order::of(key);
    let comparison = |(number, (bound, column)): (usize, (&Bound, &i16))| {
        // SAFETY: the caller's promise.
        unsafe { Comparison::of(bound, 1 << number, *column, key, &order) }
    };
    let comparisons: Vec<Comparison> = bounds.iter().zip(columns).enumerate().filter_map(comparison).collect();
    match key.strategy {
        PartitionStrategy::Range => range::decide(partition_bounds, &order, &comparisons, fates),
        PartitionStrategy::List => list::decide(partition_bounds, &order, &comparisons, fates),
    }
    // Without pruning the planner reads every partition.
    // SAFETY: a plain global of the backend.
    if !unsafe { pg_sys::enable_partition_pruning } {
        fates.iter_mut().for_each(|fate| fate.is_empty = false);
    }
}
