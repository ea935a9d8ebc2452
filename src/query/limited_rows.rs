//! Which columns of a table only show the rows that a plan with a LIMIT gives: neither its conditions nor its order
//! read them. An UPDATE of these alone leaves the same rows in the same order, and concerns the answer only if it is of
//! one of them. Reads a finished plan, and which columns an index has; keeps nothing.

use arrow_cache_core::bit_of;
use pgrx::pg_sys;

use super::known_values::value_of;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::tree::{Tree, child, children, match_node};
use crate::pg::tree_search::search;

/// The largest LIMIT: the answer rests on each row.
const MOST_ROWS: i64 = 64;
/// Stands for all columns.
const ALL: u64 = u64::MAX;

/// The rows that a plan gives of the one table that it reads.
pub struct LimitedRows {
    /// The number of the node that gives the rows.
    pub node: i32,
    /// The columns that conditions and order read, by their bits.
    pub chosen_by: u64,
    /// The columns of the table that the rows have, each with its place in the row, and its type.
    pub columns: Vec<(i16, usize, pg_sys::Oid)>,
}

/// The rows that a plan gives: a LIMIT, a sort or none, and the scan of a table. `None` for any other plan.
pub fn limited_rows(
    plan: Tree<'_, pg_sys::PlannedStmt>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> Option<LimitedRows> {
    let top = child!(plan.planTree)?;
    let limit = top.as_node().as_a::<pg_sys::Limit>().filter(|_| plan.subplans.is_null())?;
    let (type_oid, count) = value_of(child!(limit.limitCount)?, params)?;
    if type_oid != pg_sys::INT8OID || count.value() as i64 > MOST_ROWS {
        return None;
    }
    let below = child!(top.lefttree)?;
    let sort = match_node! { below.as_node();
        Sort | T_IncrementalSort (sort) => Some(sort),
        _ => None,
    };
    let scan = if sort.is_some() { child!(below.lefttree)? } else { below };
    let (table, conditions, index) = match_node! { scan.as_node();
        SeqScan(node) => (node.scan.scanrelid, vec![], None),
        IndexScan(node) => (node.scan.scanrelid, vec![node.indexqualorig, node.indexorderbyorig], Some(node.indexid)),
        BitmapHeapScan(node) => (node.scan.scanrelid, vec![node.bitmapqualorig], None),
        _ => return None,
    };
    let read_by = |expression: *mut pg_sys::Node| columns_in(expression, table);
    let mut chosen_by = conditions.into_iter().chain([scan.qual]).fold(0, |set, list| set | read_by(list.cast()));
    if let Some(index) = index {
        // It may be scanned for its order. A partial one stands for conditions that the plan has nowhere.
        chosen_by |= columns_of_index(index);
    }
    // The place of a column of the topmost node's rows among those of the scan.
    let mut from_scan: Box<dyn Fn(i16) -> Option<i16>> = Box::new(Some);
    if let Some(sort) = sort {
        let sort_plan = below;
        let below_sort = move |place: i16| var_at(sort_plan, place).map(|var| var.varattno);
        // SAFETY: a sort has so many columns, by their places in its rows.
        let keys = unsafe { std::slice::from_raw_parts(sort.sortColIdx, sort.numCols as usize) };
        for key in keys {
            let entry = below_sort(*key).and_then(|place| entry_at(scan, place))?;
            chosen_by |= read_by(entry.expr.cast());
        }
        from_scan = Box::new(below_sort);
    }
    let of_table = |place: i16| {
        let var = var_at(scan, from_scan(var_at(top, place)?.varattno)?)?;
        let is_own = var.varno as u32 == table && bit_of(var.varattno) != 1;
        is_own.then_some((var.varattno, place as usize - 1, var.vartype))
    };
    let columns = children!(top.targetlist as TargetEntry).filter_map(|entry| of_table(entry.resno)).collect();
    Some(LimitedRows { node: top.plan_node_id, chosen_by, columns })
}

/// What a node gives in a place of its rows.
fn entry_at(plan: Tree<'_, pg_sys::Plan>, place: i16) -> Option<Tree<'_, pg_sys::TargetEntry>> {
    children!(plan.targetlist as TargetEntry).find(|entry| entry.resno == place)
}

/// The same, if it is a column.
fn var_at(plan: Tree<'_, pg_sys::Plan>, place: i16) -> Option<Tree<'_, pg_sys::Var>> {
    let entry = entry_at(plan, place)?;
    child!(entry.expr)?.as_node().as_a::<pg_sys::Var>()
}

/// The columns of a table that an expression reads, by their bits. Those of the server's own count as all.
fn columns_in(expression: *mut pg_sys::Node, table: u32) -> u64 {
    let mut columns = 0;
    let mut note = |node: Tree<'_, pg_sys::Node>| {
        if let Some(var) = node.as_a::<pg_sys::Var>() {
            columns |= if var.varno as u32 == table && var.varattno > 0 { bit_of(var.varattno) } else { ALL };
        }
        false
    };
    // SAFETY: null, or an expression of a plan.
    let is_complete = unsafe { search(expression, 0, &mut note) }.is_some();
    if is_complete { columns } else { ALL }
}

/// The columns of an index, by their bits; all if it has an expression, or is a partial one.
fn columns_of_index(index: pg_sys::Oid) -> u64 {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::INDEXRELID, index);
    let row = row.filter(|row| row.is_null(pg_sys::Anum_pg_index_indpred as i16));
    let columns = row.as_ref().and_then(CatalogRow::columns_of_index);
    columns.map_or(ALL, |columns| {
        columns.iter().fold(0, |set, column| set | if *column > 0 { bit_of(*column) } else { ALL })
    })
}
