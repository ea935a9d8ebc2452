//! The tables and indexes that a plan's executor would hold open: while it does, the server refuses DDL on them in the
//! same session.

use pgrx::pg_sys::{self, NodeTag};

use super::node_table::{OPENS_NOTHING, in_plan};
use super::plan_kinds::is_scan_of_parts;
use crate::pg::compat;
use crate::pg::tree::{Tree, child, children, match_node};

/// What a plan's executor would open.
#[derive(Default)]
pub struct Opened {
    /// Tables, each at least once. Those that may be left out when the plan starts are not among them.
    pub tables: Vec<pg_sys::Oid>,
    /// Indexes, likewise.
    pub indexes: Vec<pg_sys::Oid>,
    /// Something is left out when the plan starts, and what is not known before.
    pub prunes_at_start: bool,
    /// Every index that the plan may scan.
    pub scanned: Vec<pg_sys::Oid>,
    /// Every table that the plan may scan.
    pub scanned_tables: Vec<pg_sys::Oid>,
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
    /// What is met now may be left out when the plan starts.
    uncertain: bool,
}

/// What the executor of a plan would open.
pub fn opened_by(plan: Tree<'_, pg_sys::PlannedStmt>) -> Opened {
    let relations = children!(plan.rtable as RangeTblEntry).map(|entry| entry.relid).collect();
    let mut collector = Collector { plan, relations, found: Opened::default(), uncertain: false };
    collector.walk(child!(plan.planTree));
    collector.walk_all(child!(plan.subplans));
    collector.found
}

impl<'t> Collector<'t> {
    /// The relation at this place of the range table, from 1.
    fn relation(&self, place: u32) -> Option<pg_sys::Oid> {
        self.relations.get((place as usize).wrapping_sub(1)).copied()
    }

    fn table(&mut self, place: u32) {
        if !self.uncertain {
            self.found.tables.extend(self.relation(place));
        }
    }

    /// The tables that a scan of parts holds open: all that the range table has but those that have no rows of their own.
    fn tables_of_parts(&mut self) {
        let plan = self.plan;
        for (place, entry) in (1..).zip(children!(plan.rtable as RangeTblEntry)) {
            let kind = entry.relkind as u8;
            let is_table = [pg_sys::RELKIND_RELATION, pg_sys::RELKIND_MATVIEW].contains(&kind);
            if entry.rtekind == pg_sys::RTEKind::RTE_RELATION && is_table {
                self.table(place);
            }
        }
    }

    fn scan(&mut self, place: u32) {
        self.found.scanned_tables.extend(self.relation(place));
        self.table(place);
    }

    fn index(&mut self, index: pg_sys::Oid) {
        self.found.scanned.push(index);
        if !self.uncertain {
            self.found.indexes.push(index);
        }
    }

    fn walk(&mut self, plan: Option<Tree<'t, pg_sys::Plan>>) {
        let Some(plan) = plan else { return };
        let node = plan.as_node();
        match_node! { node;
            SeqScan(scan) => self.scan(scan.scan.scanrelid),
            SampleScan(scan) => self.scan(scan.scan.scanrelid),
            BitmapHeapScan(scan) => self.scan(scan.scan.scanrelid),
            TidScan(scan) => self.scan(scan.scan.scanrelid),
            TidRangeScan(scan) => self.scan(scan.scan.scanrelid),
            ForeignScan(scan) => self.scan(scan.scan.scanrelid),
            IndexScan(scan) => {
                self.scan(scan.scan.scanrelid);
                self.index(scan.indexid);
            },
            IndexOnlyScan(scan) => {
                self.scan(scan.scan.scanrelid);
                self.index(scan.indexid);
            },
            BitmapIndexScan(scan) => self.index(scan.indexid),
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
            CustomScan(scan) => if is_scan_of_parts(scan) {
                self.tables_of_parts();
            } else {
                // Without a plan below it, it may read what is in no relation.
                self.found.has_unknown_nodes |= scan.custom_plans.is_null();
                self.scan(scan.scan.scanrelid);
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

    /// The children of a node that may leave some out: the tables above them are opened in any case, the children if
    /// none can be left out before the first row.
    fn walk_children(
        &mut self,
        children: Option<Tree<'t, pg_sys::List>>,
        pruning: Option<Tree<'t, pg_sys::PartitionPruneInfo>>,
    ) {
        let mut all = true;
        if let Some(pruning) = pruning {
            for levels in children!(pruning.prune_infos as List) {
                for level in levels.items().flatten().filter_map(Tree::as_a::<pg_sys::PartitionedRelPruneInfo>) {
                    self.table(level.rtindex);
                    all &= level.initial_pruning_steps.is_null();
                }
            }
        }
        let outside = self.uncertain;
        self.found.prunes_at_start |= !all;
        self.uncertain |= !all;
        self.walk_all(children);
        self.uncertain = outside;
    }
}

/// The nodes of a list of plans.
pub fn plans_of<'t>(list: Option<Tree<'t, pg_sys::List>>) -> impl Iterator<Item = Tree<'t, pg_sys::Plan>> {
    list.into_iter().flat_map(Tree::items).flatten().filter_map(|node| {
        // SAFETY: every node of a list of plans begins with a plan.
        unsafe { Tree::enter(node.as_ptr().cast()) }
    })
}
