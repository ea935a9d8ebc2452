//! The store as one process sees it: the shared block, what the host lends it, and references to the parts of the
//! block. What can be done with entries is in the files that add methods to [`Store`]: `published` (look up, read,
//! retire), `fill` (store an answer), `limbo` (free), `eviction` (make room).
//!
//! An answer goes `reserve` → `append`… → `publish` (or `abandon`), is found by `lookup`, is read through `view` while
//! it is pinned, and leaves by `retire`. Its memory is freed by the first `reclaim` after the last pin is gone. `index`
//! says which partition lock each step takes, `limbo` when the store lock is taken. No step holds two locks, and no
//! lock is held during a call of the arena, a call of a caller's closure, or an eviction.
//!
//! Handles (`Pin`, `Fill`) have no `Drop`, because an error of the server runs none. The caller registers the entry
//! with its own clean-up, which calls [`Store::unpin`] or [`Store::abandon_unlocked`]: these use atomics only.

use crate::atomics::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use crate::cache::awaited::{self, Awaited};
use crate::cache::claim_place::ClaimPlace;
use crate::cache::claims::{CLAIMS, Claims};
use crate::cache::counters::{Counters, STRIPES, Stripe};
use crate::cache::entry::Entry;
use crate::cache::header::Header;
use crate::cache::layout::Layout;
use crate::cache::memory::{Arena, Locks};
use crate::cache::seat::Seat;
use crate::cache::speed_word::SpeedWord;
use crate::cache::statement_record::StatementRecord;
use crate::cache::steps::Step;
use crate::replay::state::ReplayState;
use crate::versions::definers::{self, Definers, PreparedDefinitions};
use crate::versions::places::LINES;
use crate::versions::slot::Slot;
use crate::versions::slots::Versions;
use crate::versions::tracked::{Line, Registry};
use crate::versions::value_slot::ValueSlot;
use std::ptr::NonNull;

/// The cache as one process sees it.
#[derive(Clone, Copy)]
pub struct Store<'a, L: Locks, A: Arena> {
    base: NonNull<u8>,
    pub(crate) layout: &'a Layout,
    pub(crate) locks: L,
    pub(crate) arena: A,
    /// The stripe that this process counts in.
    stripe: usize,
    /// The seat of this process, if it has one.
    seat: Option<u32>,
}

impl<'a, L: Locks, A: Arena> Store<'a, L, A> {
    /// Makes the bookkeeping of an empty cache. The process that created the block calls it once, before anybody
    /// attaches.
    ///
    /// # Safety
    /// `base` points to `layout.total` writable bytes, aligned to 64, that nobody else uses yet.
    pub unsafe fn initialize(base: *mut u8, layout: &Layout) {
        // SAFETY: the caller lends us the whole block, and the bookkeeping is its first part. All its structures are
        // valid, and empty, when zeroed.
        unsafe { base.write_bytes(0, layout.bookkeeping_bytes()) };
    }

    /// The store in a block that [`Store::initialize`] prepared. `stripe` is this process's stripe of the counters; any
    /// number will do.
    ///
    /// # Safety
    /// `base` points to the initialized block of this layout, not null, mapped at the same address in every process and
    /// for `'a`. `locks` are the same locks in every process, and `arena` allocates from the arena part of this block
    /// only, or from memory shared the same way.
    pub unsafe fn attach(base: *mut u8, layout: &'a Layout, locks: L, arena: A, stripe: usize) -> Self {
        Self {
            // SAFETY: the caller guarantees that it is not null.
            base: unsafe { NonNull::new_unchecked(base) },
            layout,
            locks,
            arena,
            stripe,
            seat: None,
        }
    }

    /// The same store for a process that has the seat of this number, if there are so many. No two processes that run
    /// may have the same, and each calls [`Store::take_seat`] before its first lookup.
    #[must_use]
    pub fn seated(self, number: u32) -> Self {
        Self { seat: (number < self.layout.seat_count).then_some(number), ..self }
    }

