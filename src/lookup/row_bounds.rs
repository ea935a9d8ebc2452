//! Canonical bounds of columns without an index (`query::clock::sight`): the values around a time that the rows of the
//! table have are found by reading the table, and stored like a part of an answer, which rests on that table. They give
//! the bound for all times between them, to all sessions, as long as the table does not change. The entries lie in
//! shared memory; this backend remembers how often it has asked in vain. No lock.

use std::cell::RefCell;
use std::io::Write;
use std::time::Duration;

use arrow_cache_core::{
    CacheKey, Counter, Dependency, HashBuffer, Nearest, NewEntry, NewKind, Reason, RoomyVec, SnapshotView, Validity,
    nearest_values,
};
use pgrx::pg_sys;

use super::rules;
use crate::invalidation::own_writes;
use crate::pg::backend_local::Local;
use crate::pg::index_search::{Found, Limit, Rows, TableColumn, TimeOrder};
use crate::pg::table_search;
use crate::pg::tree::{Tree, child};
use crate::pg::{backend, compat};
use crate::query::clock::{Sight, Unindexed};
use crate::query::opened_relations::opened_by;
use crate::settings;
use crate::shmem::SharedStore;

/// Largest table that is read when it is asked for the first time: half a megabyte, which takes less than a
/// millisecond.
const FEW_BLOCKS: u32 = 64;
/// How often a larger one has to be asked for before it is read.
const FIRST_PATIENCE: u32 = 2;
/// How often, at most, a table whose bounds were of no use is asked for before it is read again.
const MOST_PATIENCE: u32 = 1_024;
/// A twentieth of the time that a statement may take has to do for reading: 10 microseconds for a block are more than
/// it takes.
const TIME_FOR_A_BLOCK: Duration = Duration::from_micros(200);
/// Columns that a backend remembers.
const PLACES: usize = 32;

/// What may be done to find a bound.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// To look for stored ones.
    Look,
    /// The same; if there is none that could be found, there is said to be no row below. Only for asking whether a
    /// statement could be cached: its key is not that of its answer.
    Pretend,
    /// To read the table, if the statement reads it, too.
    Read,
}

/// Finds bounds under a snapshot.
pub struct RowBounds<'s> {
    store: &'s SharedStore,
    snapshot: &'s pg_sys::SnapshotData,
    view: &'s SnapshotView<'s>,
    effort: Effort,
    /// The plan of the statement, if it has one.
    plan: Option<Tree<'s, pg_sys::PlannedStmt>>,
}

impl<'s> RowBounds<'s> {
    /// `view` is the snapshot as the protocol sees it.
    pub fn new(
        store: &'s SharedStore,
        snapshot: &'s pg_sys::SnapshotData,
        view: &'s SnapshotView<'s>,
        effort: Effort,
    ) -> Self {
        Self { store, snapshot, view, effort, plan: None }
    }

    /// The same for a statement with this plan.
    pub fn of_plan(self, plan: Tree<'s, pg_sys::PlannedStmt>) -> Self {
        Self { plan: Some(plan), ..self }
    }

    /// What canonical bounds are found with, in these relations (`Sight::relations`).
    pub fn sight<'q>(&'q self, relations: Option<&'q [u32]>) -> Sight<'q> {
        Sight { snapshot: self.snapshot, relations, plan: self.plan, unindexed: Some(self) }
    }

    /// Returns true if the table may be read for this statement: its plan reads it from the first row to the last, so
    /// that reading it once more takes no more than that, and raises what the statement raises. A role without rights must
    /// learn nothing, and a statement that is given a time must not need more because of the cache.
    fn may_read(&self, table: pg_sys::Oid, blocks: u32) -> bool {
        let Some(plan) = self.plan else { return false };
        let total = child!(plan.planTree).map_or(0.0, |top| top.total_cost);
        // A statement with LIMIT may stop early.
        let is_read = opened_by(plan).read_whole.iter().any(|(read, cost)| *read == table && total * 2.0 >= *cost);
        let has_time = compat::shortest_timeout().is_none_or(|timeout| timeout >= TIME_FOR_A_BLOCK * blocks);
        is_read && has_time && compat::is_permitted(plan)
    }

