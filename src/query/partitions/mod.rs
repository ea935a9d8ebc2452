//! Which leaves of a partitioned table may hold rows that a query asks for, and which of the query's bounds must still be asked in each.
//!
//! | question | file |
//! |---|---|
//! | Which leaves are there? | here (`leaves`) |
//! | Does a bound say something about a partition key? | `bound` |
//! | What do the bounds mean for the partitions of one table? | `level`: `range`, `list`, by the `order` of the key and the `limits` of the partitions |
//! | Is a row that the snapshot sees within its partition's bounds? | `definition` |
//!
//! A leaf that is left out has no row for which all bounds are true. A bound that is not asked in a leaf is true for each of its rows, as
//! the active snapshot and all younger ones see them. Leaves are left out by the rules of the planner's own pruning, or by fewer, and by
//! none where pruning is off: a row that is not within the bounds of its partition (foreign tables) shows here only where it shows in an
//! ordinary plan. Locks what it lists; keeps nothing.

mod bound;
mod definition;
mod level;
mod limits;
mod list;
mod order;
mod range;

use std::ffi::c_char;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

pub use bound::Bound;
use definition::{ActiveSnapshot, Definition};

use crate::pg::compat::lock_at_once;
use crate::pg::error_passing::keeping;
use crate::pg::inheritance;
use crate::pg::lists::oids;

/// A table without partitions whose rows are among those of the table that the query names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// Its OID.
    pub relation: pg_sys::Oid,
    /// The bounds that must be asked in it: bit 0 is the first one.
    pub asked: u64,
    /// One of these is about a partition key: the leaf lies at an end of a window.
    pub is_at_end: bool,
}

/// The leaves of a table.
#[derive(Default, Debug)]
pub struct Leaves {
    /// Those that may have rows within all bounds, in the order in which the planner reads and locks them.
    pub leaves: Vec<Leaf>,
    /// The tables whose definitions say which leaves there are: the one that was asked for, and the partitioned tables below it that were passed.
    pub tables: Vec<pg_sys::Oid>,
    /// How many leaves there are, with those that were left out. A partitioned table that was left out counts as one.
    pub total: usize,
}

/// Lists the leaves of a table under the active snapshot: the leaves of a partitioned table, or a table and those that inherit from it.
/// Locks all that it lists, as the planner does, and nothing that the planner would leave out. `prunes_otherwise` is asked of the columns of each
/// partition key, by their numbers in the table, with 0 for an expression: may the planner leave out partitions for anything but the bounds?
///
/// # Errors
/// Why nothing can be said: too many bounds, temporary or foreign tables, definitions that are newer than the snapshot, or
/// partitions that the planner may leave out for reasons that are not known here.
///
/// # Safety
/// The bounds must be part of a valid query about the table, whose columns they name.
pub unsafe fn leaves(
    relation: pg_sys::Oid,
    bounds: &[Bound],
    prunes_otherwise: &dyn Fn(&[i16]) -> bool,
) -> Result<Leaves, Reason> {
    let all = match bounds.len() {
        0 => 0,
        count @ 1..=64 => u64::MAX >> (64 - count),
        _ => return Err(Reason::TooComplex),
    };
    let snapshot = ActiveSnapshot::take()?;
    lock(relation)?;
    let root = Definition::read(relation, &snapshot)?;
    root.check_permanent()?;
    match root.kind {
        // SAFETY: the caller's promise.
        pg_sys::RELKIND_PARTITIONED_TABLE => unsafe {
            of_partitioned(relation, bounds, all, &snapshot, prunes_otherwise)
        },
        _ => of_parent(relation, all, &snapshot),
    }
}

/// The leaves of a table and of those that inherit from it, itself among them. Nothing is known of their rows.
fn of_parent(relation: pg_sys::Oid, all: u64, snapshot: &ActiveSnapshot) -> Result<Leaves, Reason> {
    let mut found = Leaves { tables: vec![relation], ..Leaves::default() };
    // SAFETY: a list of OIDs, in the current memory context.
    for child in unsafe { oids(inheritance::locked_inheritors(relation)) } {
        let definition = Definition::read(child, snapshot)?;
        if !definition.is_temporary_of_others() {
            definition.check_permanent()?;
            if definition.kind == pg_sys::RELKIND_FOREIGN_TABLE {
                return Err(Reason::TooComplex);
            }
            found.leaves.push(Leaf { relation: child, asked: all, is_at_end: all != 0 });
        }
    }
    found.total = found.leaves.len();
    Ok(found)
}

