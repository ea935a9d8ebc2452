//! What the planner should know of the zones of a table while it plans all of them at once. It takes each `ctid` for a
//! group of its own, since it knows nothing of the function that gives the zone. State of this backend, for as long as
//! that is planned.

use std::cell::Cell;

use pgrx::pg_sys;

use crate::pg::backend_local::Local;

/// The table that is planned, and how many parts it has; none if the OID is 0.
static PLANNED: Local<Cell<(pg_sys::Oid, f32)>> = Local::new(Cell::new((pg_sys::InvalidOid, 0.0)));

/// The table is planned while this lives.
pub struct Telling(());

impl Telling {
    /// Tells the planner that a table has so many parts, until the result is dropped, by an error too.
    pub fn of(relation: pg_sys::Oid, parts: u64) -> Self {
        PLANNED.set((relation, parts as f32));
        Self(())
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        PLANNED.set((pg_sys::InvalidOid, 0.0));
    }
}

/// Returns true if this is the `ctid` of a table that is planned.
///
/// # Safety
/// A valid entry of a range table.
#[inline]
pub unsafe fn tells_of(entry: *const pg_sys::RangeTblEntry, column: pg_sys::AttrNumber) -> bool {
    // SAFETY: the caller's promise.
    column == pg_sys::SelfItemPointerAttributeNumber as pg_sys::AttrNumber
        && unsafe { (*entry).relid == PLANNED.get().0 && (*entry).relid != pg_sys::InvalidOid }
}

/// Says that the `ctid` has as many different values as there are parts.
///
/// # Safety
/// What the planner asks about a column for which `tells_of` returned true.
pub unsafe fn tell_of_zones(known: *mut pg_sys::VariableStatData) {
    let head = size_of::<pg_sys::HeapTupleHeaderData>().next_multiple_of(8);
    // SAFETY: the caller's promise. A row of pg_statistic without slots, of which the planner reads what is set here.
    unsafe {
        let row: *mut pg_sys::HeapTupleHeaderData =
            kept!(pg_sys::palloc0(head + size_of::<pg_sys::FormData_pg_statistic>())).cast();
        (*row).t_hoff = head as u8;
        let statistic = row.cast::<u8>().add(head).cast::<pg_sys::FormData_pg_statistic>();
        (*statistic).stawidth = size_of::<pg_sys::ItemPointerData>() as i32;
        (*statistic).stadistinct = PLANNED.get().1;
        let tuple: pg_sys::HeapTuple = kept!(pg_sys::palloc0(size_of::<pg_sys::HeapTupleData>())).cast();
        (*tuple).t_data = row;
        (*known).statsTuple = tuple;
        (*known).freefunc = Some(keep);
    }
}

/// The memory of planning has it.
unsafe extern "C-unwind" fn keep(_tuple: pg_sys::HeapTuple) {}
