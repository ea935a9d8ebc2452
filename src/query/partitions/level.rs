//! One partitioned table: its partitions, and what the bounds of a query mean for each of them.

use pgrx::pg_sys;

use super::bound::{Bound, Comparison};
use super::limits::{Fate, Limits};
use super::order::Order;
use super::{list, range};
use crate::pg::compat::{PartitionColumn, PartitionStrategy, partition_column, partition_key_columns};

/// A partition of the table.
pub struct Partition {
    /// Its OID.
    pub relation: pg_sys::Oid,
    /// What the bounds mean for it.
    pub fate: Fate,
}

/// What the bounds mean for a table.
pub struct Level {
    /// Its partitions, in the order that the planner reads them in.
    pub partitions: Vec<Partition>,
    /// The numbers of the columns of its key, 0 for an expression.
    pub key: Vec<i16>,
    /// The bounds on columns of its key, as bits.
    pub concerned: u64,
    /// The planner may leave out others than those that are empty here.
    pub is_unclear: bool,
}

/// The partitions of a table, in the order that the planner reads them in. The caller has locked the table; `is_partition` tells whether it is a partition itself. `columns` are the numbers of
/// the columns of the bounds in this table.
///
/// # Safety
/// The table must be partitioned, and the bounds part of a valid query.
pub unsafe fn partitions(table: pg_sys::Oid, is_partition: bool, bounds: &[Bound], columns: &[i16]) -> Level {
    // SAFETY: the relation is open until the end, and with it its key and what describes its partitions. An error leaves it to the resource
    // owner. Partitions that are being detached are left out if the active snapshot sees that, as the planner does.
    unsafe {
        let relation = kept!(pg_sys::relation_open(table, pg_sys::NoLock as _));
        let described = &*kept!(pg_sys::RelationGetPartitionDesc(relation, true));
        let count = described.nparts as usize;
        let mut fates = vec![Fate::default(); count];
        let key_columns = partition_key_columns(relation);
        let is_in_key = |column: &i16| key_columns.contains(column) || key_columns.contains(&0);
        let concerned: u64 =
            columns.iter().enumerate().filter(|(_, column)| is_in_key(column)).map(|(number, _)| 1u64 << number).sum();
        let mut compared = 0;
        let mut has_default = false;
        if let (Some(info), Some(key)) = (described.boundinfo.as_ref(), partition_column(relation)) {
            let limits = Limits::of(info);
            has_default = limits.default_partition().is_some();
            compared = decide(&limits, &key, bounds, columns, &mut fates);
        }
        let partition = |(number, fate)| Partition { relation: *described.oids.add(number), fate };
        let partitions = fates.into_iter().enumerate().map(partition).collect();
        kept!(pg_sys::relation_close(relation, pg_sys::NoLock as _));
        // The planner compares the conditions with the table's own bounds, too, if there is a default partition.
        let may_refute = is_partition && has_default && !bounds.is_empty();
        let is_unclear = compared != concerned.count_ones() as usize || may_refute;
        Level { partitions, key: key_columns, concerned, is_unclear }
    }
}

/// Decides what the bounds of a query mean for each partition. Returns how many of them were compared, or will be once
/// their values are known.
///
/// # Safety
/// As `partitions`; the table must be open.
unsafe fn decide(
    limits: &Limits<'_>,
    key: &PartitionColumn,
    bounds: &[Bound],
    columns: &[i16],
    fates: &mut [Fate],
) -> usize {
    let order = Order::of(key);
    let comparison = |(number, (bound, column)): (usize, (&Bound, &i16))| {
        // SAFETY: the caller's promise.
        unsafe { Comparison::of(bound, 1 << number, *column, key, &order) }
    };
    let comparisons: Vec<Comparison> = bounds.iter().zip(columns).enumerate().filter_map(comparison).collect();
    match key.strategy {
        PartitionStrategy::Range => range::decide(limits, &order, &comparisons, fates),
        PartitionStrategy::List => list::decide(limits, &order, &comparisons, fates),
    }
    // Without pruning the planner reads every partition.
    // SAFETY: a plain global of the backend.
    if !unsafe { pg_sys::enable_partition_pruning } {
        fates.iter_mut().for_each(|fate| fate.is_empty = false);
    }
    let later = bounds.iter().zip(columns).filter(|(bound, column)| bound.compares_later(**column, key)).count();
    comparisons.len() + later
}
