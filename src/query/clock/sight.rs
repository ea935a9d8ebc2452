//! What canonical bounds are found with: a snapshot, the relations that may be asked, and the plan, which tells what is
//! read as the rows of a relation. Reads plans and catalogs; keeps nothing.

use arrow_cache_core::{Reason, RoomyVec};
use pgrx::pg_sys::{self, Oid, RTEKind};

use crate::pg::index_search::{Found, Limit, Rows, TableColumn, TimeOrder};
use crate::pg::tree::{Tree, children};
use crate::query::scan_of_parts::{leaves_of, scan_of_parts};

/// Most tables in which one bound is sought.
const MOST_TABLES: usize = 256;
/// Most leaves of a plan that combines parts: giving the stored parts is quicker than seeking a bound in more of them.
const MOST_LEAVES: usize = 32;

/// Finds bounds where no index tells.
pub trait Unindexed {
    /// The greatest value of the column, up to a limit, among the rows of the table that the snapshot sees. The table
    /// is locked.
    ///
    /// # Errors
    /// Why it is not sought.
    fn greatest(&self, column: TableColumn, rows: Rows, order: TimeOrder, limit: Limit) -> Result<Found, Reason>;
}

/// What canonical bounds are found with.
#[derive(Clone, Copy)]
pub struct Sight<'q> {
    /// The snapshot that the statement runs under, or is likely to: an MVCC snapshot that is registered or active.
    pub snapshot: &'q pg_sys::SnapshotData,
    /// The relations that the answer rests on, ascending: those that may be asked. `None` if all that the query names
    /// are locked, and the bounds are found again before an answer is used.
    pub relations: Option<&'q [u32]>,
    /// The plan of the statement, if it has one: without it, relations with children are not asked.
    pub plan: Option<Tree<'q, pg_sys::PlannedStmt>>,
    /// Who is asked where no index tells.
    pub unindexed: Option<&'q dyn Unindexed>,
}

/// The tables whose rows are read as those of a relation.
pub enum Tables {
    /// Its own, if it has no children.
    Itself,
    /// These: children of it, and children of these. It may be among them.
    Several(Vec<Oid>),
}

impl Sight<'_> {
    /// May the rows of a relation decide on the answer?
    pub fn may_ask(&self, relation: Oid) -> bool {
        self.relations.is_none_or(|relations| relations.binary_search(&relation.to_u32()).is_ok())
    }

    /// The tables whose rows the statement reads as those of a relation. A plan that does not say which these are, as
    /// one that combines parts for this moment, may read some nevertheless: such a relation counts as one without children, and is not
    /// asked if it has some. Partitions that planning has left out are not among them: none of their rows fulfils what
    /// the query asks for, whatever time it is.
    ///
    /// # Errors
    /// `MovingClock` if they are too many, or one of them is no table; `OutOfMemory`.
    pub fn tables(&self, relation: Oid) -> Result<Tables, Reason> {
        if let Some(scan) = self.plan.and_then(scan_of_parts) {
            let Some(leaves) = leaves_of(scan, relation) else { return Ok(Tables::Itself) };
            let mut tables = Vec::new();
            for leaf in leaves {
                if tables.len() == MOST_LEAVES {
                    return Err(Reason::MovingClock);
                }
                tables.add(leaf).map_err(|_| Reason::OutOfMemory)?;
            }
            return Ok(Tables::Several(tables));
        }
        let Some(plan) = self.plan.filter(|plan| !plan.appendRelations.is_null()) else { return Ok(Tables::Itself) };
        let entries = children!(plan.rtable as RangeTblEntry);
        let is_relation = |entry: &Tree<'_, pg_sys::RangeTblEntry>| entry.rtekind == RTEKind::RTE_RELATION;
        let mut is_read = Vec::with_room(entries.len()).map_err(|_| Reason::OutOfMemory)?;
        is_read.extend(entries.clone().map(|entry| is_relation(&entry) && entry.relid == relation));
        let place = |number: u32| (number as usize).wrapping_sub(1);
        let mut has_children = false;
        // Parents stand before their children. Whether they do or not, no child is missed.
        loop {
            let mut found_more = false;
            for link in children!(plan.appendRelations as AppendRelInfo) {
                let (parent, child) = (place(link.parent_relid), place(link.child_relid));
                let is_child = is_read.get(parent) == Some(&true)
                    && is_read.get(child) == Some(&false)
                    && entries.clone().nth(child).is_some_and(|entry| is_relation(&entry));
                if is_child {
                    is_read[child] = true;
                    found_more = true;
                }
            }
            if !found_more {
                break;
            }
            has_children = true;
        }
        if !has_children {
            return Ok(Tables::Itself);
        }
        let mut tables: Vec<Oid> = Vec::new();
        for (entry, _) in entries.zip(&is_read).filter(|(_, is_read)| **is_read) {
            match entry.relkind as u8 {
                pg_sys::RELKIND_PARTITIONED_TABLE => {}
                pg_sys::RELKIND_RELATION if tables.contains(&entry.relid) => {}
                pg_sys::RELKIND_RELATION if tables.len() < MOST_TABLES => {
                    tables.add(entry.relid).map_err(|_| Reason::OutOfMemory)?;
                }
                _ => return Err(Reason::MovingClock),
            }
        }
        Ok(Tables::Several(tables))
    }
}
