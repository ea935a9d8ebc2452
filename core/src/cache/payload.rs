//! The layout of an entry's payload memory: one head (a time, dependencies, column description, text) and a list of
//! chunks (data). The process that fills the entry writes it (see `fill`). It is constant from publication until the
//! last pin is gone, but for the time, an atomic. The process that took the entry out of limbo frees it. No lock is
//! held here.

use crate::atomics::{AtomicI64, AtomicU64, Ordering::Relaxed};
use crate::cache::entry::{Dependency, Entry};
use crate::cache::memory::{Arena, ArenaPtr, Locks};
use crate::cache::store::Store;

/// In front of the data of a chunk, at the start of its allocation.
#[repr(C)]
pub(crate) struct ChunkHeader {
    /// The next chunk, or null. Set by the process that fills, when it appends.
    next: AtomicU64,
    /// Bytes of data.
    len: AtomicU64,
}

impl ChunkHeader {
    /// By the process that fills.
    pub(crate) fn set(&self, next: ArenaPtr, len: usize) {
        self.set_next(next);
        self.len.store(len as u64, Relaxed);
    }

    /// The next chunk, or null.
    pub(crate) fn next(&self) -> ArenaPtr {
        ArenaPtr(self.next.load(Relaxed))
    }

    /// Bytes of data.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Relaxed) as usize
    }

    /// By the process that fills.
    pub(crate) fn set_next(&self, next: ArenaPtr) {
        self.next.store(next.0, Relaxed);
    }
}

const HEADER: usize = size_of::<ChunkHeader>();
const DATA_ALIGNMENT: usize = 64;

/// Bytes that a chunk takes from the arena beyond its data: the header, and at most 56 bytes from a multiple of 8 to
/// the next one of 64.
pub const CHUNK_OVERHEAD: usize = HEADER + DATA_ALIGNMENT - 8;

/// Bytes of the time that a head begins with.
const GOOD: usize = size_of::<AtomicI64>();
/// Where the cost of the plan is in a head.
pub(crate) const COST: usize = GOOD;
/// Where the dependencies begin.
const DEPENDENCIES: usize = COST + size_of::<f64>();

/// Where the parts of a head are.
pub(crate) struct HeadShape {
    pub(crate) dependencies: usize,
    pub(crate) descriptor: usize,
    pub(crate) text: usize,
    pub(crate) total: usize,
}

impl HeadShape {
    /// The time at which the entry was last known to be good comes first, then the cost of the plan and the
    /// dependencies, for their alignment; the description after them is aligned to 8, as its reader expects.
    pub(crate) fn new(dependencies: usize, descriptor: usize, text: usize) -> Self {
        let descriptor_at = DEPENDENCIES + dependencies * size_of::<Dependency>();
        let text_at = descriptor_at + descriptor;
        Self { dependencies: DEPENDENCIES, descriptor: descriptor_at, text: text_at, total: text_at + text }
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
        // SAFETY: the list holds chunks made by `append_chunk`, which put a header at the start of each; the pin keeps
        // them.
        let header = unsafe { chunk_header(start) };
        let len = header.len();
        self.next = header.next();
        // SAFETY: the allocation holds `len` bytes at the aligned place (`append_chunk` over-allocated for it). They
        // are initialised, and nobody writes them between publication and the end of the last pin, which `'a` does not
        // outlive.
        Some(unsafe { std::slice::from_raw_parts(data_of(start), len) })
    }
}

/// # Safety
/// `start` is the start of a chunk that stays allocated for `'a`.
pub(crate) unsafe fn chunk_header<'a>(start: *mut u8) -> &'a ChunkHeader {
    // SAFETY: the caller guarantees a chunk there; arenas align to 8 bytes, as the header needs; its fields are
    // atomics, so sharing is fine.
    unsafe { &*start.cast::<ChunkHeader>() }
}

/// The first multiple of 64 behind the header.
pub(crate) fn data_of(start: *mut u8) -> *mut u8 {
    let after = start.wrapping_add(HEADER);
    after.wrapping_add(after.addr().wrapping_neg() % DATA_ALIGNMENT)
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Frees a chain of chunks, which nobody reads.
    pub(crate) fn free_chain(&self, mut chunk: ArenaPtr) {
        while !chunk.is_null() {
            // SAFETY: a chunk of the chain, not freed yet.
            let next = unsafe { chunk_header(self.arena.address(chunk)) }.next();
            // SAFETY: allocated by `append_chunk` or `append_block`; the chain named it once; the caller says that
            // nobody reads it.
            unsafe { self.arena.free(chunk) };
            chunk = next;
        }
    }

    /// Frees everything an entry owns. The entry is out of the index and out of limbo, and has no pins: it is the
    /// caller's alone.
    pub(crate) fn free_payload(&self, index: u32) {
        let entry = self.entry(index);
        self.free_file(index);
        let chunks = ArenaPtr(entry.first_chunk.swap(0, Relaxed));
        entry.last_chunk.store(0, Relaxed);
        entry.chunk_count.store(0, Relaxed);
        self.free_chain(chunks);
        let head = ArenaPtr(entry.head.swap(0, Relaxed));
        if !head.is_null() {
            // SAFETY: allocated by `write_head`; the entry no longer names it; nobody holds a pin to read it.
            unsafe { self.arena.free(head) };
        }
        self.free_renditions(entry);
        let bytes = entry.bytes.swap(0, Relaxed);
        self.header().payload_bytes.fetch_sub(bytes, Relaxed);
    }
}
