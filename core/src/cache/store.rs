//! The store: what the server half talks to. Entries are found and pinned, filled and published, retired and reclaimed.
//!
//! A result goes `reserve` → `append`… → `publish` (or `abandon`), is found by `lookup`, read through `view` while pinned, and leaves by
//! `retire`; its memory goes when the last pin has, with the next `reclaim`. Which lock each step takes is said in `index` (partition locks)
//! and `lists` (store lock); never two at once, and none while the arena, a caller's closure or an eviction runs.
//!
//! Handles ([`Pin`], [`Fill`]) have no `Drop`: an error of the server runs none. The caller registers the entry with its own clean-up, which
//! calls [`Store::unpin`] or [`Store::abandon_unlocked`]: atomics only.

pub use crate::cache::entry::{Dependency, EntryId};
pub use crate::cache::payload::{CHUNK_OVERHEAD, Chunks};
pub use crate::cache::view::EntryView;

use crate::cache::counters::{Counters, STRIPES, Stripe};
use crate::cache::entry::Life;
use crate::cache::key::CacheKey;
use crate::cache::layout::{Layout, RUN_WORDS};
use crate::cache::memory::{Arena, Locks};
use crate::cache::versions::{Slot, SnapshotView, Versions};
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicI64, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// What the store keeps about itself. Zeroed memory is a valid header of an empty store.
#[repr(C)]
pub(crate) struct Header {
    constant: Constant,
    pub(crate) payload_bytes: AtomicU64,
    published: AtomicU32,
    /// Records of the entry table ever used; changed under the store lock.
    pub(crate) fresh: AtomicU32,
    /// First link of the free list; changed under the store lock.
    pub(crate) free_head: AtomicU32,
    /// First and last link of the limbo list, and its length; changed under the store lock.
    pub(crate) limbo_head: AtomicU32,
    pub(crate) limbo_tail: AtomicU32,
    pub(crate) limbo_len: AtomicU32,
    /// Where the next eviction looks first: a hint.
    pub(crate) hand: AtomicU32,
    /// When the counters were last zeroed, in microseconds; 0 = never.
    stats_reset: AtomicI64,
}

/// Read by every look-up, written a few times after the start: keeps a cache line of its own.
#[repr(C, align(64))]
struct Constant {
    base_floor: AtomicU64,
    /// Secret for the hashes of keys, constant once the block is set up.
    seed: AtomicU64,
    /// Whether transactions that changed definitions are or were prepared for a two-phase commit: one of the three constants below.
    prepared_definitions: AtomicU32,
}

/// How often `reserve` makes room for others who come first.
const MOST_EVICTIONS: usize = 64;

/// Transactions from before the start may be prepared, and nobody knows what they changed.
const PAST_UNKNOWN: u32 = 0;
/// Nothing of the kind was prepared.
const NONE_PREPARED: u32 = 1;
/// A transaction that changed definitions was prepared since the start. Never goes back.
const SOME_PREPARED: u32 = 2;

/// Hold on a published entry: it can be read until [`Store::unpin`] takes this.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Pin {
    entry: EntryId,
}

impl Pin {
    pub(crate) fn of(index: u32) -> Self {
        Self { entry: EntryId(index) }
    }

    /// The pinned entry.
    #[must_use]
    pub fn entry(&self) -> EntryId {
        self.entry
    }

    /// Makes a pin again from the number a clean-up callback kept.
    ///
    /// # Safety
    /// A pin on this entry is held, and this one stands for it: only one of the two is ever given to [`Store::unpin`].
    pub unsafe fn from_entry(entry: EntryId) -> Self {
        Self { entry }
    }
}

/// An entry being filled, pinned by its filler.
#[derive(Debug)]
#[must_use]
pub struct Fill {
    entry: EntryId,
    bytes: usize,
}

impl Fill {
    /// The entry being filled; for a clean-up callback, which may unpin it like [`Store::abandon_unlocked`] does.
    #[must_use]
    pub fn entry(&self) -> EntryId {
        self.entry
    }

    /// Bytes of data appended so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// What is said of a result when it is published.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
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
    /// What the plan that computed it is like, opaque to the store; [`CacheKey::NONE`] if nobody may rely on that.
    pub plan: CacheKey,
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
}

/// Why something was not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// Neither free memory or records, nor anything that could be evicted for them.
    NoRoom,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NoRoom => f.write_str("no room could be made in the cache"),
        }
    }
}

