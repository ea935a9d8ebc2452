//! Plans whose whole tree is one Custom Scan, made from a real plan: what templates and serving plans have in common.

use pgrx::pg_sys::{self, NodeTag};

use super::column_names;
use crate::arrow::column::Column;
use crate::pg::compat;
use crate::pg::memory_context::room_for;
use crate::pg::server;
use crate::pg::tree::{Tree, child, children};

/// A scan with the columns of a real plan, in the current memory context. `columns` are the plan's, without the junk ones.
pub fn scan_like(real: Tree<'_, pg_sys::PlannedStmt>, columns: &[Column]) -> pg_sys::CustomScan {
    let mut scan = pg_sys::CustomScan::default();
    scan.scan.plan.type_ = NodeTag::T_CustomScan;
    let Some(tree) = child!(real.planTree) else { return scan };
    let wanted = children!(tree.targetlist as TargetEntry).filter(|target| !target.resjunk);
    for (target, column) in wanted.zip(columns) {
        // SAFETY: an expression of the plan; the lists were made here, as all nodes of the server are, in the current memory context.
        unsafe {
            let number = pg_sys::list_length(scan.custom_scan_tlist) as i16 + 1;
            let collation = server::exprCollation(target.expr.cast());
            let value = column_names::some_value(column.type_oid, column.typmod, collation);
            let stored = kept!(pg_sys::makeTargetEntry(value, number, std::ptr::null_mut(), false));
            scan.custom_scan_tlist = kept!(pg_sys::lappend(scan.custom_scan_tlist, stored.cast()));
            let var =
                kept!(pg_sys::makeVar(pg_sys::INDEX_VAR as _, number, column.type_oid, column.typmod, collation, 0));
            let output = kept!(pg_sys::makeTargetEntry(var.cast(), number, target.resname, false));
            (*output).resorigtbl = target.resorigtbl;
            (*output).resorigcol = target.resorigcol;
            scan.scan.plan.targetlist = kept!(pg_sys::lappend(scan.scan.plan.targetlist, output.cast()));
        }
    }
    scan
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

/// A copy of a real plan with another tree, in the current memory context. It shares the parts that the executor only reads (range table,
/// permissions) and lacks those of the old tree. The real plan must outlive the use of the copy. `None` when there is no memory.
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
