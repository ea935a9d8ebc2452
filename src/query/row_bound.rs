//! How many rows a plan can give at most, as far as the plan itself proves that. A client that reads with a limit of
//! rows leaves a query before its end is seen. If it has read as many rows as there can be, it has read all.
//!
//! The walk goes down from the top through nodes that add no rows. A node that it does not know has no bound.

use pgrx::pg_sys::{self, NodeTag};

use super::node_table::{ADDS_NO_ROWS, in_plan};
use super::parameters;
use super::unique_scan::{finds_one, lets_one_through};
use crate::pg::tree::{Tree, child, children, match_node};

/// The most rows that a plan gives with these parameters under a snapshot; `None` if the plan does not prove a bound.
/// The plan's relations must be open.
pub fn of(
    plan: Tree<'_, pg_sys::PlannedStmt>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
    snapshot: Option<&pg_sys::SnapshotData>,
) -> Option<u64> {
    let snapshot = snapshot.filter(|snapshot| snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC)?;
    Prover { plan, params, snapshot }.most(child!(plan.planTree))
}

struct Prover<'t> {
    plan: Tree<'t, pg_sys::PlannedStmt>,
    params: Option<Tree<'t, pg_sys::ParamListInfoData>>,
    snapshot: &'t pg_sys::SnapshotData,
}

impl<'t> Prover<'t> {
    /// The most rows that a node gives each time it is run from its start.
    fn most(&self, plan: Option<Tree<'t, pg_sys::Plan>>) -> Option<u64> {
        let plan = plan?;
        let node = plan.as_node();
        match_node! { node;
            Agg(aggregate) => self.of_aggregate(aggregate),
            Limit(limit) => self.of_limit(limit),
            ValuesScan(scan) => Some(children!(scan.values_lists as List).len() as u64),
            SubqueryScan(scan) => self.most(child!(scan.subplan)),
            Append(append) => self.sum(child!(append.appendplans)),
            MergeAppend(append) => self.sum(child!(append.mergeplans)),
            NestLoop(join) => self.of_join(&join.join),
            HashJoin(join) => self.of_join(&join.join),
            MergeJoin(join) => self.of_join(&join.join),
            IndexScan(scan) => self.one(
                finds_one(scan.indexid, scan.indexqual, self.snapshot)
                    || self.lets_one_through(&scan.scan, &[scan.indexqualorig, scan.scan.plan.qual]),
            ),
            IndexOnlyScan(scan) => self.one(finds_one(scan.indexid, scan.indexqual, self.snapshot)),
            BitmapHeapScan(scan) => {
                self.one(self.lets_one_through(&scan.scan, &[scan.bitmapqualorig, scan.scan.plan.qual]))
            },
            SeqScan(scan) => self.one(self.lets_one_through(&scan.scan, &[scan.scan.plan.qual])),
            _ => match node.tag() {
                NodeTag::T_Result if plan.lefttree.is_null() => Some(1),
                tag if in_plan(tag, ADDS_NO_ROWS) => self.most(child!(plan.lefttree)),
                _ => None,
            },
        }
    }

    fn one(&self, proven: bool) -> Option<u64> {
        proven.then_some(1)
    }

    /// One row without GROUP BY; else as many as there are rows to be grouped. Grouping sets group them several times.
    fn of_aggregate(&self, aggregate: Tree<'t, pg_sys::Agg>) -> Option<u64> {
        if !aggregate.groupingSets.is_null() || !aggregate.chain.is_null() {
            return None;
        }
        match aggregate.aggstrategy {
            pg_sys::AggStrategy::AGG_PLAIN => Some(1),
            pg_sys::AggStrategy::AGG_SORTED | pg_sys::AggStrategy::AGG_HASHED => {
                self.most(child!(aggregate.plan.lefttree))
            }
            _ => None,
        }
    }

    /// A LIMIT stops without looking for another row, unless it gives rows WITH TIES.
    fn of_limit(&self, limit: Tree<'t, pg_sys::Limit>) -> Option<u64> {
        let below = self.most(child!(limit.plan.lefttree));
        if limit.limitOption != pg_sys::LimitOption::LIMIT_OPTION_COUNT {
            return below;
        }
        let count = child!(limit.limitCount).and_then(|count| self.value(count));
        below.into_iter().chain(count).min()
    }

    /// The value of an expression of type bigint that is a constant or a parameter of the statement.
    fn value(&self, expression: Tree<'t, pg_sys::Node>) -> Option<u64> {
        let datum = if let Some(constant) = expression.as_a::<pg_sys::Const>() {
            (constant.consttype == pg_sys::INT8OID && !constant.constisnull).then_some(constant.constvalue)
        } else {
            let given = expression.as_a::<pg_sys::Param>().and_then(|param| parameters::given(&param, self.params))?;
            (given.ptype == pg_sys::INT8OID && !given.isnull).then_some(given.value)
        };
        u64::try_from(datum?.value() as i64).ok()
    }

    /// Plans that run one after another. One that gives no row (LIMIT 0) may begin behind the last row of the others,
    /// and any plan of the statement raises what its beginning raises (OFFSET -1): then nothing is proven.
    fn sum(&self, plans: Option<Tree<'t, pg_sys::List>>) -> Option<u64> {
        plans?.items().try_fold(0u64, |sum, plan| {
            // SAFETY: every node of a list of plans begins with a plan.
            let most = self.most(unsafe { Tree::enter(plan?.as_ptr().cast()) })?;
            sum.checked_add(most).filter(|_| most > 0)
        })
    }

    /// A join of these kinds goes on to the next row of its outer side after the first match, or when the inner side
    /// has no more.
    fn of_join(&self, join: &pg_sys::Join) -> Option<u64> {
        use pg_sys::JoinType::{JOIN_ANTI, JOIN_INNER, JOIN_LEFT, JOIN_SEMI};
        // SAFETY: the sides of a join of a valid plan.
        let (outer, inner) = unsafe { (Tree::enter(join.plan.lefttree), Tree::enter(join.plan.righttree)) };
        let outer = self.most(outer)?;
        match join.jointype {
            JOIN_SEMI | JOIN_ANTI => Some(outer),
            JOIN_INNER | JOIN_LEFT if join.inner_unique => Some(outer),
            JOIN_INNER | JOIN_LEFT => outer.checked_mul(self.most(inner)?.max(1)),
            _ => None,
        }
    }

    /// May the scan of a table let one row through at most, by these conditions?
    fn lets_one_through(&self, scan: &pg_sys::Scan, conditions: &[*mut pg_sys::List]) -> bool {
        let plan = self.plan;
        let entry = children!(plan.rtable as RangeTblEntry).nth((scan.scanrelid as usize).wrapping_sub(1));
        let conditions: Vec<*const pg_sys::List> = conditions.iter().map(|list| list.cast_const()).collect();
        entry.is_some_and(|entry| lets_one_through(entry.relid, scan.scanrelid, &conditions, self.snapshot))
    }
}