    /// The versions of what results rest on.
    pub fn versions(&self) -> Versions<'_> {
        // SAFETY: the layout has room for these numbers of slots at these offsets, aligned to lines; zeroed memory is
        // valid; all fields are atomics.
        let (slots, values) = unsafe {
            let slots = self.parts::<Slot>(self.layout.slots, self.layout.slot_count);
            (slots, self.parts::<ValueSlot>(self.layout.values, self.layout.value_count))
        };
        Versions::new(slots, values, &self.header().constant.base_floor)
    }

    /// Which relations are tracked.
    pub fn registry(&self) -> Registry<'_> {
        // SAFETY: the layout has room for them at this offset, aligned to a line; zeroed memory is valid; all fields
        // are atomics.
        Registry::new(unsafe { self.part::<[Line; LINES]>(self.layout.tracked) })
    }

    /// Whose definitions are being changed at this moment.
    pub fn definers(&self) -> Definers<'_> {
        // SAFETY: the layout has room for them at this offset, aligned to a line; zeroed memory is valid; all of them
        // are atomics.
        Definers::new(unsafe { self.part::<[AtomicU32; definers::COUNTS]>(self.layout.definers) }, self.prepared())
    }

    /// Who computes which answer at this moment.
    pub fn claims(&self) -> Claims<'_> {
        // SAFETY: the layout has room for them at this offset, aligned to a line; zeroed memory is valid; all fields
        // are atomics.
        Claims::new(unsafe { self.part::<[ClaimPlace; CLAIMS]>(self.layout.claims) })
    }

    /// Who waits for which slots to move.
    pub fn awaited(&self) -> Awaited<'_> {
        // SAFETY: the layout has room for the head at this offset, aligned to a line, and behind it for a waiter for
        // each seat; zeroed memory is valid; all fields are atomics.
        unsafe {
            let waiters = self.layout.awaited + size_of::<awaited::Head>();
            let waiters = self.parts::<awaited::Waiter>(waiters, self.layout.seat_count as usize);
            Awaited::new(self.part::<awaited::Head>(self.layout.awaited), waiters)
        }
    }

    /// Whether the replay of WAL tells of every change.
    pub fn replay(&self) -> ReplayState<'_> {
        let constant = &self.header().constant;
        ReplayState::new(&constant.replay, &constant.awaited)
    }

    /// The event counters.
    pub fn counters(&self) -> Counters<'a> {
        // SAFETY: the layout has room for them at this offset, aligned to a line; zeroed memory is valid; all fields
        // are atomics.
        Counters::new(unsafe { self.part::<[Stripe; STRIPES]>(self.layout.stripes) })
    }

    /// Sets the secret for hashes. The process that created the block calls it, before any key is made.
    pub fn set_seed(&self, seed: u64) {
        self.header().constant.seed.store(seed, Relaxed);
    }

    /// The secret for hashes.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.header().constant.seed.load(Relaxed)
    }

    /// Notes that a transaction that changed definitions is about to be prepared: the process that commits it will not
    /// know what it changed.
    pub fn note_prepared_definitions(&self) {
        self.prepared().note_one();
    }

    /// Notes that no transaction from before the start is left, prepared ones included.
    pub fn note_past_is_over(&self) {
        self.prepared().note_past_is_over();
    }

    /// Notes that transactions that nobody here has seen at work may be prepared: those that a standby has replayed.
    pub fn forget_past(&self) {
        self.prepared().forget_past();
    }

    /// Returns true if it is still unknown whether transactions from before the start are prepared.
    #[must_use]
    pub fn past_is_unknown(&self) -> bool {
        self.prepared().past_is_unknown()
    }

    /// Returns true if there may be, or have been, a prepared transaction that changed definitions.
    #[must_use]
    pub fn may_have_prepared_definitions(&self) -> bool {
        self.prepared().may_be()
    }

    fn prepared(&self) -> PreparedDefinitions<'_> {
        PreparedDefinitions::new(&self.header().constant.prepared_definitions)
    }

    /// This process's stripe of the counters.
    #[must_use]
    pub fn stripe(&self) -> usize {
        self.stripe
    }

    /// Zeroes the counters and notes when, in microseconds.
    pub fn reset_stats(&self, now: i64) {
        self.counters().reset();
        self.forget_statements();
        self.header().stats_reset.store(now, Relaxed);
    }

    /// When the counters were last zeroed, in microseconds; 0 = never since the block was made.
    #[must_use]
    pub fn stats_reset(&self) -> i64 {
        self.header().stats_reset.load(Relaxed)
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

    /// Bytes of the published fragments.
    #[must_use]
    pub fn fragment_bytes(&self) -> u64 {
        self.header().fragment_bytes.load(Relaxed)
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the layout has room for it at this offset, aligned to a line; zeroed memory is valid; all fields are
        // atomics.
        unsafe { self.part::<Header>(self.layout.header) }
    }

    /// The record of an entry.
    pub(crate) fn entry(&self, index: u32) -> &Entry {
        debug_assert!(index < self.layout.max_entries);
        // SAFETY: indexes come from the free list, the fresh counter or a link, all of which stay below `max_entries`;
        // the layout made room for that many entries at this offset, aligned to a cache line; zeroed memory is an
        // entry; all fields are atomics.
        unsafe { &*self.base.as_ptr().add(self.layout.entries).cast::<Entry>().add(index as usize) }
    }

    /// Where a chain of the index begins, by its number modulo the number of buckets, which is a power of two.
    pub(crate) fn bucket(&self, number: usize) -> &AtomicU32 {
        let number = number & (self.layout.bucket_count - 1);
        // SAFETY: the number was cut to stay below the number of buckets, for which the layout made room at this
        // offset; the block is mapped and was zeroed, as `attach` was promised, and a bucket is an atomic.
        unsafe { &*self.base.as_ptr().add(self.layout.buckets).cast::<AtomicU32>().add(number) }
    }

    /// Begins a step, which ends when it is dropped.
    pub(crate) fn step(&self) -> Step<'_> {
        self.header().steps.begin()
    }

    /// Where the arena begins in this process, and its length.
    pub(crate) fn arena_range(&self) -> (usize, usize) {
        (self.base.addr().get() + self.layout.arena_offset, self.layout.arena_len)
    }

    /// The words that say which records are published: see `occupancy`.
    pub(crate) fn occupied(&self) -> &[AtomicU64] {
        // SAFETY: the layout has room for this number of words at this offset, aligned to a line; the block is mapped
        // and was zeroed, as `attach` was promised, and an atomic may be shared.
        unsafe { self.parts::<AtomicU64>(self.layout.occupied, self.layout.occupied_words()) }
    }

    /// The seat of this process.
    pub(crate) fn seat(&self) -> Option<&Seat> {
        self.seats().get(self.seat? as usize)
    }

    pub(crate) fn seat_number(&self) -> Option<u32> {
        self.seat
    }

    /// The seats that may be in use.
    pub(crate) fn taken_seats(&self) -> &[Seat] {
        let taken = self.header().seats_taken.load(Acquire) as usize;
        self.seats().get(..taken).unwrap_or(self.seats())
    }

    fn seats(&self) -> &[Seat] {
        // SAFETY: the layout has room for this number of seats at this offset, aligned to their lines; zeroed memory is
        // valid; all fields are atomics.
        unsafe { self.parts::<Seat>(self.layout.seats, self.layout.seat_count as usize) }
    }

    /// The counts of statements: see `statements`.
    pub(crate) fn statement_records(&self) -> &[StatementRecord] {
        // SAFETY: the layout has room for this number of records at this offset, aligned to a line; zeroed memory is
        // valid; all fields are atomics.
        unsafe { self.parts::<StatementRecord>(self.layout.statements, self.layout.statement_count) }
    }

    /// The words that tell how quick runs are: see `speeds`.
    pub(crate) fn speed_words(&self) -> &[SpeedWord] {
        // SAFETY: the layout has room for this number of words at this offset, aligned to a line; zeroed memory is
        // valid; they are atomics.
        unsafe { self.parts(self.layout.speeds, self.layout.speed_count) }
    }

    /// # Safety
    /// The layout has room for a `T` at `offset`, aligned for it; zeroed memory is a `T`, and a `T` may be shared.
    unsafe fn part<T: Sync>(&self, offset: usize) -> &'a T {
        // SAFETY: the caller vouches for the place; `attach` was promised that the block is mapped and was zeroed.
        unsafe { &*self.base.as_ptr().add(offset).cast::<T>() }
    }

    /// # Safety
    /// The layout has room for `count` of `T` at `offset`, aligned for them; zeroed memory is a `T`, and a `T` may be
    /// shared.
    pub(crate) unsafe fn parts<T: Sync>(&self, offset: usize, count: usize) -> &[T] {
        // SAFETY: the caller vouches for the place; `attach` was promised that the block is mapped and was zeroed.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset).cast::<T>(), count) }
    }
}
