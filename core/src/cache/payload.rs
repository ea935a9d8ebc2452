//! Payload memory of entries: one head (dependencies, column description, text) and a list of chunks (data). Written by the process that
//! fills the entry, constant from publication until the last pin is gone, freed by whoever took the entry out of limbo; no lock is held here.
//!
//! Every allocation is recorded in the entry in the same breath, so that an entry abandoned at any moment can be freed by somebody else.

use crate::cache::entry::{Dependency, Entry};
use crate::cache::memory::{Arena, ArenaPtr, Locks};
use crate::cache::store::{NewEntry, Store, StoreError};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// In front of the data of a chunk, at the start of its allocation.
#[repr(C)]
pub(crate) struct ChunkHeader {
    /// The next chunk, or null. Set by the process that fills, when it appends.
    next: AtomicU64,
    /// Bytes of data.
    len: AtomicU64,
}

const HEADER: usize = size_of::<ChunkHeader>();
const DATA_ALIGNMENT: usize = 64;

/// What a chunk takes from the arena beyond its data: the header, and the way to the next multiple of 64 from an address that is one of 8.
pub const CHUNK_OVERHEAD: usize = HEADER + DATA_ALIGNMENT - 8;

/// Most evictions for one allocation: few enough to take no longer than a statement may wait, many times what a full batch needs.
const MOST_EVICTIONS: usize = 16_384;

/// Where the parts of a head are.
pub(crate) struct HeadShape {
    pub(crate) descriptor: usize,
    pub(crate) text: usize,
    pub(crate) total: usize,
}

impl HeadShape {
    /// Dependencies come first, for their alignment; the description after them is aligned to 8 for its reader's convenience.
    pub(crate) fn new(dependencies: usize, descriptor: usize, text: usize) -> Self {
        let descriptor_at = dependencies * size_of::<Dependency>();
        let text_at = descriptor_at + descriptor;
        Self { descriptor: descriptor_at, text: text_at, total: text_at + text }
    }
}

/// Walks the chunks of an entry, in order.
#[derive(Clone)]
pub struct Chunks<'a> {
    arena: &'a dyn Arena,
    next: ArenaPtr,
}

impl<'a> Chunks<'a> {
    /// Only for entries that stay pinned, and are published, for `'a`.
    pub(crate) fn new(arena: &'a dyn Arena, entry: &Entry) -> Self {
        Self { arena, next: ArenaPtr(entry.first_chunk.load(Relaxed)) }
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.next.is_null() {
            return None;
        }
        let start = self.arena.address(self.next);
        // SAFETY: the list holds chunks made by `append`, which put a header at the start of each; the pin keeps them.
        let header = unsafe { chunk_header(start) };
        let len = header.len.load(Relaxed) as usize;
        self.next = ArenaPtr(header.next.load(Relaxed));
        // SAFETY: the allocation holds `len` bytes at the aligned place (`append` over-allocated for it). They are initialised, and nobody
        // writes them between publication and the end of the last pin, which `'a` does not outlive.
        Some(unsafe { std::slice::from_raw_parts(data_of(start), len) })
    }
}

/// # Safety
/// `start` is the start of a chunk that stays allocated for `'a`.
unsafe fn chunk_header<'a>(start: *mut u8) -> &'a ChunkHeader {
    // SAFETY: the caller says there is a chunk; arenas align to 8 bytes, as the header needs; its fields are atomics, so sharing is fine.
    unsafe { &*start.cast::<ChunkHeader>() }
}