impl std::error::Error for StoreError {}

/// Whether a result may be served under a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Validity {
    /// Every version is the one of the result, and the snapshot sees all that was published.
    Valid,
    /// Something the result rests on has changed: it will never be valid again.
    Changed,
    /// Nothing has changed, but the snapshot may not see all of it: others may still be served.
    NotVisible,
}

/// The cache as one process sees it.
pub struct Store<'a, L: Locks, A: Arena> {
    pub(crate) base: NonNull<u8>,
    pub(crate) layout: &'a Layout,
    pub(crate) locks: L,
    pub(crate) arena: A,
    /// The stripe that this process counts in.
    pub(crate) stripe: usize,
}

impl<'a, L: Locks, A: Arena> Store<'a, L, A> {
    /// Makes the bookkeeping of an empty cache. To be called once, by the process that created the block, before anybody attaches.
    ///
    /// # Safety
    /// `base` points to `layout.total` writable bytes, aligned to 64, that nobody else uses yet.
    pub unsafe fn initialize(base: *mut u8, layout: &Layout) {
        // SAFETY: the caller gives us the block. All bookkeeping structures are valid, and empty, when zeroed.
        unsafe { base.write_bytes(0, layout.bookkeeping_bytes()) };
    }

    /// The store in a block that [`Store::initialize`] prepared. `stripe` is this process's stripe of the counters (its number will do).
    ///
    /// # Safety
    /// `base` points to the initialized block of this layout, not null, mapped at the same address in every process and for `'a`. `locks` are
    /// the same locks in every process, and `arena` allocates from the arena part of this block only, or from memory shared the same way.
    pub unsafe fn attach(base: *mut u8, layout: &'a Layout, locks: L, arena: A, stripe: usize) -> Self {
        Self {
            // SAFETY: the caller says it is not null.
            base: unsafe { NonNull::new_unchecked(base) },
            layout,
            locks,
            arena,
            stripe,
        }
    }

