//! One partitioned table: its partitions, and what the bounds of a query mean for each of them.

use pgrx::pg_sys;

use super::bound::{Bound, Comparison};
use super::limits::{Fate, Limits};
use super::order::Order;
use super::{list, range};
use crate::pg::compat::{PartitionColumn, PartitionStrategy, partition_column};
use crate::pg::error_passing::kept;
use crate::pg::server;

/// A partition of the table.
pub struct Partition {
    /// Its OID.
    pub relation: pg_sys::Oid,
    /// What the bounds mean for it.
    pub fate: Fate,
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
            decide(&Limits::of(info), &key, bounds, columns, &mut fates);
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
unsafe fn decide(limits: &Limits<'_>, key: &PartitionColumn, bounds: &[Bound], columns: &[i16], fates: &mut [Fate]) {
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
}
