//! Which leaves of a partitioned table may hold rows that a query asks for, and which of the query's bounds must still
//! be asked in each.
//!
//! | question | file |
//! |---|---|
//! | Which leaves are there? | here (`leaves`) |
//! | What does a bound say of the table, and what its opposite? | `bound` |
//! | What do conditions mean for the partitions of one table? The planner's own pruning says it. | `level` |
//! | Is a row that the snapshot sees within its partition's bounds? | `definition` |
//!
//! A leaf that is left out has no row for which all conditions are true. A bound that is not asked in a leaf is true
//! for each of its rows, as the active snapshot and all younger ones see them. Where pruning is off no leaf is left
//! out, and all bounds are asked: a row that is not within the bounds of its partition (foreign tables) shows here only
//! where it shows in an ordinary plan. Locks what it lists; keeps nothing.

mod bound;
mod definition;
mod level;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

pub use bound::Bound;
use definition::Definition;
pub use definition::active_snapshot;
use level::Asked;

use crate::pg::compat::lock_at_once;
use crate::pg::error_passing::keeping;

/// A table without partitions whose rows are among those of the table that the query names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// Its OID.
    pub relation: pg_sys::Oid,
    /// The bounds that must be asked in it: bit 0 is the first one.
    pub asked: u64,
}

/// The leaves of a table.
#[derive(Default, Debug)]
pub struct Leaves {
    /// Those that may have rows within all bounds, in the order in which the planner reads and locks them.
    pub leaves: Vec<Leaf>,
    /// The tables whose definitions say which leaves there are: the one that was asked for, and the partitioned tables
    /// below it that were passed.
    pub tables: Vec<pg_sys::Oid>,
    /// How many leaves there are, with those that were left out. A partitioned table that was left out counts as one.
    pub total: usize,
}

/// Lists the leaves of a partitioned table under the active snapshot. Locks all that it lists, as the planner does, and
/// nothing that the planner would leave out. `others` are conditions besides the bounds, for whose sake leaves are left
/// out as well.
///
/// # Errors
/// Why nothing can be said: too many bounds, temporary or foreign tables, definitions that are newer than the snapshot,
/// or partitions that code of users makes.
///
/// # Safety
/// The bounds must be part of a valid query about the table, whose columns they name; `others` is a list of conditions
/// on the columns of the table, which are those of relation 1.
pub unsafe fn leaves(table: pg_sys::Oid, bounds: &[Bound], others: *mut pg_sys::List) -> Result<Leaves, Reason> {
    let all = match bounds.len() {
        0 => 0,
        count @ 1..=64 => u64::MAX >> (64 - count),
        _ => return Err(Reason::TooComplex),
    };
    let snapshot = active_snapshot()?;
    let asked = Asked { bounds: bounds.iter().map(Bound::about_table).collect(), others };
    let mut found = Leaves::default();
    // The next one stands at the end.
    let mut waiting = vec![(table, all)];
    while let Some((relation, left)) = waiting.pop() {
        lock(relation)?;
        let definition = Definition::read(relation, snapshot)?;
        definition.check_permanent()?;
        if relation != table {
            definition.check_bounds_hold()?;
        }
        match definition.kind {
            pg_sys::RELKIND_PARTITIONED_TABLE => {
                found.tables.push(relation);
                // SAFETY: a partitioned table, which is locked, as the first one is; the caller's promise.
                let partitions = unsafe { level::partitions(relation, table, &asked) }?;
                let (empty, read): (Vec<_>, Vec<_>) = partitions.into_iter().partition(|partition| partition.is_empty);
                found.total += empty.len();
                let read = read.iter().rev();
                waiting.extend(read.map(|partition| (partition.relation, left & !partition.implied)));
            }
            // Nobody checks its rows, and the server may be able to leave it out.
            pg_sys::RELKIND_FOREIGN_TABLE => return Err(Reason::TooComplex),
            _ => found.leaves.push(Leaf { relation, asked: left }),
        }
    }
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