    /// Does something with the values that are stored, if they hold under the snapshot.
    fn with_stored<R>(&self, place: &Place, act: impl FnOnce(&[u8]) -> Option<R>) -> Option<R> {
        let pin = self.store.lookup(place.key)?;
        let view = self.store.view(&pin);
        let is_it = view.text() == place.text();
        let held = if is_it { self.store.valid_for(&pin, self.view) } else { Validity::NotVisible };
        let result = if held == Validity::Valid { act(view.descriptor()) } else { None };
        if result.is_some() {
            self.store.touch(&pin, backend::statement_start());
        }
        if held == Validity::Changed {
            self.store.retire(&pin);
        }
        self.store.unpin(pin);
        result
    }

    /// Reads the table, and stores what that has found beside what is stored. `None` if the table cannot be read.
    ///
    /// # Errors
    /// The reason to bypass when the snapshot does not see the table whole: no answer would be stored.
    fn find(&self, place: &Place, rows: Rows, order: TimeOrder, limit: Limit) -> Result<Option<Option<i64>>, Reason> {
        let out_of_memory = |_| Reason::OutOfMemory;
        let relations = [place.column.table.to_u32()];
        let dependencies = rules::dependencies(self.store, &relations, false, self.view)?;
        let began = backend::now();
        let mut found = Nearest::new().map_err(out_of_memory)?;
        // SAFETY: the snapshot is that of the statement, which is registered or active; the limit is of the type of the
        // order.
        if !unsafe { table_search::gather(place.column, rows, order, limit, self.snapshot, &mut found) } {
            return Ok(None);
        }
        // What is stored is of the versions that the dependencies have, if these are still the same when it is
        // published.
        let older = self.with_stored(place, |bytes| {
            let mut older = Vec::new();
            older.add_all(bytes).ok().map(|()| older)
        });
        let values = found.written(order.type_oid.to_u32(), older.as_deref()).map_err(out_of_memory)?;
        self.keep(place, &values, &dependencies, began);
        Ok(Some(found.lower()))
    }

    /// Stores values, if nothing has changed that they rest on. If there is no room, they are found again.
    fn keep(&self, place: &Place, values: &[u8], dependencies: &[Dependency], began: i64) {
        let store = self.store;
        let now = backend::now();
        if rules::have_changed(store, dependencies).next().is_some() {
            return;
        }
        let Ok(fill) = store.reserve(now) else { return };
        let entry = NewEntry {
            kind: NewKind::Fragment { most_bytes: settings::fragment_bytes() },
            database: backend::database(),
            // It is about all rows, whoever may read them: only who may see the statements of all users sees it.
            role: pg_sys::InvalidOid.to_u32(),
            text: place.text(),
            dependencies,
            descriptor: values,
            needs_plan: false,
            plan_cost: 0.0,
            rows: 0,
            columns: 0,
            execution_micros: u64::try_from(now - began).unwrap_or(0),
            created_at: now,
            known_good: backend::statement_start(),
            catalogs: rules::UNKNOWN_CATALOGS,
            keeps_outdated: false,
            expires_at: i64::MAX,
        };
        if let Ok(pin) = store.publish(fill, place.key, entry, now) {
            store.unpin(pin);
            store.counters().add(store.stripe(), Counter::FragmentsStored, 1);
        }
    }
}