/// The first multiple of 64 behind the header.
fn data_of(start: *mut u8) -> *mut u8 {
    let after = start.wrapping_add(HEADER);
    after.wrapping_add(after.addr().wrapping_neg() % DATA_ALIGNMENT)
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Allocates a chunk with `len` bytes of data and links it at the end of the entry. Returns the start of the data.
    pub(crate) fn append_chunk(&self, index: u32, len: usize, now: i64) -> Result<*mut u8, StoreError> {
        let bytes = len.checked_add(CHUNK_OVERHEAD).ok_or(StoreError::NoRoom)?;
        let entry = self.entry(index);
        let chunk = self.allocate(entry, bytes, now)?;
        let start = self.arena.address(chunk);
        // SAFETY: the allocation is ours and larger than a header; its bytes are initialised.
        let header = unsafe { chunk_header(start) };
        header.next.store(ArenaPtr::NULL.0, Relaxed);
        header.len.store(len as u64, Relaxed);
        let last = ArenaPtr(entry.last_chunk.load(Relaxed));
        if last.is_null() {
            entry.first_chunk.store(chunk.0, Relaxed);
        } else {
            // SAFETY: the last chunk of an entry that we are filling is allocated.
            let before = unsafe { chunk_header(self.arena.address(last)) };
            before.next.store(chunk.0, Relaxed);
        }
        entry.last_chunk.store(chunk.0, Relaxed);
        entry.chunk_count.fetch_add(1, Relaxed);
        self.account(entry, bytes);
        Ok(data_of(start))
    }

    /// Allocates and writes the head of an entry, and its describing fields.
    pub(crate) fn write_head(&self, index: u32, new: &NewEntry<'_>, now: i64) -> Result<(), StoreError> {
        let count = |len: usize| u32::try_from(len).map_err(|_| StoreError::NoRoom);
        let text_len = count(new.text.len())?;
        let descriptor_len = count(new.descriptor.len())?;
        let dependency_count = count(new.dependencies.len())?;
        let shape = HeadShape::new(new.dependencies.len(), new.descriptor.len(), new.text.len());
        let entry = self.entry(index);
        let head = self.allocate(entry, shape.total, now)?;
        entry.head.store(head.0, Relaxed);
        self.account(entry, shape.total);
        let start = self.arena.address(head);
        // SAFETY: the allocation is ours, holds `shape.total` bytes and is aligned to 8, as dependencies need; the parts follow one another.
        unsafe {
            start.cast::<Dependency>().copy_from_nonoverlapping(new.dependencies.as_ptr(), new.dependencies.len());
            start.add(shape.descriptor).copy_from_nonoverlapping(new.descriptor.as_ptr(), new.descriptor.len());
            start.add(shape.text).copy_from_nonoverlapping(new.text.as_ptr(), new.text.len());
        }
        entry.text_len.store(text_len, Relaxed);
        entry.descriptor_len.store(descriptor_len, Relaxed);
        entry.dependency_count.store(dependency_count, Relaxed);
        entry.database.store(new.database, Relaxed);
        entry.role.store(new.role, Relaxed);
        entry.columns.store(new.columns, Relaxed);
        entry.set_plan(new.plan);
        entry.set_result(new.rows, new.execution_micros);
        entry.created_at.store(new.created_at, Relaxed);
        entry.expires_at.store(new.expires_at, Relaxed);
        entry.reset_usage(now);
        Ok(())
    }

    /// Frees everything an entry owns. The entry is out of the index and out of limbo, and has no pins: it is the caller's alone.
    pub(crate) fn free_payload(&self, entry: &Entry) {
        let mut next = ArenaPtr(entry.first_chunk.swap(0, Relaxed));
        entry.last_chunk.store(0, Relaxed);
        entry.chunk_count.store(0, Relaxed);
        while !next.is_null() {
            let chunk = next;
            // SAFETY: a chunk of the list, not freed yet.
            let header = unsafe { chunk_header(self.arena.address(chunk)) };
            next = ArenaPtr(header.next.load(Relaxed));
            // SAFETY: allocated by `append_chunk`; the list named it once and no longer does; nobody holds a pin to read it.
            unsafe { self.arena.free(chunk) };
        }
        let head = ArenaPtr(entry.head.swap(0, Relaxed));
        if !head.is_null() {
            // SAFETY: allocated by `write_head`; the entry no longer names it; nobody holds a pin to read it.
            unsafe { self.arena.free(head) };
        }
        let bytes = entry.bytes.swap(0, Relaxed);
        self.header().payload_bytes.fetch_sub(bytes, Relaxed);
    }

    /// Memory for an entry that is being filled, evicting others when the arena is full.
    fn allocate(&self, entry: &Entry, bytes: usize, now: i64) -> Result<ArenaPtr, StoreError> {
        // What the fill holds itself cannot be evicted: do not empty the cache for something that cannot fit.
        let own = entry.bytes.load(Relaxed) as usize;
        if own.saturating_add(bytes) > self.layout.arena_len {
            return Err(StoreError::NoRoom);
        }
        // Bounded, should others take the room as fast as it is made, or should what is freed lie too scattered for a large piece.
        for attempt in 0..MOST_EVICTIONS {
            if let Some(place) = self.arena.allocate(bytes.max(1)) {
                return Ok(place);
            }
            let reclaimed = attempt == 0 && self.reclaim_some() > 0;
            if !reclaimed && !self.evict(now) {
                break;
            }
        }
        Err(StoreError::NoRoom)
    }

    fn account(&self, entry: &Entry, bytes: usize) {
        entry.bytes.fetch_add(bytes as u64, Relaxed);
        self.header().payload_bytes.fetch_add(bytes as u64, Relaxed);
    }
}
