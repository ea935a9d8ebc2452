//! Plans whose whole tree is one Custom Scan, made from a real plan, or from a placeholder.

use pgrx::pg_sys::{self, NodeTag};

use crate::arrow::column::Column;
use crate::pg::compat;
use crate::pg::memory_context::{room_for, room_of};
use crate::pg::server;
use crate::pg::tree::{Tree, child, children};
use crate::pg::tree_making::list_of_all;

/// The nodes of a column of a scan. They are allocated together: a hit makes them anew.
#[repr(C)]
struct ColumnNodes {
    /// What the scan reads: an expression of the column's type without a value, `VALUE`, unless it is shown to
    /// somebody.
    stored: pg_sys::TargetEntry,
    value: pg_sys::CoerceToDomainValue,
    /// What the scan puts out.
    output: pg_sys::TargetEntry,
    var: pg_sys::Var,
}

impl ColumnNodes {
    /// Writes the nodes of a column, from 1 on, that a target of a plan is.
    ///
    /// # Safety
    /// There must be room for them at `this`, where they must stay.
    unsafe fn write(this: *mut Self, number: i16, target: Tree<'_, pg_sys::TargetEntry>, column: &Column) {
        let (kind, typmod) = (column.type_oid, column.typmod);
        // SAFETY: the caller's promise; an expression of the plan.
        unsafe {
            let collation = server::exprCollation(target.expr.cast());
            let entry = |expr| pg_sys::TargetEntry {
                xpr: pg_sys::Expr { type_: NodeTag::T_TargetEntry },
                expr,
                resno: number,
                ..Default::default()
            };
            this.write(Self {
                stored: entry((&raw mut (*this).value).cast()),
                value: pg_sys::CoerceToDomainValue {
                    xpr: pg_sys::Expr { type_: NodeTag::T_CoerceToDomainValue },
                    typeId: kind,
                    typeMod: typmod,
                    collation,
                    location: -1,
                },
                output: pg_sys::TargetEntry {
                    resname: target.resname,
                    resorigtbl: target.resorigtbl,
                    resorigcol: target.resorigcol,
                    ..entry((&raw mut (*this).var).cast())
                },
                var: pg_sys::Var {
                    xpr: pg_sys::Expr { type_: NodeTag::T_Var },
                    varno: pg_sys::INDEX_VAR as _,
                    varattno: number,
                    vartype: kind,
                    vartypmod: typmod,
                    varcollid: collation,
                    location: -1,
                    ..Default::default()
                },
            });
        }
    }
}

/// A scan with the columns of a real plan, in the current memory context. `columns` are the plan's, without the junk
/// ones. `None` when there is no memory.
pub fn scan_like(real: Tree<'_, pg_sys::PlannedStmt>, columns: &[Column]) -> Option<pg_sys::CustomScan> {
    let mut scan = pg_sys::CustomScan::default();
    scan.scan.plan.type_ = NodeTag::T_CustomScan;
    let Some(tree) = child!(real.planTree) else { return Some(scan) };
    let wanted = children!(tree.targetlist as TargetEntry).filter(|target| !target.resjunk);
    // SAFETY: a live context, and room for the nodes of each column, which stay where they are.
    unsafe {
        let bytes = columns.len().max(1) * size_of::<ColumnNodes>();
        let nodes: *mut ColumnNodes = room_of(pg_sys::CurrentMemoryContext, bytes)?.cast();
        let mut count = 0;
        for (target, column) in wanted.zip(columns) {
            ColumnNodes::write(nodes.add(count), count as i16 + 1, target, column);
            count += 1;
        }
        scan.custom_scan_tlist = list_of_all((0..count).map(|place| &raw mut (*nodes.add(place)).stored))?;
        scan.scan.plan.targetlist = list_of_all((0..count).map(|place| &raw mut (*nodes.add(place)).output))?;
    }
    Some(scan)
}

/// Gives a node the estimates of a real plan: costs, rows and their width. EXPLAIN shows them, and postgres_fdw plans
/// by what that shows.
pub fn take_estimates(own: &mut pg_sys::Plan, real: Tree<'_, pg_sys::PlannedStmt>) {
    let Some(tree) = child!(real.planTree) else { return };
    own.startup_cost = tree.startup_cost;
    own.total_cost = tree.total_cost;
    own.plan_rows = tree.plan_rows;
    own.plan_width = tree.plan_width;
}

/// A copy of a real plan with another tree, in the current memory context. It shares the parts that the executor only
/// reads (range table, permissions) and lacks those of the old tree. The real plan must outlive the use of the copy.
/// `None` when there is no memory.
pub fn plan_with(real: Tree<'_, pg_sys::PlannedStmt>, tree: *mut pg_sys::Plan) -> Option<*mut pg_sys::PlannedStmt> {
    // SAFETY: a live context; a node of its size, with its tag.
    unsafe {
        let plan = room_for::<pg_sys::PlannedStmt>(pg_sys::CurrentMemoryContext)?;
        plan.copy_from_nonoverlapping(real.as_ptr(), 1);
        (*plan).planTree = tree;
        (*plan).parallelModeNeeded = false;
        (*plan).jitFlags = 0;
        (*plan).appendRelations = std::ptr::null_mut();
        (*plan).subplans = std::ptr::null_mut();
        (*plan).rewindPlanIDs = std::ptr::null_mut();
        (*plan).paramExecTypes = std::ptr::null_mut();
        compat::strip_plan(&mut *plan);
        Some(plan)
    }
}
