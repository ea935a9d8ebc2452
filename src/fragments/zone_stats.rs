//! What the planner should know of the zones of a table while it plans parts of them. While it plans all at once, it
//! takes each `ctid` for a group of its own, since it knows nothing of the function that gives the zone. And of a
//! column in whose order the rows lie, such as a date in a table that grows, a part has few of the values: it takes
//! them for scattered. State of this backend, for as long as that is planned.

use std::cell::Cell;

use pgrx::pg_sys;

use crate::pg::backend_local::Local;
use crate::pg::catalog_row::CatalogRow;

const CTID: i16 = pg_sys::SelfItemPointerAttributeNumber as i16;
/// The rows lie in the order of a column if the server says that the two are correlated at least so.
const IN_ORDER: f32 = 0.95;

/// What is planned.
#[derive(Clone, Copy)]
struct Planned {
    /// The table; none if the OID is 0.
    relation: pg_sys::Oid,
    /// How many parts it has.
    parts: f32,
    /// All are planned at once.
    is_all: bool,
}

const NOTHING: Planned = Planned { relation: pg_sys::InvalidOid, parts: 0.0, is_all: false };

static PLANNED: Local<Cell<Planned>> = Local::new(Cell::new(NOTHING));

/// Parts of a table are planned while this lives.
pub struct Telling(());

impl Telling {
    /// Tells the planner that a table has so many parts, all of which it plans or one, until the result is dropped, by
    /// an error too.
    pub fn of(relation: pg_sys::Oid, parts: u64, is_all: bool) -> Self {
        PLANNED.set(Planned { relation, parts: parts as f32, is_all });
        Self(())
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        PLANNED.set(NOTHING);
    }
}

/// Returns true if this is a table of which parts are planned.
///
/// # Safety
/// A valid entry of a range table.
#[inline]
pub unsafe fn tells_of(entry: *const pg_sys::RangeTblEntry) -> bool {
    let relation = PLANNED.get().relation;
    // SAFETY: the caller's promise.
    relation != pg_sys::InvalidOid && unsafe { (*entry).relid == relation }
}

/// Says how many different values a column has: the `ctid` as many as there are parts, and one in whose order the rows
/// lie those of a part. Returns false if there is nothing to say.
///
/// # Safety
/// What the planner asks about a column of a table for which `tells_of` returned true.
pub unsafe fn tell_of_zones(column: i16, known: *mut pg_sys::VariableStatData) -> bool {
    let Planned { relation, parts, is_all } = PLANNED.get();
    let head = size_of::<pg_sys::HeapTupleHeaderData>().next_multiple_of(8);
    // SAFETY: the caller's promise. A row of pg_statistic without slots, of which the planner reads what is set here;
    // or a copy of the column's own.
    unsafe {
        if column != CTID {
            let Some(tuple) = of_part(relation, column, parts) else { return false };
            (*known).statsTuple = tuple;
        } else if is_all {
            let row: *mut pg_sys::HeapTupleHeaderData =
                kept!(pg_sys::palloc0(head + size_of::<pg_sys::FormData_pg_statistic>())).cast();
            (*row).t_hoff = head as u8;
            let statistic = row.cast::<u8>().add(head).cast::<pg_sys::FormData_pg_statistic>();
            (*statistic).stawidth = size_of::<pg_sys::ItemPointerData>() as i32;
            (*statistic).stadistinct = parts;
            let tuple: pg_sys::HeapTuple = kept!(pg_sys::palloc0(size_of::<pg_sys::HeapTupleData>())).cast();
            (*tuple).t_data = row;
            (*known).statsTuple = tuple;
        } else {
            return false;
        }
        (*known).freefunc = Some(keep);
    }
    true
}

/// The statistics of a column in whose order the rows of a table lie, with the number of values that one of so many
/// parts has. `None` for another column, and for one whose values are mostly different.
fn of_part(relation: pg_sys::Oid, column: i16, parts: f32) -> Option<pg_sys::HeapTuple> {
    let row = CatalogRow::find_statistics(relation, column)?;
    let values = row.statistics()?.stadistinct;
    if values <= 0.0 || correlation(&row)?.abs() < IN_ORDER {
        return None;
    }
    // SAFETY: the row is held; the copy lies in the memory of planning, and nobody else knows it.
    unsafe {
        let copy = kept!(pg_sys::heap_copytuple(row.as_tuple()));
        let statistic = pg_sys::GETSTRUCT(copy).cast::<pg_sys::FormData_pg_statistic>();
        // The first and the last value may go on in its neighbours.
        (*statistic).stadistinct = (values / parts).ceil() + 1.0;
        Some(copy)
    }
}

/// How much the order of a column's values is that of the rows: from -1 to 1.
fn correlation(row: &CatalogRow) -> Option<f32> {
    let mut slot = pg_sys::AttStatsSlot::default();
    let (kind, flags) = (pg_sys::STATISTIC_KIND_CORRELATION as i32, pg_sys::ATTSTATSSLOT_NUMBERS as i32);
    // SAFETY: a row of pg_statistic that is held; the slot is freed when it was read.
    unsafe {
        let is_known = kept!(pg_sys::get_attstatsslot(&raw mut slot, row.as_tuple(), kind, pg_sys::InvalidOid, flags));
        let found = (is_known && slot.nnumbers > 0).then(|| *slot.numbers);
        if is_known {
            kept!(pg_sys::free_attstatsslot(&raw mut slot));
        }
        found
    }
}

/// The memory of planning has it.
unsafe extern "C-unwind" fn keep(_tuple: pg_sys::HeapTuple) {}
