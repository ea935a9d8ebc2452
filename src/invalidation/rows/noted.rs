//! What the transaction under way has noted of the rows that it has changed in tracked relations. State of this
//! backend, forgotten when the transaction ends; no lock. At most `MOST_RELATIONS` relations of about a kilobyte each;
//! changes of further ones are not noted.

use std::cell::{Cell, RefCell};
use std::num::NonZero;

use arrow_cache_core::versions::noted_rows::{Coarse, CountedChanges, NotedRows, RowChange, RowChanges};
use arrow_cache_core::{ITS_VALUE, Room, TrackedColumns, quietly};
use pgrx::pg_sys;

use super::as_read;
use super::contents::{Column, Columns, Content, Version};
use super::watched::Watched;
use crate::pg::attention;
use crate::pg::backend_local::Local;
use crate::pg::relcache_listener;
use crate::pg::transaction_changes::Change;

/// Most tracked relations of which a transaction notes changes.
const MOST_RELATIONS: usize = 32;

/// Relations that memory is kept for when a transaction ends.
const KEPT: usize = 4;

/// What is noted of one relation.
struct Noted {
    relation: u32,
    rows: NotedRows,
}

/// What is noted of each relation.
struct Notes {
    /// Memory that the transaction does not use yet comes last.
    all: Vec<Noted>,
    used: usize,
}

impl Notes {
    fn used(&mut self) -> &mut [Noted] {
        &mut self.all[..self.used]
    }

    /// Begins to note changes of one more relation; returns where. `None` if there are too many, or no memory.
    fn begin(&mut self, relation: u32, tracked: TrackedColumns) -> Option<usize> {
        if self.used == self.all.len() {
            let fits = self.used < MOST_RELATIONS && self.all.make_room(1).is_ok();
            fits.then(|| self.all.push(Noted { relation, rows: NotedRows::new(tracked) }))?;
        }
        let noted = &mut self.all[self.used];
        noted.relation = relation;
        noted.rows.start_anew(tracked);
        self.used += 1;
        Some(self.used - 1)
    }
}

static NOTED: Local<RefCell<Notes>> = Local::new(RefCell::new(Notes { all: Vec::new(), used: 0 }));
/// The transaction has begun a statement that may write to a tracked relation.
static IS_BUSY: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Nodes are about to be watched.
pub fn begin() {
    attention::leave_for_end();
    IS_BUSY.set(true);
}

/// Returns true if no statement of the transaction may have written to a tracked relation: nothing is noted, and
/// nothing watched.
#[inline]
pub fn is_idle() -> bool {
    !IS_BUSY.get()
}

/// Where the changes of a relation are noted; `None` if they are not noted. A statement is about to change a row of it
/// for the first time, and finds that these columns are tracked.
pub fn place_for(relation: u32, tracked: &TrackedColumns) -> Option<usize> {
    let known = NOTED.with_borrow_mut(|notes| {
        let place = notes.used().iter().position(|noted| noted.relation == relation)?;
        notes.all[place].rows.expect(tracked);
        Some((place, notes.all[place].rows.wants_more()))
    });
    if let Some((place, wants_more)) = known {
        return wants_more.then_some(place);
    }
    // Memory is kept for one relation at least, once something was noted.
    if NOTED.with_borrow(|notes| notes.all.is_empty()) {
        relcache_listener::listen(relation_changed);
    }
    NOTED.with_borrow_mut(|notes| notes.begin(relation, *tracked))
}

/// The definition of a relation may have changed, also by the end of a subtransaction that is rolled back.
fn relation_changed(relation: pg_sys::Oid) {
    let is_it = |noted: &&mut Noted| relation == pg_sys::InvalidOid || relation.to_u32() == noted.relation;
    NOTED.with_borrow_mut(|notes| notes.used().iter_mut().filter(is_it).for_each(|noted| noted.rows.redefine()));
}

/// The block in which a version of a row lies.
fn block_of(version: pg_sys::ItemPointerData) -> u32 {
    u32::from(version.ip_blkid.bi_hi) << 16 | u32::from(version.ip_blkid.bi_lo)
}

/// Notes a value that a row had before or after, or other hashes for it: one for each column that was `set`, if that
/// are quiet ones alone and leave the value as it is.
#[inline(always)]
fn add_value(rows: &mut NotedRows, (column, hash): (&Column, u64), columns: &Columns, set: Option<NonZero<u64>>) {
    match set {
        Some(set) if column.is_kept => add_quietly(rows, (column, hash), columns, set),
        _ => rows.add_value(column.place_of(hash)),
    }
}

#[inline(never)]
fn add_quietly(rows: &mut NotedRows, (column, hash): (&Column, u64), columns: &Columns, set: NonZero<u64>) {
    columns.quiet.among(set.get()).for_each(|place| rows.add_value(column.place_of(quietly(hash, place))));
}

