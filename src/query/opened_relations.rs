//! What a plan's executor may open: tables and indexes. Reads a plan; keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag};

use super::node_table::{OPENS_NOTHING, in_plan};
use crate::pg::compat;
use crate::pg::tree::{Tree, child, children, match_node};

/// The name of the node that scans the parts of an answer (`fragments`).
pub const SCAN_NAME: &CStr = c"ArrowCacheFragments";

/// What a plan's executor may open.
#[derive(Default)]
pub struct Opened {
    /// Tables that it may scan, each at least once, and those that have them as partitions and decide which are left
    /// out.
    pub tables: Vec<pg_sys::Oid>,
    /// Indexes that it may scan, likewise.
    pub indexes: Vec<pg_sys::Oid>,
    /// Tables may be left out when the plan starts, and which is not known before.
    pub prunes_at_start: bool,
    /// Other processes run parts of it.
    pub is_parallel: bool,
    /// The plan has nodes of a kind that is not known here, or of another library, which may read anything.
    pub has_unknown_nodes: bool,
}

struct Collector<'t> {
    plan: Tree<'t, pg_sys::PlannedStmt>,
    /// The relations of the range table.
    relations: Vec<pg_sys::Oid>,
    found: Opened,
}

/// What the executor of a plan may open.
pub fn opened_by(plan: Tree<'_, pg_sys::PlannedStmt>) -> Opened {
    let relations = children!(plan.rtable as RangeTblEntry).map(|entry| entry.relid).collect();
    let mut collector = Collector { plan, relations, found: Opened::default() };
    collector.walk(child!(plan.planTree));
    collector.walk_all(child!(plan.subplans));
    collector.found
}

impl<'t> Collector<'t> {
    /// Notes the table at this place of the range table, from 1.
    fn table(&mut self, place: u32) {
        self.found.tables.extend(self.relations.get((place as usize).wrapping_sub(1)));
    }

    /// Notes such a table, and an index of it.
    fn table_and_index(&mut self, place: u32, index: pg_sys::Oid) {
        self.table(place);
        self.found.indexes.push(index);
    }

    fn walk(&mut self, plan: Option<Tree<'t, pg_sys::Plan>>) {
        let Some(plan) = plan else { return };
        let node = plan.as_node();
        match_node! { node;
            SeqScan | T_SampleScan | T_BitmapHeapScan | T_TidScan | T_TidRangeScan | T_ForeignScan (scan) => {
                self.table(scan.scan.scanrelid);
            },
            IndexScan(scan) => self.table_and_index(scan.scan.scanrelid, scan.indexid),
            IndexOnlyScan(scan) => self.table_and_index(scan.scan.scanrelid, scan.indexid),
            BitmapIndexScan(scan) => self.found.indexes.push(scan.indexid),
            BitmapAnd(and) => self.walk_all(child!(and.bitmapplans)),
            BitmapOr(or) => self.walk_all(child!(or.bitmapplans)),
            Append(append) => {
                let pruning = compat::pruning_of_append(self.plan, append);
                self.walk_children(child!(append.appendplans), pruning);
            },
            MergeAppend(append) => {
                let pruning = compat::pruning_of_merge_append(self.plan, append);
                self.walk_children(child!(append.mergeplans), pruning);
            },
            SubqueryScan(scan) => self.walk(child!(scan.subplan)),
            CustomScan(scan) => if !is_scan_of_parts(scan) {
                // Without a plan below it, it may read what is in no relation.
                self.found.has_unknown_nodes |= scan.custom_plans.is_null();
                self.table(scan.scan.scanrelid);
                self.walk_all(child!(scan.custom_plans));
            },
            _ => {
                self.found.is_parallel |= matches!(node.tag(), NodeTag::T_Gather | NodeTag::T_GatherMerge);
                self.found.has_unknown_nodes |= !in_plan(node.tag(), OPENS_NOTHING);
            }
        }
        self.walk(child!(plan.lefttree));
        self.walk(child!(plan.righttree));
    }

    /// Walks the nodes of a list of plans.
    fn walk_all(&mut self, list: Option<Tree<'t, pg_sys::List>>) {
        plans_of(list).for_each(|plan| self.walk(Some(plan)));
    }

    /// Walks the children of a node that may leave some out.
    fn walk_children(
        &mut self,
        children: Option<Tree<'t, pg_sys::List>>,
        pruning: Option<Tree<'t, pg_sys::PartitionPruneInfo>>,
    ) {
        for levels in pruning.into_iter().flat_map(|pruning| children!(pruning.prune_infos as List)) {
            for level in levels.items().flatten().filter_map(Tree::as_a::<pg_sys::PartitionedRelPruneInfo>) {
                self.table(level.rtindex);
                self.found.prunes_at_start |= !level.initial_pruning_steps.is_null();
            }
        }
        self.walk_all(children);
    }
}

/// Returns true if this is the scan of the parts that an answer is combined of (`fragments`).
pub fn is_scan_of_parts(scan: Tree<'_, pg_sys::CustomScan>) -> bool {
    // SAFETY: the methods of a custom scan are constants of the library that made it, with a name that ends in NUL.
    unsafe { CStr::from_ptr((*scan.methods).CustomName) == SCAN_NAME }
}

/// The nodes of a list of plans.
pub fn plans_of<'t>(list: Option<Tree<'t, pg_sys::List>>) -> impl Iterator<Item = Tree<'t, pg_sys::Plan>> {
    list.into_iter().flat_map(Tree::items).flatten().filter_map(|node| {
        // SAFETY: every node of a list of plans begins with a plan.
        unsafe { Tree::enter(node.as_ptr().cast()) }
    })
}
