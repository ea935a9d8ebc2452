//! A block of memory, locks and an arena for tests of the store. They check the promises made to them: no lock is taken
//! under another, the arena is not called under a lock, nothing is freed twice. When a block is dropped, everything in
//! it must agree (`Store::check`).

use arrow_cache_core::cache::check::{Processes, Report};
use arrow_cache_core::cache::key::CacheKey;
use arrow_cache_core::cache::layout::{Layout, PARTITIONS, Sizes};
use arrow_cache_core::cache::memory::{Arena, ArenaPtr, FileLimits, Locks};
use arrow_cache_core::cache::{Dependency, Fill, NewEntry, NewKind, Store, StoreError};
use arrow_cache_core::hash::Hash128;
use std::alloc;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, RwLock};

/// Seats of a block. Those of higher numbers have none.
pub const SEATS: u32 = 16;

thread_local! {
    static UNDER_LOCK: Cell<bool> = const { Cell::new(false) };
}

fn under_lock<R>(f: impl FnOnce() -> R) -> R {
    UNDER_LOCK.with(|flag| {
        assert!(!flag.replace(true), "a lock is taken under another");
        let result = f();
        flag.set(false);
        result
    })
}

fn no_lock() {
    UNDER_LOCK.with(|flag| assert!(!flag.get(), "the arena is called under a lock"));
}

struct State {
    /// Start and length of each free and each allocated range, as offsets from the base.
    free: BTreeMap<u64, u64>,
    live: BTreeMap<u64, u64>,
}

/// Files of chunks, by their numbers.
#[derive(Default)]
pub struct Files {
    pub written: BTreeMap<u64, Vec<Vec<u8>>>,
    /// Without, there are none.
    pub limits: Option<FileLimits>,
    /// Nothing can be written: what was begun is removed.
    pub is_full: bool,
}

/// The block, its layout, and what processes share.
pub struct Block {
    base: *mut u8,
    memory: alloc::Layout,
    pub layout: Layout,
    partitions: Vec<RwLock<()>>,
    lists: Mutex<()>,
    state: Mutex<State>,
    files: Mutex<Files>,
    is_damaged: AtomicBool,
}

// SAFETY: the store accesses the block through atomics, or as the fill and pin rules allow: that is what the tests
// test.
unsafe impl Sync for Block {}

impl Block {
    /// A block for `max_entries` entries whose arena hands out no more than `capacity` bytes.
    pub fn new(max_entries: u32, capacity: usize) -> Self {
        let needed = |memory| Layout::new(&Sizes { memory, max_entries, seats: SEATS });
        let layout = needed(4 << 20).expect("4 MiB are enough for a test");
        let memory = alloc::Layout::from_size_align(layout.total, 4096).unwrap();
        // SAFETY: the size is not zero.
        let base = unsafe { alloc::alloc_zeroed(memory) };
        assert!(!base.is_null());
        // SAFETY: the block was just made for this layout.
        unsafe { Store::<&Block, &Block>::initialize(base, &layout) };
        // Off by eight, so that the store itself has to align chunks to 64 bytes.
        let start = layout.arena_offset as u64 + 8;
        let capacity = capacity.min(layout.arena_len - 8) as u64 / 8 * 8;
        Self {
            base,
            memory,
            layout,
            partitions: (0..PARTITIONS).map(|_| RwLock::new(())).collect(),
            lists: Mutex::new(()),
            state: Mutex::new(State { free: BTreeMap::from([(start, capacity)]), live: BTreeMap::new() }),
            files: Mutex::default(),
            is_damaged: AtomicBool::new(false),
        }
    }

    /// The files.
    pub fn files(&self) -> std::sync::MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The block as one more process sees it.
    pub fn attach(&self, stripe: usize) -> TestStore<'_> {
        // SAFETY: the block was initialized for this layout; locks and arena are the block's own.
        unsafe { Store::attach(self.base, &self.layout, self, self, stripe) }
    }

    /// The block as one more process sees it that has the seat of this number, which nobody else has.
    pub fn seat(&self, number: usize) -> TestStore<'_> {
        let store = self.attach(number).seated(number as u32);
        store.take_seat();
        store
    }

    /// Checks the whole block beside others who work, and expects nothing.
    pub fn check_beside_others(&self) -> Report {
        let report = self.attach(0).check(&EverybodyRuns { are_others: true }).expect("memory");
        assert!(report.findings.is_empty() && report.more == 0, "{:?}", report.findings);
        report
    }

    /// Checks the whole block while nobody works, and expects nothing. Others may have pins.
    pub fn check(&self) {
        assert!(!self.check_beside_others().is_undecided);
    }

    /// The same when nobody has a pin but the process of this seat, which has as many as it knows of.
    pub fn check_alone(&self, number: usize) {
        let store = self.attach(number).seated(number as u32);
        let report = store.check(&EverybodyRuns { are_others: false }).expect("memory");
        assert!(report.findings.is_empty() && report.more == 0 && !report.is_undecided, "{:?}", report.findings);
    }

    /// The test is going to damage it.
    pub fn note_damage(&self) {
        self.is_damaged.store(true, Relaxed);
    }

    /// Where the block is.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Allocations that were not freed.
    pub fn live(&self) -> usize {
        self.state.lock().unwrap().live.len()
    }
}