    /// The versions of what results rest on.
    pub fn versions(&self) -> Versions<'_> {
        // SAFETY: the layout has room for so many slots at this offset, aligned to their lines; zeroed memory is valid; all fields are atomics.
        let slots = unsafe {
            let first = self.base.as_ptr().add(self.layout.slots).cast::<Slot>();
            std::slice::from_raw_parts(first, self.layout.slot_count)
        };
        Versions::new(slots, &self.header().constant.base_floor)
    }

    /// The event counters.
    pub fn counters(&self) -> Counters<'_> {
        // SAFETY: as in `versions`.
        Counters::new(unsafe { self.part::<[Stripe; STRIPES]>(self.layout.stripes) })
    }

    /// Sets the secret for hashes; by the process that created the block, before any key is made.
    pub fn set_seed(&self, seed: u64) {
        self.header().constant.seed.store(seed, Relaxed);
    }

    /// The secret for hashes.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.header().constant.seed.load(Relaxed)
    }

    /// Notes that a transaction that changed definitions is about to be prepared: whoever commits it will not know what it changed.
    pub fn note_prepared_definitions(&self) {
        self.header().constant.prepared_definitions.store(SOME_PREPARED, Release);
    }

    /// Notes that no transaction from before the start is left, prepared ones included.
    pub fn note_past_is_over(&self) {
        // Losing the race is fine: somebody else has noted that, or more.
        let _ =
            self.header().constant.prepared_definitions.compare_exchange(PAST_UNKNOWN, NONE_PREPARED, AcqRel, Relaxed);
    }

    /// Is it still unknown whether transactions from before the start are prepared?
    #[must_use]
    pub fn past_is_unknown(&self) -> bool {
        self.header().constant.prepared_definitions.load(Acquire) == PAST_UNKNOWN
    }

    /// May there be, or have been, a prepared transaction that changed definitions?
    #[must_use]
    pub fn may_have_prepared_definitions(&self) -> bool {
        self.header().constant.prepared_definitions.load(Acquire) != NONE_PREPARED
    }

    /// This process's stripe of the counters.
    #[must_use]
    pub fn stripe(&self) -> usize {
        self.stripe
    }

    /// Zeroes the counters and notes when.
    pub fn reset_stats(&self, now: i64) {
        self.counters().reset();
        self.header().stats_reset.store(now, Relaxed);
    }

    /// When the counters were last zeroed, in microseconds; 0 = never since the block was made.
    #[must_use]
    pub fn stats_reset(&self) -> i64 {
        self.header().stats_reset.load(Relaxed)
    }

    /// Finds and pins the entry of a key. It may be expired, no longer valid or another statement's: ask before serving it.
    #[must_use]
    pub fn lookup(&self, key: CacheKey) -> Option<Pin> {
        self.find_and_pin(key).map(Pin::of)
    }

    /// Gives a pin back. Takes no lock, so it can be called from the clean-up of an error.
    pub fn unpin(&self, pin: Pin) {
        self.entry(pin.entry.0).unpin();
    }

    /// What can be read of a pinned entry.
    pub fn view<'p>(&'p self, pin: &'p Pin) -> EntryView<'p> {
        let index = pin.entry.0;
        EntryView::new(self.entry(index), index, &self.arena)
    }

    /// Notes that the entry was served.
    pub fn touch(&self, pin: &Pin, now: i64) {
        self.entry(pin.entry.0).touch(now);
    }

    /// Whether nothing the entry rests on has changed since.
    #[must_use]
    pub fn is_current(&self, pin: &Pin) -> bool {
        let versions = self.versions();
        self.view(pin).dependencies().iter().all(|on| versions.slot(on.slot).version() == on.version)
    }

    /// Whether the entry may be served under a snapshot, which was taken before the call.
    #[must_use]
    pub fn valid_for(&self, pin: &Pin, snapshot: &SnapshotView<'_>) -> Validity {
        let versions = self.versions();
        let mut whole = versions.above_base_floor(snapshot);
        for on in self.view(pin).dependencies() {
            let state = versions.slot(on.slot).read();
            if state.version != on.version {
                return Validity::Changed;
            }
            whole &= state.seen_whole(snapshot);
        }
        if whole { Validity::Valid } else { Validity::NotVisible }
    }

    /// Takes the entry out of the index; true if this call did. Its memory goes with the first [`Store::reclaim`] after the last pin.
    pub fn retire(&self, pin: &Pin) -> bool {
        let index = pin.entry.0;
        let retired = self.unlink(index);
        if retired {
            self.header().published.fetch_sub(1, Relaxed);
            self.enter_limbo(index);
        }
        retired
    }

    /// Takes a free entry to fill, evicting one when there is none.
    ///
    /// # Errors
    /// [`StoreError::NoRoom`] when every entry is being read or filled.
    pub fn reserve(&self, now: i64) -> Result<Fill, StoreError> {
        self.reclaim_some();
        // Bounded, should others take the records as fast as they are freed.
        for _ in 0..MOST_EVICTIONS {
            if let Some(index) = self.take_free() {
                return Ok(Fill { entry: EntryId(index), bytes: 0 });
            }
            if !self.evict(now) && self.reclaim_more() == 0 {
                break;
            }
        }
        Err(StoreError::NoRoom)
    }

    /// Adds a chunk of `len` bytes at the end, evicting others when the arena is full. The data begins on a multiple of 64 and is of any
    /// value: write all of it. The arena gives `len` + [`CHUNK_OVERHEAD`] bytes.
    ///
    /// # Errors
    /// [`StoreError::NoRoom`] when no room could be made; the fill is as before and still the caller's.
    pub fn append<'f>(&self, fill: &'f mut Fill, len: usize, now: i64) -> Result<&'f mut [u8], StoreError> {
        let data = self.append_chunk(fill.entry.0, len, now)?;
        fill.bytes += len;
        // SAFETY: the chunk holds `len` initialised bytes there. Nobody else reads or writes them before publication, which takes the fill
        // that this borrow holds.
        Ok(unsafe { std::slice::from_raw_parts_mut(data, len) })
    }

    /// Publishes the entry under `key` in one step, in place of an entry with the same key if there is one. The fill's pin becomes the
    /// returned one.
    ///
    /// # Errors
    /// [`StoreError::NoRoom`] when there is no room for the description; the fill has been abandoned.
    pub fn publish(&self, fill: Fill, key: CacheKey, new: NewEntry<'_>, now: i64) -> Result<Pin, StoreError> {
        let index = fill.entry.0;
        if let Err(error) = self.write_head(index, &new, now) {
            self.abandon(fill);
            return Err(error);
        }
        self.entry(index).set_key(key);
        self.leave_limbo(index);
        // Before the entry can be found, for whoever retires it counts it off.
        self.header().published.fetch_add(1, Relaxed);
        if let Some(replaced) = self.link(index, key) {
            self.header().published.fetch_sub(1, Relaxed);
            self.enter_limbo(replaced);
            self.unpin(Pin::of(replaced));
            self.reclaim_some();
        }
        Ok(Pin::of(index))
    }

    /// Gives up a fill and frees what it holds at once.
    pub fn abandon(&self, fill: Fill) {
        let index = fill.entry.0;
        self.leave_limbo(index);
        let entry = self.entry(index);
        entry.unpin();
        self.free_payload(entry);
        self.give_free(index);
    }

    /// Gives up a fill without taking a lock, from the clean-up of an error; the next [`Store::reclaim`] frees it. The fill must not be
    /// used any more.
    pub fn abandon_unlocked(&self, fill: &Fill) {
        self.entry(fill.entry.0).unpin();
    }

    /// Retires every published entry that `matches`, frees what nobody reads, and returns how many were retired. Each entry is pinned while
    /// it is looked at; no lock is held, but `matches` should not raise an error of the server, which would leave the pin behind.
    pub fn retire_matching(&self, mut matches: impl FnMut(&EntryView<'_>) -> bool) -> u64 {
        let mut retired = 0;
        self.visit(|pin| {
            if matches(&self.view(pin)) && self.retire(pin) {
                retired += 1;
            }
        });
        self.reclaim();
        retired
    }

    /// Shows every published entry, on the terms of [`Store::retire_matching`].
    pub fn for_each(&self, mut show: impl FnMut(&EntryView<'_>)) {
        self.visit(|pin| show(&self.view(pin)));
    }

    /// Number of published entries.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.header().published.load(Relaxed)
    }

    /// Bookkeeping and allocated payload, in bytes.
    #[must_use]
    pub fn bytes_used(&self) -> usize {
        let payload = self.header().payload_bytes.load(Relaxed) as usize;
        self.layout.bookkeeping_bytes() + payload
    }

    /// Counts one more execution of a key that had no entry, and returns how often that happened lately. Another key in the same place
    /// starts both again at 1.
    pub fn count_run(&self, key: CacheKey) -> u32 {
        // SAFETY: as in `versions`.
        let words = unsafe { self.part::<[AtomicU32; RUN_WORDS]>(self.layout.runs) };
        let word = &words[key.lo as usize % RUN_WORDS];
        let tag = key.hi as u32 & 0xFFFF_0000;
        let next = |old: u32| {
            let same = old & 0xFFFF_0000 == tag;
            tag | if same { (old & 0xFFFF).saturating_add(1).min(0xFFFF) } else { 1 }
        };
        let mut old = word.load(Relaxed);
        while let Err(current) = word.compare_exchange_weak(old, next(old), Relaxed, Relaxed) {
            old = current;
        }
        next(old) & 0xFFFF
    }

    fn visit(&self, mut f: impl FnMut(&Pin)) {
        let used = self.header().fresh.load(Relaxed);
        let mut index = self.first_published(0, used);
        while index < used {
            let life: Life = self.entry(index).life();
            if self.pin_seen(index, life) {
                let guard = Unpinned { store: self, pin: Pin::of(index) };
                f(&guard.pin);
            }
            index = self.first_published(index + 1, used);
        }
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: as in `versions`.
        unsafe { self.part::<Header>(self.layout.header) }
    }

    /// # Safety
    /// The layout has room for a `T` at `offset`, aligned for it; zeroed memory is a `T`, and a `T` may be shared.
    unsafe fn part<T: Sync>(&self, offset: usize) -> &T {
        // SAFETY: the caller vouches for the place; `attach` was promised that the block is mapped and was zeroed.
        unsafe { &*self.base.as_ptr().add(offset).cast::<T>() }
    }
}

/// Unpins when a visit ends, by a panic of the visitor too.
struct Unpinned<'s, 'a, L: Locks, A: Arena> {
    store: &'s Store<'a, L, A>,
    pin: Pin,
}

impl<L: Locks, A: Arena> Drop for Unpinned<'_, '_, L, A> {
    fn drop(&mut self) {
        self.store.entry(self.pin.entry.0).unpin();
    }
}
