//! The greatest value of a column that a snapshot sees, up to a limit: found by one descent of a B-tree whose first key is the column, or whose keys
//! before it are to have certain values. Keeps nothing. The lock on an index that was searched is held to the end of the transaction, as the planner holds those of all indexes.
//!
//! What is raised here is what any scan of the index may raise: it is cancelled, or a page cannot be read. It passes unchanged.

use pgrx::pg_sys::{self, Datum, Oid};

use super::compat::{begin_index_scan, lock_at_once};
use super::error_passing::keeping;
use super::lists::oids;
use super::object_ids::{DATETIME_FAMILY_OID, HEAP_TABLE_AM_OID, INTEGER_FAMILY_OID, TEXT_FAMILY_OID};
use super::row_type::RowType;

/// The support function of a B-tree that compares two values (access/nbtree.h, `BTORDER_PROC`).
const ORDER_FUNCTION: u16 = 1;

const NO_LOCK: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;

/// Most rows that are looked at. Behind the last row that a snapshot sees there may be many that it does not see.
const MOST_ROWS: usize = 1000;

/// How a type of dates or timestamps, which is passed by value, is ordered: by functions of the server, called by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeOrder {
    /// The type.
    pub type_oid: Oid,
    /// The function that compares two values.
    pub comparison: u32,
    /// The function behind `<`.
    pub less: u32,
    /// The function behind `<=`.
    pub less_or_equal: u32,
}

impl TimeOrder {
    /// A number that is greater for a greater value: all types of dates and timestamps are integers.
    pub fn rank(&self, value: Datum) -> i64 {
        if self.type_oid == pg_sys::DATEOID { i64::from(value.value() as i32) } else { value.value() as i64 }
    }

    /// The value with this rank.
    pub fn value(&self, rank: i64) -> Datum {
        if self.type_oid == pg_sys::DATEOID { Datum::from(rank as i32) } else { Datum::from(rank) }
    }
}

/// A column of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableColumn {
    /// The table.
    pub table: Oid,
    /// The number of the column.
    pub number: i16,
}

/// How an index finds equal values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Equality {
    /// The type of the values in the index.
    pub column: Oid,
    /// The function that compares one of them with a value.
    pub function: u32,
    /// The operator family.
    pub family: u32,
}

/// A column that is to have a value.
#[derive(Clone, Copy)]
pub struct FixedColumn {
    /// Its number; 0 for none.
    pub number: i16,
    /// The value.
    pub value: Datum,
    /// The type of the value.
    pub type_oid: Oid,
    /// How an index on values of the first type finds those that are equal to a value of the second type.
    pub equality: fn(Oid, Oid) -> Option<Equality>,
}

impl FixedColumn {
    /// There is none.
    pub const NONE: Self =
        Self { number: 0, value: Datum::null(), type_oid: pg_sys::InvalidOid, equality: |_column, _value| None };
}

/// Most columns that stand before the column.
const MOST_BEFORE: usize = 4;

/// What a search came to. Plain data.
#[derive(Clone, Copy)]
pub enum Found {
    /// This is the greatest value.
    Value(Datum),
    /// The snapshot sees no value in the limits.
    Nothing,
    /// There is no index that tells, or too many rows were looked at.
    Unknown,
}

/// Which rows are searched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// All that are read with the table, if it has no children.
    All,
    /// Those of the table itself, whatever children it has.
    Own,
}

/// A limit of the search.
#[derive(Clone, Copy)]
pub struct Limit {
    /// Values up to this one.
    pub value: Datum,
    /// This one does not count itself.
    pub excluded: bool,
}

/// Is it a table whose rows are searched, or one above such tables? It is locked.
pub fn may_be_searched(table: Oid) -> bool {
    // SAFETY: the frames below are without destructors. The table is locked already, and closed again.
    unsafe {
        keeping(|| {
            let table = open_at_once(table);
            if table.is_null() {
                return false;
            }
            let is_parent = (*(*table).rd_rel).relkind as u8 == pg_sys::RELKIND_PARTITIONED_TABLE;
            let may_be = is_parent || is_searchable(table, Rows::Own);
            direct!(pg_sys::relation_close(table, NO_LOCK));
            may_be
        })
    }
}

/// The greatest value of the column, up to a limit, that the snapshot sees: in all rows, or in those whose `fixed` columns have their values, as an
/// index permits. NULL is none.
///
/// # Safety
/// The snapshot must be an MVCC snapshot that is registered or active, the limit of the type of the order, and the values of their types.
pub unsafe fn greatest(
    column: TableColumn,
    rows: Rows,
    fixed: &[FixedColumn],
    order: TimeOrder,
    limit: Limit,
    snapshot: *const pg_sys::SnapshotData,
) -> Found {
    // SAFETY: the frames below are without destructors. Relations that are open when something is raised are closed by the server. The caller
    // vouches for the snapshot and the limit.
    unsafe {
        keeping(|| {
            let is_fixed = |number| fixed.iter().any(|one| one.number == number);
            with_index(column, rows, &is_fixed, order, |table, index, before| {
                search((table, index), (column.number, before, fixed), order, limit, snapshot)
            })
        })
    }
    .unwrap_or(Found::Unknown)
}