/// All processes run; whether there are others than the one that asks, a test says.
pub struct EverybodyRuns {
    pub are_others: bool,
}

impl Processes for EverybodyRuns {
    fn has_seat(&self, _: u32) -> bool {
        true
    }

    fn has_claims(&self, _: u32) -> bool {
        true
    }

    fn are_others(&self) -> bool {
        self.are_others
    }

    fn pause(&self) {
        no_lock();
    }

    fn rest(&self, _: u32) {
        no_lock();
        std::thread::yield_now();
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.is_damaged.load(Relaxed) {
            self.check();
        }
        // SAFETY: allocated in `new` with this layout; nobody borrows the block any more.
        unsafe { alloc::dealloc(self.base, self.memory) };
    }
}

pub type TestStore<'a> = Store<'a, &'a Block, &'a Block>;

impl Locks for &Block {
    fn shared<R>(&self, partition: usize, f: impl FnOnce() -> R) -> R {
        let lock = self.partitions[partition].read();
        let _held = lock.unwrap_or_else(PoisonError::into_inner);
        under_lock(f)
    }

    fn exclusive<R>(&self, partition: usize, f: impl FnOnce() -> R) -> R {
        let lock = self.partitions[partition].write();
        let _held = lock.unwrap_or_else(PoisonError::into_inner);
        under_lock(f)
    }

    fn store<R>(&self, f: impl FnOnce() -> R) -> R {
        let lock = self.lists.lock();
        let _held = lock.unwrap_or_else(PoisonError::into_inner);
        under_lock(f)
    }
}

impl Arena for &Block {
    fn allocate(&self, bytes: usize) -> Option<ArenaPtr> {
        no_lock();
        let bytes = (bytes as u64).next_multiple_of(8);
        let mut state = self.state.lock().unwrap();
        let (&start, &len) = state.free.iter().find(|(_, len)| **len >= bytes)?;
        state.free.remove(&start);
        if len > bytes {
            state.free.insert(start + bytes, len - bytes);
        }
        state.live.insert(start, bytes);
        Some(ArenaPtr(start))
    }

    unsafe fn free(&self, ptr: ArenaPtr) {
        no_lock();
        let mut state = self.state.lock().unwrap();
        let mut start = ptr.0;
        let mut len = state.live.remove(&start).expect("freed what was not allocated");
        // SAFETY: the piece was allocated and is no longer used. Garbage makes a use after free show.
        unsafe { self.address(ptr).write_bytes(0xDD, len as usize) };
        if let Some(next) = state.free.remove(&(start + len)) {
            len += next;
        }
        let before = state.free.range(..start).next_back();
        if let Some((&before, &before_len)) = before.filter(|(before, len)| *before + *len == start) {
            start = before;
            len += before_len;
        }
        state.free.insert(start, len);
    }

    fn address(&self, ptr: ArenaPtr) -> *mut u8 {
        self.base.wrapping_add(ptr.0 as usize)
    }

    fn file_limits(&self) -> FileLimits {
        self.files().limits.unwrap_or(FileLimits::NO_FILES)
    }

    fn write_file(&self, number: u64, count: usize, chunks: &mut dyn Iterator<Item = &[u8]>) -> bool {
        no_lock();
        let chunks: Vec<_> = chunks.map(<[u8]>::to_vec).collect();
        assert_eq!(chunks.len(), count);
        let mut files = self.files();
        !files.is_full && files.written.insert(number, chunks).is_none()
    }

    fn remove_file(&self, number: u64) {
        no_lock();
        assert!(self.files().written.remove(&number).is_some(), "removed what was not written");
    }
}

/// A key that differs from others in every half, and lands in few buckets, so that chains form.
pub fn key(n: u64) -> CacheKey {
    CacheKey(Hash128 { hi: (n % 5) | (n << 32), lo: n.wrapping_mul(0x9E37_79B9) })
}

/// A description with a text, and nothing special.
pub fn described<'a>(text: &'a [u8], dependencies: &'a [Dependency]) -> NewEntry<'a> {
    NewEntry {
        kind: NewKind::Answer,
        database: 1,
        role: 10,
        text,
        dependencies,
        descriptor: b"columns",
        needs_plan: false,
        plan_cost: 0.0,
        rows: 3,
        columns: 2,
        execution_micros: 1500,
        created_at: 0,
        expires_at: i64::MAX,
        known_good: 0,
        catalogs: 0,
        keeps_outdated: false,
    }
}

/// Fills chunks with their bytes, and gives the entry up when there is no room.
pub fn fill(store: &TestStore<'_>, chunks: &[Vec<u8>], now: i64) -> Result<Fill, StoreError> {
    let mut fill = store.reserve(now)?;
    for chunk in chunks {
        match store.append(&mut fill, chunk.len(), now) {
            Ok(data) => {
                assert_eq!(data.as_ptr().addr() % 64, 0);
                data.copy_from_slice(chunk);
            }
            Err(error) => {
                store.abandon(fill);
                return Err(error);
            }
        }
    }
    Ok(fill)
}
