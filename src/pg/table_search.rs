//! The values of a column around a limit that a snapshot sees: found by reading a table from its first row to its last. Keeps nothing. The lock on the table is kept to the
//! end of the transaction.
//!
//! What is raised here is what any scan of the table may raise: it is cancelled, or a page cannot be read. It passes unchanged.

use arrow_cache_core::Nearest;
use pgrx::pg_sys;

use super::error_passing::keeping;
use super::index_search::{Limit, Rows, TableColumn, TimeOrder, is_searchable, open_at_once};
use super::row_type::RowType;

/// Can the table be searched for values of this type? It is locked.
pub fn is_searched(column: TableColumn, rows: Rows, order: TimeOrder) -> bool {
    // SAFETY: the frames below are without destructors. Relations that are open when something is raised are closed by the server.
    unsafe { keeping(|| with_table(column, rows, order, |_table| ())) }.is_some()
}

/// How large a table is. Plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// In blocks.
    pub blocks: u32,
}

/// The size of the table, if it can be searched for values of this type; it is locked.
pub fn size(column: TableColumn, rows: Rows, order: TimeOrder) -> Option<Size> {
    // SAFETY: the frames below are without destructors. Relations that are open when something is raised are closed by the server.
    unsafe {
        keeping(|| {
            with_table(column, rows, order, |table| Size {
                blocks: direct!(pg_sys::RelationGetNumberOfBlocksInFork(table, pg_sys::ForkNumber::MAIN_FORKNUM)),
            })
        })
    }
}

/// Adds the values of the column, by rank (`TimeOrder::rank`), in the rows that the snapshot sees. NULL is none. False if the table cannot be searched.
///
/// # Safety
/// The snapshot must be an MVCC snapshot that is registered or active, and the limit of the type of the order.
pub unsafe fn gather(
    column: TableColumn,
    rows: Rows,
    order: TimeOrder,
    limit: Limit,
    snapshot: *const pg_sys::SnapshotData,
    found: &mut Nearest,
) -> bool {
    let found = std::ptr::from_mut(found);
    // SAFETY: as in `size`; the caller vouches for the snapshot and the limit.
    unsafe {
        keeping(|| with_table(column, rows, order, |table| search(table, column.number, order, limit, snapshot, found)))
    }
    .is_some()
}

/// Opens the table, and does something with it, if it can be searched. What is raised jumps over this frame.
///
/// # Safety
/// No frame between here and `keeping` may have pending destructors.
unsafe fn with_table<R: Copy>(
    column: TableColumn,
    rows: Rows,
    order: TimeOrder,
    act: impl FnOnce(pg_sys::Relation) -> R + Copy,
) -> Option<R> {
    // SAFETY: what is opened here is closed here.
    unsafe {
        let table = open_at_once(column.table);
        if table.is_null() {
            return None;
        }
        let has_column = (column.number as usize)
            .checked_sub(1)
            .and_then(|place| RowType::of((*table).rd_att).attribute(place))
            .is_some_and(|column| !column.attisdropped && column.atttypid == order.type_oid);
        let result = (has_column && is_searchable(table, rows)).then(|| act(table));
        direct!(pg_sys::relation_close(table, pg_sys::NoLock as pg_sys::LOCKMODE));
        result
    }
}

/// Reads the table.
///
/// # Safety
/// As `gather` and `with_table`; the table is open and has the column.
unsafe fn search(
    table: pg_sys::Relation,
    column: i16,
    order: TimeOrder,
    limit: Limit,
    snapshot: *const pg_sys::SnapshotData,
    found: *mut Nearest,
) {
    use pg_sys::ScanOptions::{SO_ALLOW_PAGEMODE, SO_ALLOW_STRAT, SO_TYPE_SEQSCAN};
    const OPTIONS: u32 = SO_TYPE_SEQSCAN | SO_ALLOW_STRAT | SO_ALLOW_PAGEMODE;
    let limit_rank = order.rank(limit.value);
    // SAFETY: the caller's promise; adding a value neither allocates nor panics. The slot is of the table, which is one of the heap; the scan accepts interrupts at each page.
    unsafe {
        let none = std::ptr::null_mut();
        let slot = direct!(pg_sys::table_slot_create(table, std::ptr::null_mut()));
        let scan = direct!(pg_sys::heap_beginscan(table, snapshot.cast_mut(), 0, none, std::ptr::null_mut(), OPTIONS));
        while direct!(pg_sys::heap_getnextslot(scan, pg_sys::ScanDirection::ForwardScanDirection, slot)) {
            if (*slot).tts_nvalid < column {
                direct!(pg_sys::slot_getsomeattrs_int(slot, i32::from(column)));
            }
            let place = column as usize - 1;
            if *(*slot).tts_isnull.add(place) {
                continue;
            }
            let rank = order.rank(*(*slot).tts_values.add(place));
            let is_beyond = if limit.excluded { rank >= limit_rank } else { rank > limit_rank };
            (*found).add(rank, is_beyond);
        }
        direct!(pg_sys::heap_endscan(scan));
        direct!(pg_sys::ExecDropSingleTupleTableSlot(slot));
    }
}