/// Opens the table and the first index of it that fits, and does something with both, and the number of keys that stand
/// before the column. `None` if none fits, or if one cannot be locked at once: a plan that is kept neither waits for an
/// index that it does not scan nor needs room for its lock. What is raised jumps over this frame.
///
/// # Safety
/// No frame between here and `keeping` may have pending destructors.
unsafe fn with_index(
    column: TableColumn,
    rows: Rows,
    is_fixed: &dyn Fn(i16) -> bool,
    order: TimeOrder,
    act: impl FnOnce(pg_sys::Relation, pg_sys::Relation, usize) -> Found + Copy,
) -> Option<Found> {
    // SAFETY: what is opened here is closed here.
    unsafe {
        let table = open_at_once(column.table);
        if table.is_null() {
            return None;
        }
        let mut found = None;
        if is_searchable(table, rows) {
            for index in oids(direct!(pg_sys::RelationGetIndexList(table))) {
                if !lock_at_once(index) {
                    break;
                }
                let index = direct!(pg_sys::index_open(index, NO_LOCK));
                if let Some(before) = fits(table, index, column.number, is_fixed, order) {
                    found = Some(act(table, index, before));
                    direct!(pg_sys::index_close(index, NO_LOCK));
                    break;
                }
                direct!(pg_sys::index_close(index, pg_sys::AccessShareLock as pg_sys::LOCKMODE));
            }
        }
        direct!(pg_sys::relation_close(table, NO_LOCK));
        found
    }
}

/// Opens a table, which is locked already or can be locked at once; null if it cannot, or is gone. The lock is kept to
/// the end of the transaction.
///
/// # Safety
/// As `with_index`.
pub(super) unsafe fn open_at_once(table: Oid) -> pg_sys::Relation {
    // SAFETY: the caller's promise.
    unsafe {
        if lock_at_once(table) { direct!(pg_sys::try_relation_open(table, NO_LOCK)) } else { std::ptr::null_mut() }
    }
}

/// Is it a table or materialized view of the heap, with no rows but these?
///
/// # Safety
/// It must be open.
pub(super) unsafe fn is_searchable(table: pg_sys::Relation, rows: Rows) -> bool {
    // SAFETY: an open relation has a description.
    let class = unsafe { &*(*table).rd_rel };
    let has_rows = matches!(class.relkind as u8, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW);
    has_rows && class.relam.to_u32() == HEAP_TABLE_AM_OID && (rows == Rows::Own || !class.relhassubclass)
}

/// Does the index have all rows of the table, ordered by the column, as this order says, behind keys that are fixed columns? Returns how many of these
/// there are.
///
/// # Safety
/// It must be open; as `with_index`.
unsafe fn fits(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    column: i16,
    is_fixed: &dyn Fn(i16) -> bool,
    order: TimeOrder,
) -> Option<usize> {
    // SAFETY: an open index has a description, and at least one key. The predicate is NULL in its row if there is none.
    unsafe {
        let form = &*(*index).rd_index;
        let keys = (form.indnkeyatts as usize).min(MOST_BEFORE + 1);
        let key = |place: usize| *form.indkey.values.as_ptr().add(place);
        let before = (0..keys).find(|place| key(*place) == column)?;
        let is_complete = (*(*index).rd_rel).relam == pg_sys::BTREE_AM_OID
            && form.indisvalid
            && form.indisready
            && (0..before).all(|place| key(place) > 0 && is_fixed(key(place)) && has_plain_order(table, index, place))
            && *(*index).rd_opcintype.add(before) == order.type_oid
            && (*(*index).rd_opfamily.add(before)).to_u32() == DATETIME_FAMILY_OID
            && direct!(pg_sys::heap_attisnull(
                (*index).rd_indextuple,
                pg_sys::Anum_pg_index_indpred as i32,
                std::ptr::null_mut()
            ))
            && direct!(pg_sys::index_getprocid(index, before as i16 + 1, ORDER_FUNCTION)).to_u32() == order.comparison
            && (!form.indcheckxmin || is_made_before_all_snapshots(index));
        is_complete.then_some(before)
    }
}

/// Is a key of the index ordered as integers or texts are, by the collation of its column?
///
/// # Safety
/// As `fits`; the key must be a column.
unsafe fn has_plain_order(table: pg_sys::Relation, index: pg_sys::Relation, place: usize) -> bool {
    // SAFETY: an open index has a description of each key, and an open table one of each column.
    unsafe {
        let number = *(*(*index).rd_index).indkey.values.as_ptr().add(place);
        let family = (*(*index).rd_opfamily.add(place)).to_u32();
        let column = RowType::of((*table).rd_att).attribute(number as usize - 1);
        matches!(family, INTEGER_FAMILY_OID | TEXT_FAMILY_OID)
            && column.is_some_and(|column| column.attcollation == *(*index).rd_indcollation.add(place))
    }
}

