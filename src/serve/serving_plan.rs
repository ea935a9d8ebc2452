//! The plan that serves an entry: a copy of the real plan with one Custom Scan as its tree. The range table stays, so
//! that the executor checks the same permissions as for the real plan. Made for one execution, in the query's own
//! memory.

use std::ffi::{CStr, c_char};
use std::rc::Rc;

use arrow_cache_core::{Pin, Reason};
use pgrx::pg_sys;

use super::hit::Hit;
use super::hold::Hold;
use super::scan::cached_scan;
use super::scan_plan::{plan_with, scan_like, take_estimates};
use crate::pg::lists::nodes;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::Tree;
use crate::pg::tree_making::{alias, column_like, list_of, list_of_oids, new_node};
use crate::{session, shmem};

/// Puts the serving plan of a hit in the place of the query's own, before the executor sees it. Returns the pin, which
/// the query then holds.
///
/// # Errors
/// There is no memory for that, or the entry cannot be read. The query is left as it is.
pub fn swap_plan<'q>(query: QueryDesc<'q>, hit: Hit) -> Result<&'q Pin, Reason> {
    let Hit { pin, columns, guard, open, stale } = hit;
    debug_assert!(query.estate().is_none(), "the query was started");
    let store = shmem::store().ok_or(Reason::OutOfMemory)?;
    let shape = Rc::clone(&columns);
    // SAFETY: a hit has the columns of its entry. The hold was made just now, and lives as long as the query's
    // descriptor.
    let hold: &'q mut Hold = unsafe { &mut *Hold::new(query, pin, columns)? };
    hold.set_terms(guard, stale);
    let rows = hold.pin().map_or(0, |pin| store.view(pin).rows());
    let real = query.plan();
    // SAFETY: a chunk of the hold's context. The plan is put beside the hold, which lives as long; the real plan lives
    // as long as its portal.
    unsafe {
        let context = pg_sys::GetMemoryChunkContext(std::ptr::from_mut(hold).cast());
        let caller = pg_sys::MemoryContextSwitchTo(context);
        let open = list_of_oids(open);
        let plan = scan_like(real, &shape).and_then(|mut scan| {
            take_estimates(&mut scan.scan.plan, real);
            scan.scan.plan.plan_rows = rows as f64;
            let range_table = session::explaining().then(|| name_columns(&mut scan, real));
            let plan = cached_scan(scan, hold, open).and_then(|scan| plan_with(real, scan))?;
            if let Some(range_table) = range_table {
                (*plan).rtable = range_table;
            }
            Some(plan)
        });
        pg_sys::MemoryContextSwitchTo(caller);
        let Some(plan) = plan else {
            hold.release();
            return Err(Reason::OutOfMemory);
        };
        query.set_plan(plan);
    }
    hold.pin().ok_or(Reason::OutOfMemory)
}

/// Has EXPLAIN (VERBOSE) show the columns of a scan by their names: the expressions that made them belong to the real
/// plan. Returns a range table with an entry that has nothing but the names. In the current memory context; lists that
/// others share stay as they are.
fn name_columns(scan: &mut pg_sys::CustomScan, real: Tree<'_, pg_sys::PlannedStmt>) -> *mut pg_sys::List {
    // SAFETY: the scan was made for this plan, with its lists; the range table is one of the real plan. Names end with
    // NUL.
    unsafe {
        let number = pg_sys::list_length(real.rtable) + 1;
        let targets = nodes::<pg_sys::TargetEntry>(scan.scan.plan.targetlist);
        let name = |name: *mut c_char| if name.is_null() { c"?column?" } else { CStr::from_ptr(name) };
        let entry = new_node::<pg_sys::RangeTblEntry>();
        (*entry).rtekind = pg_sys::RTEKind::RTE_RESULT;
        (*entry).eref = alias(c"*RESULT*", targets.clone().map(|target| name((*target).resname)));
        scan.custom_scan_tlist = list_of(targets.map(|target| {
            let named = column_like(number, (*target).resno, (*target).expr.cast());
            kept!(pg_sys::makeTargetEntry(named.cast(), (*target).resno, std::ptr::null_mut(), false))
        }));
        // Entries that the plan does not claim to read are not written before their columns' names.
        scan.custom_relids = kept!(pg_sys::bms_make_singleton(1));
        kept!(pg_sys::lappend(kept!(pg_sys::list_copy(real.rtable)), entry.cast()))
    }
}