impl Unindexed for RowBounds<'_> {
    fn greatest(&self, column: TableColumn, rows: Rows, order: TimeOrder, limit: Limit) -> Result<Found, Reason> {
        // What is stored may come from a reading of the table's own rows.
        if !table_search::is_searched(column, rows, order) {
            return Ok(Found::Unknown);
        }
        let place = Place::of(self.store, column)?;
        let (tag, rank) = (order.type_oid.to_u32(), order.rank(limit.value));
        let stored = self.with_stored(&place, |bytes| nearest_values::lower(bytes, tag, rank, limit.excluded));
        let found = match stored {
            Some(found) => {
                note_use(column);
                Some(found)
            }
            None if self.effort == Effort::Look || !may_be_kept() => None,
            None => match table_search::size(column, rows, order) {
                Some(size) if size.blocks > settings::max_clock_scan_blocks() => None,
                Some(size) if !self.may_read(column.table, size.blocks) => None,
                Some(_) if self.effort == Effort::Pretend => return Ok(Found::Nothing),
                Some(size) if !own_writes::has_transaction_id() && is_due(column, size.blocks) => {
                    self.find(&place, rows, order, limit)?
                }
                _ => None,
            },
        };
        Ok(match found {
            Some(Some(lower)) => Found::Value(order.value(lower)),
            Some(None) => Found::Nothing,
            None => Found::Unknown,
        })
    }
}

/// Are bounds stored that are found now?
fn may_be_kept() -> bool {
    settings::max_clock_scan_blocks() > 0 && settings::fragment_bytes() > 0 && settings::populate()
}

/// Where the bounds of a column are stored.
struct Place {
    column: TableColumn,
    key: CacheKey,
    text: [u8; 64],
    length: usize,
}

impl Place {
    /// # Errors
    /// There is no memory for the key.
    fn of(store: &SharedStore, column: TableColumn) -> Result<Self, Reason> {
        let mut key = HashBuffer::new();
        key.u64(store.seed());
        key.part(b"bounds");
        key.u32(backend::database());
        key.u32(column.table.to_u32());
        key.u32(u32::from(column.number.cast_unsigned()));
        if !key.is_complete() {
            return Err(Reason::OutOfMemory);
        }
        let mut text = [0; 64];
        let mut rest = text.as_mut_slice();
        // There is room for the longest numbers.
        let _ = write!(rest, "bounds of column {} of relation {}", column.number, column.table.to_u32());
        let length = 64 - rest.len();
        Ok(Self { column, key: CacheKey(key.finish()), text, length })
    }

    fn text(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or(&[])
    }
}

/// How often this backend has to ask for the bounds of a column before the table is read. Plain data.
#[derive(Clone, Copy)]
struct Asked {
    column: TableColumn,
    /// So often from now on.
    left: u32,
    /// So often since the table was read last, if its bounds have been of no use.
    patience: u32,
}

impl Asked {
    const NOTHING: Self = Self { column: TableColumn { table: pg_sys::InvalidOid, number: 0 }, left: 0, patience: 0 };
}

/// By column: each takes the place of another with the same remainder.
static ASKED: Local<RefCell<[Asked; PLACES]>> = Local::new(RefCell::new([Asked::NOTHING; PLACES]));

/// Does something with what is remembered of a column, which is `new` if nothing is.
fn with_asked<R>(new: Asked, act: impl FnOnce(&mut Asked) -> R) -> R {
    ASKED.with_borrow_mut(|asked| {
        let TableColumn { table, number } = new.column;
        let number = table.to_u32().wrapping_add(u32::from(number.cast_unsigned()));
        let asked = &mut asked[number as usize % PLACES];
        if asked.column != new.column {
            *asked = new;
        }
        act(asked)
    })
}

/// Notes that stored bounds were of use: that pays for reading the table again.
fn note_use(column: TableColumn) {
    with_asked(Asked { column, ..Asked::NOTHING }, |asked| (asked.left, asked.patience) = (0, 0));
}

/// Returns true if a table of so many blocks is to be read now. Reading one whose last bounds have not paid takes twice the patience of
/// the time before.
fn is_due(column: TableColumn, blocks: u32) -> bool {
    let left = if blocks <= FEW_BLOCKS { 0 } else { FIRST_PATIENCE };
    with_asked(Asked { column, left, patience: 0 }, |asked| {
        if asked.left > 0 {
            asked.left -= 1;
            return false;
        }
        asked.patience = (asked.patience * 2 + 1).min(MOST_PATIENCE);
        asked.left = asked.patience;
        true
    })
}
