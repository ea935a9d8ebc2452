//! The record of a rendition: the messages of all rows of an entry, ready for a client with certain formats and
//! settings. It stands at the start of an allocation of the arena; the blocks of messages follow in others.
//! `renditions` says who writes it when. No lock is taken here.

use crate::atomics::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::cache::memory::{Arena, ArenaPtr};
use crate::hash::Hash128;

/// How far a rendition is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Progress {
    /// A process adds blocks.
    Making = 1,
    /// It is complete, and constant from now on.
    Ready = 2,
    /// Whoever made it has given up. Another one may begin anew.
    GivenUp = 3,
    /// It is too large, or there was no memory for it. It has no blocks, and nobody tries again while it is there.
    Refused = 4,
}

/// The head of a rendition.
#[repr(C)]
pub(crate) struct RenditionHead {
    /// The next rendition of the entry, or null. Changed by whoever has taken the list, or puts it in front of the
    /// list.
    next: AtomicU64,
    /// By the process that makes it.
    key_hi: AtomicU64,
    key_lo: AtomicU64,
    first: AtomicU64,
    last: AtomicU64,
    /// Bytes that it takes from the arena, its head included.
    bytes: AtomicU64,
    progress: AtomicU32,
}

/// Bytes of a head.
pub(crate) const HEAD: usize = size_of::<RenditionHead>();

impl RenditionHead {
    /// Makes it that of an empty rendition that is being made. By the process that has allocated it, before anybody
    /// else knows it.
    pub(crate) fn begin(&self, key: Hash128) {
        self.next.store(0, Relaxed);
        self.bytes.store(HEAD as u64, Relaxed);
        self.begin_anew(key);
        self.set(Progress::Making);
    }

    /// By the process that makes it: it has no blocks any more.
    pub(crate) fn begin_anew(&self, key: Hash128) {
        self.key_hi.store(key.hi, Relaxed);
        self.key_lo.store(key.lo, Relaxed);
        self.first.store(0, Relaxed);
        self.last.store(0, Relaxed);
    }

    /// Takes over what another process has given up. True if this process makes it now.
    pub(crate) fn take_over(&self) -> bool {
        let (from, to) = (Progress::GivenUp as u32, Progress::Making as u32);
        self.progress.compare_exchange(from, to, AcqRel, Relaxed).is_ok()
    }

    /// By the process that makes it. Whoever finds it ready may read it.
    pub(crate) fn set(&self, progress: Progress) {
        self.progress.store(progress as u32, Release);
    }

    pub(crate) fn is(&self, progress: Progress) -> bool {
        self.progress.load(Acquire) == progress as u32
    }

    pub(crate) fn key(&self) -> Hash128 {
        Hash128 { hi: self.key_hi.load(Relaxed), lo: self.key_lo.load(Relaxed) }
    }

    pub(crate) fn next(&self) -> ArenaPtr {
        ArenaPtr(self.next.load(Acquire))
    }

    pub(crate) fn set_next(&self, next: ArenaPtr) {
        self.next.store(next.0, Release);
    }

    pub(crate) fn first(&self) -> ArenaPtr {
        ArenaPtr(self.first.load(Relaxed))
    }

    /// The last block, behind which the process that makes it puts the next one.
    pub(crate) fn last(&self) -> ArenaPtr {
        ArenaPtr(self.last.load(Relaxed))
    }

    /// By the process that makes it.
    pub(crate) fn append(&self, block: ArenaPtr, bytes: usize) {
        if self.first().is_null() {
            self.first.store(block.0, Relaxed);
        }
        self.last.store(block.0, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// By the process that makes it, when it has freed the blocks. Returns what they took.
    pub(crate) fn forget_blocks(&self) -> u64 {
        self.bytes.swap(HEAD as u64, Relaxed) - HEAD as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}

/// Walks a list of renditions.
pub(crate) struct Heads<'a> {
    arena: &'a dyn Arena,
    next: ArenaPtr,
}

impl<'a> Heads<'a> {
    /// From this head on. Only for lists of entries that stay pinned for `'a`, or that only the caller has.
    pub(crate) fn from(arena: &'a dyn Arena, first: ArenaPtr) -> Self {
        Self { arena, next: first }
    }
}

impl<'a> Iterator for Heads<'a> {
    type Item = (ArenaPtr, &'a RenditionHead);

    fn next(&mut self) -> Option<Self::Item> {
        let place = self.next;
        if place.is_null() {
            return None;
        }
        // SAFETY: a list holds heads, and its maker says that they stay.
        let head = unsafe { head_at(self.arena, place) };
        self.next = head.next();
        Some((place, head))
    }
}

/// # Safety
/// The place was allocated for a head, which was begun, and stays for `'a`.
pub(crate) unsafe fn head_at(arena: &dyn Arena, place: ArenaPtr) -> &RenditionHead {
    // SAFETY: the caller guarantees a head there; arenas align to 8 bytes, as it needs; all its fields are atomics.
    unsafe { &*arena.address(place).cast::<RenditionHead>() }
}
