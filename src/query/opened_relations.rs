//! The tables and indexes that a plan's executor would hold open: while it does, the server refuses DDL on them in the
//! same session.

use pgrx::pg_sys::{self, NodeTag};

use crate::pg::compat;
use crate::pg::lists::nodes;

/// What a plan's executor would open.
#[derive(Debug, Default)]
pub struct Opened {
    /// Tables, each at least once. Those that may be left out when the plan starts are not among them.
    pub tables: Vec<pg_sys::Oid>,
    /// Indexes, likewise.
    pub indexes: Vec<pg_sys::Oid>,
    /// Some are left out when the plan starts, and which is not known before.
    pub prunes_at_start: bool,
    /// Every index that the plan may scan.
    pub scanned: Vec<pg_sys::Oid>,
}

struct Collector {
    plan: *const pg_sys::PlannedStmt,
    /// Places in the range table, from 1.
    places: Vec<u32>,
    indexes: Vec<pg_sys::Oid>,
    scanned: Vec<pg_sys::Oid>,
    prunes_at_start: bool,
    /// What is met now may be left out when the plan starts.
    uncertain: bool,
}

/// What the executor of a plan would open.
///
/// # Safety
/// `plan` must be valid.
pub unsafe fn opened_by(plan: *const pg_sys::PlannedStmt) -> Opened {
    let mut found = Collector {
        plan,
        places: Vec::new(),
        indexes: Vec::new(),
        scanned: Vec::new(),
        prunes_at_start: false,
        uncertain: false,
    };
    // SAFETY: as the caller promises.
    unsafe {
        found.walk((*plan).planTree);
        for subplan in nodes::<pg_sys::Plan>((*plan).subplans) {
            found.walk(subplan);
        }
        let entries: Vec<_> = nodes::<pg_sys::RangeTblEntry>((*plan).rtable).collect();
        let relation = |place: &u32| entries.get((*place as usize).wrapping_sub(1)).map(|entry| (**entry).relid);
        Opened {
            tables: found.places.iter().filter_map(relation).collect(),
            indexes: found.indexes,
            prunes_at_start: found.prunes_at_start,
            scanned: found.scanned,
        }
    }
}

impl Collector {
    fn table(&mut self, place: u32) {
        if !self.uncertain {
            self.places.push(place);
        }
    }

    fn index(&mut self, index: pg_sys::Oid) {
        self.scanned.push(index);
        if !self.uncertain {
            self.indexes.push(index);
        }
    }

    /// # Safety
    /// `plan` must be null or a node of the plan.
    unsafe fn walk(&mut self, plan: *const pg_sys::Plan) {
        if plan.is_null() {
            return;
        }
        // SAFETY: as the caller promises; each cast follows the node's tag.
        unsafe {
            match (*plan).type_ {
                NodeTag::T_SeqScan
                | NodeTag::T_SampleScan
                | NodeTag::T_BitmapHeapScan
                | NodeTag::T_TidScan
                | NodeTag::T_TidRangeScan
                | NodeTag::T_ForeignScan => self.table((*plan.cast::<pg_sys::Scan>()).scanrelid),
                NodeTag::T_IndexScan => {
                    self.table((*plan.cast::<pg_sys::Scan>()).scanrelid);
                    self.index((*plan.cast::<pg_sys::IndexScan>()).indexid);
                }
                NodeTag::T_IndexOnlyScan => {
                    self.table((*plan.cast::<pg_sys::Scan>()).scanrelid);
                    self.index((*plan.cast::<pg_sys::IndexOnlyScan>()).indexid);
                }
                NodeTag::T_BitmapIndexScan => {
                    self.index((*plan.cast::<pg_sys::BitmapIndexScan>()).indexid);
                }
                NodeTag::T_BitmapAnd => self.walk_all((*plan.cast::<pg_sys::BitmapAnd>()).bitmapplans),
                NodeTag::T_BitmapOr => self.walk_all((*plan.cast::<pg_sys::BitmapOr>()).bitmapplans),
                NodeTag::T_Append => {
                    let append = &*plan.cast::<pg_sys::Append>();
                    let pruning = compat::pruning_of_append(self.plan, append);
                    self.walk_children(append.appendplans, pruning);
                }
                NodeTag::T_MergeAppend => {
                    let append = &*plan.cast::<pg_sys::MergeAppend>();
                    let pruning = compat::pruning_of_merge_append(self.plan, append);
                    self.walk_children(append.mergeplans, pruning);
                }
                NodeTag::T_SubqueryScan => self.walk((*plan.cast::<pg_sys::SubqueryScan>()).subplan),
                _ => {}
            }
            self.walk((*plan).lefttree);
            self.walk((*plan).righttree);
        }
    }

    /// # Safety
    /// `list` must be NIL or a list of plan nodes.
    unsafe fn walk_all(&mut self, list: *const pg_sys::List) {
        // SAFETY: as the caller promises.
        unsafe { nodes::<pg_sys::Plan>(list) }.for_each(|child| {
            // SAFETY: a node of the list.
            unsafe { self.walk(child) };
        });
    }

    /// The children of a node that may leave some out: the tables above them are opened in any case, the children if
    /// none can be left out before the first row.
    ///
    /// # Safety
    /// As `walk_all`; `pruning` must be null or valid.
    unsafe fn walk_children(&mut self, children: *const pg_sys::List, pruning: *const pg_sys::PartitionPruneInfo) {
        let mut all = true;
        // SAFETY: as the caller promises; a list of lists.
        unsafe {
            if !pruning.is_null() {
                for tree in nodes::<pg_sys::List>((*pruning).prune_infos) {
                    for level in nodes::<pg_sys::PartitionedRelPruneInfo>(tree) {
                        self.table((*level).rtindex);
                        all &= (*level).initial_pruning_steps.is_null();
                    }
                }
            }
            let outside = self.uncertain;
            self.uncertain |= !all;
            self.prunes_at_start |= !all;
            self.walk_all(children);
            self.uncertain = outside;
        }
    }
}