/// May every snapshot of this transaction use an index that was built over rows with broken chains of updates? The planner asks the same.
///
/// # Safety
/// As `fits`.
unsafe fn is_made_before_all_snapshots(index: pg_sys::Relation) -> bool {
    // SAFETY: the row of an open index; the server's own variable.
    unsafe {
        let row = &*(*(*index).rd_indextuple).t_data;
        let frozen = pg_sys::HEAP_XMIN_FROZEN as u16;
        row.t_infomask & frozen == frozen
            || direct!(pg_sys::TransactionIdPrecedes(row.t_choice.t_heap.t_xmin, pg_sys::TransactionXmin))
    }
}

/// Searches an index that fits, from the limit downwards.
///
/// # Safety
/// As `greatest` and `with_index`; both relations are open.
unsafe fn search(
    (table, index): (pg_sys::Relation, pg_sys::Relation),
    (column, before, fixed): (i16, usize, &[FixedColumn]),
    order: TimeOrder,
    limit: Limit,
    snapshot: *const pg_sys::SnapshotData,
) -> Found {
    let (strategy, function) = if limit.excluded {
        (pg_sys::BTLessStrategyNumber, order.less)
    } else {
        (pg_sys::BTLessEqualStrategyNumber, order.less_or_equal)
    };
    // SAFETY: the caller's promise. The slot is of the table; the value is passed by value, so that it outlives the slot.
    unsafe {
        let descends = *(*index).rd_indoption.add(before) & pg_sys::INDOPTION_DESC as i16 != 0;
        let direction = if descends {
            pg_sys::ScanDirection::ForwardScanDirection
        } else {
            pg_sys::ScanDirection::BackwardScanDirection
        };
        let mut keys: [pg_sys::ScanKeyData; MOST_BEFORE + 1] = std::mem::zeroed();
        let keys = (&raw mut keys).cast::<pg_sys::ScanKeyData>();
        for place in 0..before {
            if !set_key(keys.add(place), index, place, fixed) {
                return Found::Unknown;
            }
        }
        let (number, count) = (before as i16 + 1, before as i32 + 1);
        direct!(pg_sys::ScanKeyInit(keys.add(before), number, strategy as u16, Oid::from(function), limit.value));
        let scan = begin_index_scan(table, index, snapshot.cast_mut(), count);
        direct!(pg_sys::index_rescan(scan, keys, count, std::ptr::null_mut(), 0));
        let slot = direct!(pg_sys::table_slot_create(table, std::ptr::null_mut()));
        let found = first(scan, direction, slot, column);
        direct!(pg_sys::ExecDropSingleTupleTableSlot(slot));
        direct!(pg_sys::index_endscan(scan));
        found
    }
}

/// Makes the key of a search for the value of a fixed column; says whether the index can be searched for it.
///
/// # Safety
/// As `search`; there is room for a key.
unsafe fn set_key(key: *mut pg_sys::ScanKeyData, index: pg_sys::Relation, place: usize, fixed: &[FixedColumn]) -> bool {
    // SAFETY: an open index has a description of each key.
    unsafe {
        let number = *(*(*index).rd_index).indkey.values.as_ptr().add(place);
        let Some(column) = fixed.iter().find(|one| one.number == number) else { return false };
        let Some(equality) = (column.equality)(*(*index).rd_opcintype.add(place), column.type_oid) else {
            return false;
        };
        if (*(*index).rd_opfamily.add(place)).to_u32() != equality.family {
            return false;
        }
        direct!(pg_sys::ScanKeyEntryInitialize(
            key,
            0,
            place as i16 + 1,
            pg_sys::BTEqualStrategyNumber as u16,
            column.type_oid,
            *(*index).rd_indcollation.add(place),
            Oid::from(equality.function),
            column.value
        ));
        true
    }
}

/// The value of the column in the first row of the scan that its snapshot sees.
///
/// # Safety
/// As `search`.
unsafe fn first(
    scan: pg_sys::IndexScanDesc,
    direction: pg_sys::ScanDirection::Type,
    slot: *mut pg_sys::TupleTableSlot,
    column: i16,
) -> Found {
    // SAFETY: the caller's promise. A row that was fetched stands in the slot.
    unsafe {
        for _ in 0..MOST_ROWS {
            if direct!(pg_sys::index_getnext_tid(scan, direction)).is_null() {
                return Found::Nothing;
            }
            if !direct!(pg_sys::index_fetch_heap(scan, slot)) {
                continue;
            }
            if (*slot).tts_nvalid < column {
                direct!(pg_sys::slot_getsomeattrs_int(slot, i32::from(column)));
            }
            let place = column as usize - 1;
            if (*scan).xs_recheck || *(*slot).tts_isnull.add(place) {
                return Found::Unknown;
            }
            return Found::Value(*(*slot).tts_values.add(place));
        }
        Found::Unknown
    }
}
