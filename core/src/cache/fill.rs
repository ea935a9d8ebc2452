//! Filling: an answer that is being stored gets a record, chunks of data and at last its description, and is published
//! or given up. The process that fills is the only one that writes here; `limbo` and `index` take the locks.
//!
//! Every allocation is recorded in the entry at once, so that an entry abandoned at any moment can be freed by another
//! process.

use crate::atomics::{AtomicI64, Ordering::Relaxed};
use crate::cache::entry::{Dependency, Entry, EntryId, EntryKind};
use crate::cache::eviction::Eviction;
use crate::cache::key::CacheKey;
use crate::cache::memory::{Arena, ArenaPtr, Locks};
use crate::cache::payload::{CHUNK_OVERHEAD, COST, HeadShape, chunk_header, data_of};
use crate::cache::published::Pin;
use crate::cache::store::Store;
use crate::cache::worth::{Uses, Worth};
use std::fmt;

/// Most evictions for one record: other processes may take each record as soon as it is free.
const MOST_EVICTIONS_FOR_RECORD: usize = 64;
/// Most evictions for one allocation: they take no longer than a statement may wait, and a full batch needs far fewer.
const MOST_EVICTIONS_FOR_MEMORY: usize = 16_384;

/// An entry being filled, pinned by its filler.
#[derive(Debug)]
#[must_use]
pub struct Fill {
    entry: EntryId,
    bytes: usize,
    /// Microseconds that computing the result has taken so far, if what is worth more is to stay. `None`: the result
    /// gets its room, whatever has to go for it.
    offer: Option<u64>,
}

impl Fill {
    /// The entry being filled; for a clean-up callback, which may unpin it as [`Store::abandon_unlocked`] does.
    #[must_use]
    pub fn entry(&self) -> EntryId {
        self.entry
    }

    /// Lets the result compete for its room: what is worth more is not evicted for it.
    pub fn compete(&mut self) {
        self.offer = Some(0);
    }

    /// Notes that computing the result has taken so many microseconds so far, which it offers for its room if it
    /// competes for it.
    pub fn note_time(&mut self, so_far: u64) {
        if let Some(micros) = &mut self.offer {
            *micros = so_far;
        }
    }

    /// What has to stay if the result takes so many bytes in all; `None` if nothing has.
    fn worth(&self, bytes: usize) -> Option<Worth> {
        self.offer.map(|micros| Worth::of(micros, bytes as u64, Uses::NONE))
    }

    /// Bytes of data appended so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// What is published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewKind {
    /// The answer of a statement.
    Answer,
    /// The answer of a part.
    Fragment {
        /// Most bytes that all fragments may take together, this one included.
        most_bytes: u64,
    },
}

/// The description of a result, given when it is published.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
    /// What it is.
    pub kind: NewKind,
    /// Database the result belongs to.
    pub database: u32,
    /// Role that computed it.
    pub role: u32,
    /// Text to compare on a match of the key.
    pub text: &'a [u8],
    /// What the result rests on.
    pub dependencies: &'a [Dependency],
    /// Column description, opaque to the store.
    pub descriptor: &'a [u8],
    /// Only a plan of its statement tells whether it may be given. Opaque to the store.
    pub needs_plan: bool,
    /// What the plan that computed it was estimated to cost, opaque to the store.
    pub plan_cost: f64,
    /// Rows of the result.
    pub rows: u64,
    /// Columns of the result.
    pub columns: u32,
    /// How long computing it took, in microseconds.
    pub execution_micros: u64,
    /// Now, in microseconds.
    pub created_at: i64,
    /// When it is no longer served, in microseconds; `i64::MAX` = never.
    pub expires_at: i64,
    /// A moment at which the result was right, or one before that, in microseconds.
    pub known_good: i64,
    /// The version of the database's catalogs, read before the result was computed.
    pub catalogs: u64,
    /// Whoever asked for it takes it when it is outdated, too.
    pub keeps_outdated: bool,
}

impl NewKind {
    fn of_entry(self) -> EntryKind {
        match self {
            NewKind::Answer => EntryKind::Answer,
            NewKind::Fragment { .. } => EntryKind::Fragment,
        }
    }
}

/// Why something was not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// There is no free memory or record, and nothing that could be evicted to get one.
    NoRoom,
    /// What would have to go is worth more.
    Outweighed,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NoRoom => f.write_str("no room could be made in the cache"),
            StoreError::Outweighed => f.write_str("what would have to go is worth more"),
        }
    }
}

