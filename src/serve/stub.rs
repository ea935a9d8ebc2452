//! The plan that serves an entry: the real plan with its tree replaced by one Custom Scan. Its
//! range table stays, so that the executor checks the same permissions as ever.

use arrow_cache_core::Pin;
use pgrx::pg_sys::{self, NodeTag};

use super::hit::Hit;
use super::hold::Hold;
use super::output;
use super::rows::Rows;
use super::scan::{self, CachedScan};
use super::template::Template;
use crate::arrow::column::Column;
use crate::error::none_if_out_of_memory;
use crate::pg::compat;
use crate::pg::lists::nodes;
use crate::pg::tree::Tree;
use crate::query::opened_relations::opened_by;
use crate::{session, shmem};

/// Puts the serving plan in the place of the query's own, before the executor sees it. If there
/// is no memory for that, the query is left as it is; says so.
///
/// # Safety
/// `query_desc` must not have been started; the hit must answer it.
pub unsafe fn swap_plan(query_desc: *mut pg_sys::QueryDesc, hit: Hit) -> bool {
    let Hit { pin, columns, guard, stays_open, template, .. } = hit;
    // SAFETY: as the caller promises. The plan is put beside the hold, which outlives it, and keeps the template.
    unsafe {
        let shape = if template.is_none() { columns.clone() } else { Vec::new() };
        let (Some(store), Some(hold)) = (shmem::store(), hold(query_desc, pin, columns)) else { return false };
        let is_guarded = guard.is_some();
        if let Some(guard) = guard {
            (*hold).set_guard(guard);
        }
        let Some(pin) = (*hold).pin() else { return false };
        let caller = pg_sys::MemoryContextSwitchTo(pg_sys::GetMemoryChunkContext(hold.cast()));
        let real = (*query_desc).plannedstmt;
        let scan = plan_node(hold);
        let prunes_at_start = match &template {
            Some(template) => template.prunes_at_start(),
            None => stays_open && Tree::enter(real).is_some_and(|plan| opened_by(plan).prunes_at_start),
        };
        if is_guarded || (stays_open && prunes_at_start) {
            (*scan).real = real;
        } else if stays_open {
            (*scan).hold_open(real, template.as_deref().map(Template::opened));
        }
        match template {
            Some(template) => {
                (*scan).custom = template.scan();
                (*hold).keep(template);
            }
            None => shape_like(&mut (*scan).custom, real, &shape),
        }
        (*scan).custom.methods = scan::methods();
        (*scan).custom.scan.plan.plan_rows = store.view(&pin).rows() as f64;
        let stub = stripped(real, scan.cast());
        if session::explaining() {
            output::name_columns(stub, &mut (*scan).custom);
        }
        (*query_desc).plannedstmt = stub;
        pg_sys::MemoryContextSwitchTo(caller);
        true
    }
}

impl CachedScan {
    /// Has the scan hold open what the real plan would: `known`, if that was found out before.
    ///
    /// # Safety
    /// `real` must be a valid plan.
    unsafe fn hold_open(
        &mut self,
        real: *const pg_sys::PlannedStmt,
        known: Option<(*mut pg_sys::List, *mut pg_sys::List)>,
    ) {
        // SAFETY: as the caller promises; lists of OIDs.
        unsafe {
            if let Some((tables, indexes)) = known {
                self.tables = pg_sys::list_copy(tables);
                self.indexes = pg_sys::list_copy(indexes);
                return;
            }
            let opened = Tree::enter(real).map(opened_by).unwrap_or_default();
            for table in opened.tables {
                self.tables = pg_sys::list_append_unique_oid(self.tables, table);
            }
            for index in opened.indexes {
                self.indexes = pg_sys::list_append_unique_oid(self.indexes, index);
            }
        }
    }
}

/// Holds an entry for as long as a query lives, ready to be read from its first row. `None`, and the pin given back,
/// when there is no memory for that.
///
/// # Safety
/// `query_desc` must be valid, and the entry's columns these.
pub unsafe fn hold(query_desc: *mut pg_sys::QueryDesc, pin: Pin, columns: Vec<Column>) -> Option<*mut Hold> {
    let store = shmem::store()?;
    // SAFETY: as the caller promises. The hold is allocated below the context that holds the
    // query descriptor, so it outlives ExecutorEnd and whatever other libraries do there. A child
    // of that context, because children are deleted as soon as the query fails, the context
    // itself only when the failed transaction is rolled back.
    unsafe {
        let Some(context) = child_context(query_desc) else {
            store.unpin(pin);
            return None;
        };
        let hold = match Hold::register(pin, context) {
            Ok(hold) => hold,
            Err(pin) => {
                store.unpin(pin);
                return None;
            }
        };
        let pin = (*hold).pin()?;
        match Rows::new(columns, store.view(&pin).chunks()) {
            Ok(rows) => (*hold).set_rows(rows),
            Err(_) => {
                (*hold).release();
                return None;
            }
        }
        Some(hold)
    }
}