/// Notes a change that the heap has made: the row that a slot holds has come, or a version of a row has gone, or both.
/// Returns true if it is worth noting more. May raise.
///
/// # Safety
/// The query of the node must be under way, and the slot, if it is not null, hold a row of its relation.
pub unsafe fn note(
    watched: &Watched,
    change: RowChange,
    new: *mut pg_sys::TupleTableSlot,
    old: Option<pg_sys::ItemPointerData>,
) -> bool {
    let Watched { place, relation, columns, .. } = watched;
    // SAFETY: the caller's promise. Nothing is borrowed while versions are fetched.
    unsafe {
        // A function that a constraint calls may change another row, which need not keep anything.
        let is_own = change == RowChange::Update && std::ptr::eq(new, (*watched.target).ri_newTupleSlot);
        let is_looked_at = columns.have_values();
        let is_kept = is_own && columns.keeps_values;
        let is_changed = is_looked_at && !is_kept;
        let updated = (*watched.target).ri_oldTupleSlot;
        let before = match old {
            Some(old) if is_changed && as_read::holds(watched.read, old) => {
                Some(Version::in_slot(columns, watched.read))
            }
            Some(old) if is_changed && as_read::holds(updated, old) => Some(Version::in_slot(columns, updated)),
            Some(old) if is_changed => Version::fetched(*relation, old),
            _ => None,
        };
        let after = (is_looked_at && !new.is_null()).then(|| Version::in_slot(columns, new));
        // The heap has told where the new version is.
        let places = [old, new.as_ref().map(|new| new.tts_tid)];
        let goes_on = noting(*place, |rows| {
            rows.add_change(change, || Change::of(*relation).map(Change::counted));
            if is_changed && old.is_some() && before.is_none() {
                rows.give_up(Coarse::Overflow);
            }
            add_row(rows, columns, columns.quietly_set.filter(|_| is_own), places, [&before, &after]);
        });
        before.into_iter().for_each(Version::release);
        goes_on
    }
}

/// Notes rows that the heap has inserted together, which slots hold. Returns true if it is worth noting more. May
/// raise.
///
/// # Safety
/// Slots that hold rows of an open relation, whose columns these are, and that know where the rows lie.
pub unsafe fn note_inserted(
    relation: pg_sys::Relation,
    place: usize,
    columns: &Columns,
    slots: &[*mut pg_sys::TupleTableSlot],
) -> bool {
    let inserted = RowChanges { inserted: slots.len() as i64, ..RowChanges::default() };
    let mut last_block = None;
    // SAFETY: the caller's promise.
    unsafe {
        let counted = || Change::of(relation).map(Change::counted);
        let mut goes_on = noting(place, |rows| rows.add_changes(inserted, counted));
        let is_looked_at = columns.have_values();
        for slot in slots {
            let version = (**slot).tts_tid;
            // Rows of one block follow each other.
            if !is_looked_at && last_block == Some(block_of(version)) {
                continue;
            }
            last_block = Some(block_of(version));
            let row = is_looked_at.then(|| Version::in_slot(columns, *slot));
            goes_on = noting(place, |rows| add_row(rows, columns, None, [None, Some(version)], [&None, &row]));
            if !goes_on {
                break;
            }
        }
        goes_on
    }
}

/// Notes more of what is noted at this place, if that is worth it. Returns true if it still is.
fn noting(place: usize, note: impl FnOnce(&mut NotedRows)) -> bool {
    NOTED.with_borrow_mut(|notes| {
        let Some(Noted { rows, .. }) = notes.used().get_mut(place) else { return false };
        if rows.wants_more() {
            note(rows);
        }
        rows.wants_more()
    })
}

/// Notes what a row was and is: where its versions lie, and their values, as far as these are looked at. The columns
/// that were `set`, by their bits, are a few quiet ones.
///
/// # Safety
/// The versions must be made for the columns.
#[inline(always)]
unsafe fn add_row(
    rows: &mut NotedRows,
    columns: &Columns,
    set: Option<NonZero<u64>>,
    places: [Option<pg_sys::ItemPointerData>; 2],
    versions: [&Option<Version>; 2],
) {
    if columns.have_more {
        add_places(rows, columns, set, places);
    }
    if columns.have_values() {
        rows.look();
    }
    for version in versions {
        let Some(version) = version else { continue };
        for column in columns.iter() {
            // SAFETY: the caller's promise.
            match unsafe { version.hash(column) } {
                Some(Some(hash)) => add_value(rows, (column, hash), columns, set),
                Some(None) => rows.give_up(Coarse::Overflow),
                None => {}
            }
        }
    }
}

/// Notes what a row has beside its values: that it is there, and where its versions lie.
#[inline(never)]
fn add_places(
    rows: &mut NotedRows,
    columns: &Columns,
    set: Option<NonZero<u64>>,
    places: [Option<pg_sys::ItemPointerData>; 2],
) {
    for place in places.iter().flatten() {
        for column in columns.iter() {
            match column.content {
                Content::ItsValue => add_value(rows, (column, ITS_VALUE), columns, set),
                Content::Zone(size) => rows.add_value(column.place_of(u64::from(block_of(*place) >> size))),
                Content::Nothing | Content::Value(_) | Content::Pair(..) => {}
            }
        }
    }
}

/// Lends the places of the values that changed rows of a relation had before or after to `f`, some more than once, and
/// the numbers of the columns of which they may not be all. `tracked` are the columns of now, and `counted` what the
/// server has counted.
///
/// # Errors
/// Why the values may not be all. Then nothing is lent.
pub fn with_noted(
    relation: u32,
    tracked: &TrackedColumns,
    counted: &CountedChanges,
    f: impl FnOnce(&[u64], &mut dyn Iterator<Item = i16>),
) -> Result<(), Coarse> {
    NOTED.with_borrow_mut(|notes| {
        let noted = notes.used().iter().find(|noted| noted.relation == relation).ok_or(Coarse::NotNoted)?;
        let (values, mut unknown) = noted.rows.values(tracked, counted)?;
        f(values, &mut unknown);
        Ok(())
    })
}

/// Forgets what was noted, at the end of the transaction.
pub fn forget() {
    IS_BUSY.set(false);
    NOTED.with_borrow_mut(|notes| {
        notes.used().iter_mut().for_each(|noted| noted.rows.forget_values());
        notes.used = 0;
        notes.all.truncate(KEPT);
        notes.all.shrink_to(KEPT);
    });
}