impl std::error::Error for StoreError {}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Takes a free entry to fill, evicting one when there is none.
    ///
    /// # Errors
    /// [`StoreError::NoRoom`] when every entry is being read or filled.
    pub fn reserve(&self, now: i64) -> Result<Fill, StoreError> {
        self.reclaim_some();
        for _ in 0..MOST_EVICTIONS_FOR_RECORD {
            if let Some(index) = self.take_free() {
                self.note_given();
                return Ok(Fill { entry: EntryId(index), bytes: 0, offer: None });
            }
            if self.evict_record(now) != Eviction::Done && self.reclaim_more() == 0 {
                break;
            }
        }
        Err(StoreError::NoRoom)
    }

    /// Adds a chunk of `len` bytes at the end, evicting other entries when the arena is full. The data begins on a
    /// multiple of 64 and holds any values: the caller writes all of it. The chunk takes `len` + [`CHUNK_OVERHEAD`]
    /// bytes of the arena.
    ///
    /// # Errors
    /// [`StoreError::NoRoom`] when no room could be made, [`StoreError::Outweighed`] when none for a result of this
    /// worth; the fill is as before and still the caller's.
    pub fn append<'f>(&self, fill: &'f mut Fill, len: usize, now: i64) -> Result<&'f mut [u8], StoreError> {
        let _step = self.step();
        let worth = fill.worth(fill.bytes.saturating_add(len));
        let data = self.append_chunk(fill.entry.0, len, worth, now)?;
        fill.bytes += len;
        // SAFETY: the chunk holds `len` initialised bytes there. Nobody else reads or writes them before publication,
        // which takes the fill that this borrow holds.
        Ok(unsafe { std::slice::from_raw_parts_mut(data, len) })
    }

    /// Publishes the entry under `key` in one step. It replaces an entry with the same key if there is one. The fill's
    /// pin becomes the returned one.
    ///
    /// # Errors
    /// [`StoreError::NoRoom`] when there is no room for the description, or not for one more fragment,
    /// [`StoreError::Outweighed`] as for [`Store::append`]; the fill has been abandoned.
    pub fn publish(&self, fill: Fill, key: CacheKey, new: NewEntry<'_>, now: i64) -> Result<Pin, StoreError> {
        let _step = self.step();
        let index = fill.entry.0;
        let worth = fill.worth(fill.bytes);
        if let Err(error) = self.write_head(index, worth, &new, now).and_then(|()| self.claim(index, new.kind, now)) {
            self.abandon(fill);
            return Err(error);
        }
        self.entry(index).set_key(key);
        self.leave_limbo(index);
        // Before the entry can be found, because a process that retires it subtracts it.
        self.header().published.fetch_add(1, Relaxed);
        let replaced = self.link(index, key);
        if let Some(replaced) = replaced {
            self.note_unpublished(replaced);
            self.enter_limbo(replaced);
            self.entry(replaced).unpin();
            self.reclaim_some();
        }
        Ok(Pin::of(index))
    }

    /// Claims what is shared out by kind. The last step that can fail: it is undone only when the entry leaves the
    /// index.
    fn claim(&self, index: u32, kind: NewKind, now: i64) -> Result<(), StoreError> {
        match kind {
            NewKind::Fragment { most_bytes } if !self.claim_fragment(index, most_bytes, now) => Err(StoreError::NoRoom),
            NewKind::Answer | NewKind::Fragment { .. } => Ok(()),
        }
    }

    /// Gives up a fill and frees what it holds at once.
    pub fn abandon(&self, fill: Fill) {
        let _step = self.step();
        let index = fill.entry.0;
        self.leave_limbo(index);
        let entry = self.entry(index);
        self.note_given_back();
        entry.unpin();
        self.free_payload(index);
        self.give_free(index);
    }

    /// Gives up a fill without taking a lock, from the clean-up of an error; the next [`Store::reclaim`] frees it. The
    /// fill must not be used any more.
    pub fn abandon_unlocked(&self, fill: &Fill) {
        self.note_given_back();
        self.entry(fill.entry.0).unpin();
    }

    /// Allocates a chunk with `len` bytes of data and links it at the end of the entry. Returns the start of the data.
    fn append_chunk(&self, index: u32, len: usize, worth: Option<Worth>, now: i64) -> Result<*mut u8, StoreError> {
        let bytes = len.checked_add(CHUNK_OVERHEAD).ok_or(StoreError::NoRoom)?;
        let entry = self.entry(index);
        let chunk = self.allocate(entry, bytes, worth, now)?;
        let start = self.arena.address(chunk);
        // SAFETY: the allocation is ours and larger than a header; its bytes are initialised.
        let header = unsafe { chunk_header(start) };
        header.set(ArenaPtr::NULL, len);
        let last = ArenaPtr(entry.last_chunk.load(Relaxed));
        if last.is_null() {
            entry.first_chunk.store(chunk.0, Relaxed);
        } else {
            // SAFETY: the last chunk of an entry that we are filling is allocated.
            let before = unsafe { chunk_header(self.arena.address(last)) };
            before.set_next(chunk);
        }
        entry.last_chunk.store(chunk.0, Relaxed);
        entry.chunk_count.fetch_add(1, Relaxed);
        self.account(entry, bytes);
        Ok(data_of(start))
    }

    /// Allocates and writes the head of an entry, and its describing fields.
    fn write_head(&self, index: u32, worth: Option<Worth>, new: &NewEntry<'_>, now: i64) -> Result<(), StoreError> {
        let count = |len: usize| u32::try_from(len).map_err(|_| StoreError::NoRoom);
        let text_len = count(new.text.len())?;
        let descriptor_len = count(new.descriptor.len())?;
        let dependency_count = count(new.dependencies.len())?;
        let shape = HeadShape::new(new.dependencies.len(), new.descriptor.len(), new.text.len());
        let entry = self.entry(index);
        let head = self.allocate(entry, shape.total, worth, now)?;
        entry.head.store(head.0, Relaxed);
        self.account(entry, shape.total);
        let start = self.arena.address(head);
        // SAFETY: the allocation is ours, holds `shape.total` bytes and is aligned to 8, as dependencies need; the
        // parts follow one another.
        unsafe {
            start.cast::<AtomicI64>().write(AtomicI64::new(new.known_good));
            start.add(COST).cast::<f64>().write(new.plan_cost);
            start
                .add(shape.dependencies)
                .cast::<Dependency>()
                .copy_from_nonoverlapping(new.dependencies.as_ptr(), new.dependencies.len());
            start.add(shape.descriptor).copy_from_nonoverlapping(new.descriptor.as_ptr(), new.descriptor.len());
            start.add(shape.text).copy_from_nonoverlapping(new.text.as_ptr(), new.text.len());
        }
        entry.text_len.store(text_len, Relaxed);
        entry.descriptor_len.store(descriptor_len, Relaxed);
        entry.dependency_count.store(dependency_count, Relaxed);
        entry.database.store(new.database, Relaxed);
        entry.role.store(new.role, Relaxed);
        entry.columns.store(new.columns, Relaxed);
        entry.set_kind(new.kind.of_entry());
        entry.set_needs_plan(new.needs_plan);
        entry.set_result(new.rows, new.execution_micros);
        entry.created_at.store(new.created_at, Relaxed);
        entry.expires_at.store(new.expires_at, Relaxed);
        entry.reset_usage(now);
        entry.set_catalogs(new.catalogs, new.keeps_outdated);
        Ok(())
    }

    /// Memory for an entry that is being filled, evicting other entries when the arena is full: only those that are not
    /// worth more, if its own worth is given.
    fn allocate(&self, entry: &Entry, bytes: usize, worth: Option<Worth>, now: i64) -> Result<ArenaPtr, StoreError> {
        // A fill cannot evict itself. One that can never fit must not empty the cache.
        let own = entry.bytes.load(Relaxed) as usize;
        if own.saturating_add(bytes) > self.layout.arena_len {
            return Err(StoreError::NoRoom);
        }
        // Bounded, because other processes may take the room as fast as it is made, and freed memory may be too
        // scattered for a large piece.
        for attempt in 0..MOST_EVICTIONS_FOR_MEMORY {
            if let Some(place) = self.arena.allocate(bytes.max(1)) {
                return Ok(place);
            }
            if attempt == 0 && self.reclaim_some() > 0 {
                continue;
            }
            match self.evict(worth, now) {
                Eviction::Done => {}
                Eviction::Outweighed => return Err(StoreError::Outweighed),
                Eviction::Impossible => break,
            }
        }
        Err(StoreError::NoRoom)
    }

    pub(crate) fn account(&self, entry: &Entry, bytes: usize) {
        entry.bytes.fetch_add(bytes as u64, Relaxed);
        self.header().payload_bytes.fetch_add(bytes as u64, Relaxed);
    }
}