/// A second handle of a hit's entry, for reading it once the hit was given to `swap_plan`.
///
/// # Safety
/// Must not be given to `unpin`, nor used after the serving plan has ended.
pub unsafe fn entry_of(hit: &Hit) -> Pin {
    // SAFETY: the hit holds the pin, and the caller does not release this copy.
    unsafe { Pin::from_entry(hit.pin.entry()) }
}

/// A memory context below the one of the query descriptor. `None` when there is no memory.
///
/// # Safety
/// `query_desc` must be valid.
unsafe fn child_context(query_desc: *mut pg_sys::QueryDesc) -> Option<pg_sys::MemoryContext> {
    // SAFETY: as the caller promises.
    let parent = unsafe { pg_sys::GetMemoryChunkContext(query_desc.cast()) };
    none_if_out_of_memory(|| {
        // SAFETY: a live parent and a literal name.
        unsafe {
            pg_sys::AllocSetContextCreateInternal(
                parent,
                c"pg_arrow_cache scan".as_ptr(),
                pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
                pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            )
        }
    })
}

/// A node that reads a held entry and holds nothing open, in the current memory context.
///
/// # Safety
/// The hold must outlive the node.
unsafe fn plan_node(hold: *mut Hold) -> *mut CachedScan {
    // SAFETY: a node of this size, zeroed.
    unsafe {
        let scan: *mut CachedScan = pg_sys::palloc0(std::mem::size_of::<CachedScan>()).cast();
        (*scan).hold = hold;
        scan
    }
}

/// Gives a scan the columns of a real plan.
///
/// # Safety
/// `real` must be a valid plan with these columns, `scan` zeroed.
pub(super) unsafe fn shape_like(scan: &mut pg_sys::CustomScan, real: *const pg_sys::PlannedStmt, columns: &[Column]) {
    // SAFETY: as the caller promises.
    unsafe {
        scan.scan.plan.type_ = NodeTag::T_CustomScan;
        let real_list = (*(*real).planTree).targetlist;
        let mut number = 0;
        for target in nodes::<pg_sys::TargetEntry>(real_list) {
            if (*target).resjunk {
                continue;
            }
            let column = &columns[number];
            number += 1;
            let collation = pg_sys::exprCollation((*target).expr.cast());
            let value = output::some_value(column.type_oid, column.typmod, collation);
            let stored = pg_sys::makeTargetEntry(value, number as i16, std::ptr::null_mut(), false);
            scan.custom_scan_tlist = pg_sys::lappend(scan.custom_scan_tlist, stored.cast());
            let var =
                pg_sys::makeVar(pg_sys::INDEX_VAR as _, number as i16, column.type_oid, column.typmod, collation, 0);
            let output = pg_sys::makeTargetEntry(var.cast(), number as i16, (*target).resname, false);
            (*output).resorigtbl = (*target).resorigtbl;
            (*output).resorigcol = (*target).resorigcol;
            scan.scan.plan.targetlist = pg_sys::lappend(scan.scan.plan.targetlist, output.cast());
        }
    }
}

/// A copy of a real plan with another tree. It shares the parts that the executor only reads (range table, permissions) and
/// lacks those of the old tree.
///
/// # Safety
/// `real` must be a valid plan that outlives the result.
pub(super) unsafe fn stripped(real: *const pg_sys::PlannedStmt, tree: *mut pg_sys::Plan) -> *mut pg_sys::PlannedStmt {
    // SAFETY: a node of its size, with its tag.
    unsafe {
        let stub: *mut pg_sys::PlannedStmt = pg_sys::palloc(std::mem::size_of::<pg_sys::PlannedStmt>()).cast();
        stub.copy_from_nonoverlapping(real, 1);
        (*stub).planTree = tree;
        (*stub).parallelModeNeeded = false;
        (*stub).jitFlags = 0;
        (*stub).appendRelations = std::ptr::null_mut();
        (*stub).subplans = std::ptr::null_mut();
        (*stub).rewindPlanIDs = std::ptr::null_mut();
        (*stub).paramExecTypes = std::ptr::null_mut();
        compat::strip_plan(stub);
        stub
    }
}