/// The leaves of a partitioned table.
///
/// # Safety
/// As `leaves`.
unsafe fn of_partitioned(
    root: pg_sys::Oid,
    bounds: &[Bound],
    all: u64,
    snapshot: &ActiveSnapshot,
    prunes_otherwise: &dyn Fn(&[i16]) -> bool,
) -> Result<Leaves, Reason> {
    let names = Names::of(root, bounds);
    let mut found = Leaves::default();
    // The next one stands at the end.
    let mut waiting = vec![(root, all)];
    let mut on_keys = 0;
    while let Some((relation, asked)) = waiting.pop() {
        lock(relation)?;
        let definition = Definition::read(relation, snapshot)?;
        definition.check_permanent()?;
        if relation != root {
            definition.check_bounds_hold()?;
        }
        match definition.kind {
            pg_sys::RELKIND_PARTITIONED_TABLE => {
                found.tables.push(relation);
                let columns = names.columns_of(relation);
                // SAFETY: a partitioned table; the caller's promise.
                let level = unsafe { level::partitions(relation, definition.is_partition, bounds, &columns) };
                let partitions = level.partitions;
                on_keys |= level.concerned;
                let key: Vec<i16> = level.key.into_iter().map(|column| number_in(root, relation, column)).collect();
                if level.is_unclear || prunes_otherwise(&key) {
                    return Err(Reason::TooComplex);
                }
                found.total += partitions.iter().filter(|partition| partition.fate.is_empty).count();
                let remaining = partitions.iter().rev().filter(|partition| !partition.fate.is_empty);
                waiting.extend(remaining.map(|partition| (partition.relation, asked & !partition.fate.implied)));
            }
            // Nobody checks its rows, and the server may be able to leave it out.
            pg_sys::RELKIND_FOREIGN_TABLE => return Err(Reason::TooComplex),
            _ => found.leaves.push(Leaf { relation, asked, is_at_end: false }),
        }
    }
    found.leaves.iter_mut().for_each(|leaf| leaf.is_at_end = leaf.asked & on_keys != 0);
    found.total += found.leaves.len();
    Ok(found)
}

/// Locks a table that planning would lock.
///
/// # Errors
/// `DdlInProgress` if that is to be waited for, or there is no room for the lock: both are left to the server.
fn lock(relation: pg_sys::Oid) -> Result<(), Reason> {
    // SAFETY: the lock goes with the transaction.
    let is_locked = unsafe { keeping(|| lock_at_once(relation)) };
    if is_locked { Ok(()) } else { Err(Reason::DdlInProgress) }
}

/// The number that a column of a partition has in the root; 0 for an expression.
fn number_in(root: pg_sys::Oid, table: pg_sys::Oid, column: i16) -> i16 {
    if column <= 0 {
        return 0;
    }
    // SAFETY: reads a catalog; partitions have the columns of the root.
    unsafe { kept!(pg_sys::get_attnum(root, kept!(pg_sys::get_attname(table, column, false)))) }
}

/// The names of the bounds' columns, which all partitions share while their numbers may differ.
struct Names(Vec<Option<*mut c_char>>);

impl Names {
    fn of(root: pg_sys::Oid, bounds: &[Bound]) -> Self {
        let name = |bound: &Bound| {
            // SAFETY: reads a catalog; null for a column that is not there, else a text in the current memory context.
            let name = unsafe { kept!(pg_sys::get_attname(root, bound.column, true)) };
            (bound.column > 0 && !name.is_null()).then_some(name)
        };
        Self(bounds.iter().map(name).collect())
    }

    /// The numbers of the columns in a table, 0 for one that has none.
    fn columns_of(&self, table: pg_sys::Oid) -> Vec<i16> {
        // SAFETY: reads a catalog by the name that was found.
        self.0.iter().map(|name| name.map_or(0, |name| unsafe { kept!(pg_sys::get_attnum(table, name)) })).collect()
    }
}
