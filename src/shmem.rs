//! The shared block. It is requested before the server starts, laid out by `core::Layout`, and attached once in each
//! backend.
//!
//! The only file that names LWLocks, the DSA area or a raw pointer into the block. The locks are one named tranche: one
//! lock for each partition of the index, then one for the store's free and limbo lists. No two of them are ever held
//! together. While one is held, nothing allocates, raises or calls PostgreSQL: `core` guarantees that for the closures
//! that it passes.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::time::Duration;

use arrow_cache_core::{
    Arena, ArenaPtr, CLAIMS, Claimed, FileLimits, Layout, Locks, PARTITIONS, STRIPES, Sizes, Store, Stripe,
};
use pgrx::pg_sys;

use crate::error::{CacheError, fail_startup};
use crate::pg::backend_local::Local;
use crate::pg::error_passing::edge;
use crate::pg::{backend, compat, waiting};
use crate::{files, settings};

const NAME: &CStr = c"pg_arrow_cache";
const NAME_OF_WAITERS: &CStr = c"pg_arrow_cache waiters";
const WAITERS_SIZE: usize = CLAIMS * size_of::<pg_sys::ConditionVariable>();

/// The cache as this backend sees it.
pub type SharedStore = Store<'static, PartitionLocks, SharedArena>;

/// Where everything lies. It is computed from settings of the postmaster, so it is equal in every process.
static LAYOUT: OnceLock<Layout> = OnceLock::new();

/// Start of the block. Each process has its own copy, inherited from the postmaster through fork. The postmaster
/// overwrites it when it sets up shared memory again after a crash. (These are atomics because their loads are plain; a
/// thread-local variable of a library costs a call.)
static BLOCK: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
/// Start of the array of locks, in the same way.
static LOCKS: AtomicPtr<pg_sys::LWLockPadded> = AtomicPtr::new(std::ptr::null_mut());
/// Start of the array of condition variables, one for each claim, in the same way.
static WAITERS: AtomicPtr<pg_sys::ConditionVariable> = AtomicPtr::new(std::ptr::null_mut());
/// This backend's handle of the payload area.
static AREA: AtomicPtr<pg_sys::dsa_area> = AtomicPtr::new(std::ptr::null_mut());
/// The cache as this backend sees it, once it is attached: its parts are then constant.
static STORE: Local<Cell<Option<SharedStore>>> = Local::new(Cell::new(None));
/// The counters of this backend, once they were asked for.
static COUNTERS: Local<Cell<Option<&'static Stripe>>> = Local::new(Cell::new(None));

/// Computes the layout from the settings; FATAL when `memory` cannot hold the index.
fn layout() -> &'static Layout {
    LAYOUT.get_or_init(|| {
        let sizes = Sizes {
            memory: settings::memory_bytes(),
            max_entries: settings::max_entries(),
            seats: compat::most_backends(),
        };
        Layout::new(&sizes).unwrap_or_else(|error| fail_startup(CacheError::memory_too_small(error.needed())))
    })
}

/// Asks the postmaster for memory and locks. From the shared-memory request hook only.
pub fn request() {
    // SAFETY: called from the request hook, the one place where these are allowed.
    unsafe {
        kept!(pg_sys::RequestAddinShmemSpace(layout().total));
        kept!(pg_sys::RequestAddinShmemSpace(WAITERS_SIZE));
        kept!(pg_sys::RequestNamedLWLockTranche(NAME.as_ptr(), PARTITIONS as i32 + 1));
    }
}

/// Creates the block, or finds it. From the shared-memory startup hook only. It runs again after a crash of a backend,
/// when all shared memory is created anew. Then `begin` is given the empty cache. It returns false if that has to be
/// laid out anew.
pub fn startup(begin: impl FnOnce(&SharedStore) -> bool) {
    let layout = layout();
    let mut found = false;
    // SAFETY: called from the startup hook. The lock makes creating the block exclusive, and the block is as large as
    // was requested. The release at the end is reached unless the server stops.
    unsafe {
        let init_lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
        kept!(pg_sys::LWLockAcquire(init_lock, pg_sys::LWLockMode::LW_EXCLUSIVE));
        let block = kept!(pg_sys::ShmemInitStruct(NAME.as_ptr(), layout.total, &mut found)).cast::<u8>();
        let locks = kept!(pg_sys::GetNamedLWLockTranche(NAME.as_ptr()));
        let mut waiters_found = false;
        let waiters = kept!(pg_sys::ShmemInitStruct(NAME_OF_WAITERS.as_ptr(), WAITERS_SIZE, &mut waiters_found))
            .cast::<pg_sys::ConditionVariable>();
        if !waiters_found {
            (0..CLAIMS).for_each(|n| waiting::initialize(waiters.add(n)));
        }
        WAITERS.store(waiters, Relaxed);
        BLOCK.store(block, Relaxed);
        LOCKS.store(locks, Relaxed);
        AREA.store(std::ptr::null_mut(), Relaxed);
        STORE.set(None);
        COUNTERS.set(None);
        kept!(pg_sys::LWLockRelease(init_lock));
        if !found {
            // Of before a crash.
            files::remove_all();
            let mut area = lay_out(block, locks);
            if !begin(&view(area)) {
                kept!(pg_sys::dsa_detach(area));
                area = lay_out(block, locks);
            }
            // The area must outlive every backend, and the postmaster needs no handle of it.
            kept!(pg_sys::dsa_pin(area));
            kept!(pg_sys::dsa_detach(area));
        }
    }
}

/// Makes an empty cache of the block, and returns a handle of its payload area.
///
/// # Safety
/// Called in the postmaster, as long as no other process uses the block.
unsafe fn lay_out(block: *mut u8, locks: *mut pg_sys::LWLockPadded) -> *mut pg_sys::dsa_area {
    let layout = layout();
    // SAFETY: the caller has the block, which is as large as was requested, and its locks for itself.
    unsafe {
        SharedStore::initialize(block, layout);
        // Without a source of randomness keys are predictable; that does no harm, since the text of an entry is
        // compared too.
        view(std::ptr::null_mut()).set_seed(backend::random().unwrap_or(0));
        let tranche = i32::from((*locks).lock.tranche);
        compat::create_area(block.add(layout.arena_offset).cast(), layout.arena_len, tranche)
    }
}

/// The secret for keys of this server's cache. `None` when the library was not preloaded.
pub fn seed() -> Option<u64> {
    preloaded().then(|| view(AREA.load(Relaxed)).seed())
}

/// Index of AddinShmemInitLock in the main array (lwlocknames.h), the same in 15 to 18.
const ADDIN_SHMEM_INIT_LOCK: usize = 21;

/// Returns true if the library was loaded by `shared_preload_libraries`.
pub fn preloaded() -> bool {
    !BLOCK.load(Relaxed).is_null()
}

/// The cache. `None` when the library was not preloaded or this process has no shared memory.
#[inline]
pub fn store() -> Option<SharedStore> {
    STORE.get().or_else(attached)
}

/// The same before this backend is attached.
#[cold]
#[inline(never)]
fn attached() -> Option<SharedStore> {
    if !preloaded() {
        return None;
    }
    if AREA.load(Relaxed).is_null() {
        attach();
    }
    STORE.set(Some(view(AREA.load(Relaxed))));
    STORE.get()
}

/// The counters of this backend, which need not be attached to count; `None` when the library was not preloaded.
#[inline]
pub fn own_counters() -> Option<&'static Stripe> {
    COUNTERS.get().or_else(found_counters)
}

/// The same when they are asked for the first time.
#[cold]
#[inline(never)]
fn found_counters() -> Option<&'static Stripe> {
    let store = store_without_area()?;
    COUNTERS.set(Some(store.counters().own(store.stripe())));
    COUNTERS.get()
}

/// The cache. Raises `NotPreloaded` when there is none.
pub fn required() -> SharedStore {
    store().unwrap_or_else(|| CacheError::not_preloaded().raise())
}

/// The store over the block, which must be there. Without an area it can only be read.
fn view(area: *mut pg_sys::dsa_area) -> SharedStore {
    let arena = SharedArena { area };
    let locks = PartitionLocks { first: LOCKS.load(Relaxed) };
    let number = compat::backend_number();
    let stripe = number.unwrap_or(0) as usize % STRIPES;
    // SAFETY: the block was initialized with this layout by the postmaster before any backend ran.
    let store = unsafe { Store::attach(BLOCK.load(Relaxed), layout(), locks, arena, stripe) };
    // No other process has this number before this one has left shared memory.
    match number {
        Some(number) => store.seated(number),
        None => store,
    }
}

/// The store, for what does not touch the payload area: this needs no handle of that, so it can be called where nothing
/// may be allocated.
pub fn store_without_area() -> Option<SharedStore> {
    preloaded().then(|| view(AREA.load(Relaxed)))
}

/// Sleeps until a claim is given back, or not at all when it was just looked at first: see `waiting::sleep`.
pub fn sleep_on_claim(claimed: &Claimed, longest: Duration) {
    // SAFETY: there is a variable for each claim.
    unsafe { waiting::sleep(WAITERS.load(Relaxed).add(claimed.place() % CLAIMS), longest) };
}

/// Wakes those who wait for the claim in a place, which was given back.
pub fn wake_waiters(place: usize) {
    // SAFETY: there is a variable for each claim.
    unsafe { waiting::wake(WAITERS.load(Relaxed).add(place % CLAIMS)) };
}

/// Attaches this backend to the payload area, for its whole life.
#[cold]
#[inline(never)]
fn attach() {
    // SAFETY: `startup` created the area in place. The handle is allocated in the context that lives as long as the
    // backend. The mapping is pinned, so no resource owner releases it. The exit callback gives back the reference that
    // attaching took.
    unsafe {
        let place: *mut c_void = BLOCK.load(Relaxed).add(layout().arena_offset).cast();
        let caller = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
        let area = kept!(pg_sys::dsa_attach_in_place(place, std::ptr::null_mut()));
        pg_sys::MemoryContextSwitchTo(caller);
        kept!(pg_sys::dsa_pin_mapping(area));
        kept!(pg_sys::on_shmem_exit(Some(release_area), pg_sys::Datum::from(place)));
        AREA.store(area, Relaxed);
        view(area).take_seat();
    }
}

/// Gives back what this backend still holds, adds what it has gathered to the entries, and gives back its reference to
/// the payload area.
unsafe extern "C-unwind" fn release_area(_code: i32, place: pg_sys::Datum) {
    let body = || {
        // What a function is computed in while a statement is planned outlives the transaction, and nobody resets it in
        // a process that is told to quit.
        // SAFETY: the backend is ending, and has aborted its transaction before (ShutdownPostgres, which is called
        // before those of this kind), so that nothing in the context of its last message is used any more. The server
        // has forgotten that message's text. It is null in a process without a client.
        unsafe {
            if !pg_sys::MessageContext.is_null() {
                kept!(pg_sys::MemoryContextReset(pg_sys::MessageContext));
            }
        }
        view(AREA.load(Relaxed)).gather_own_uses();
        // SAFETY: registered with the place of the area; runs once, at the backend's exit.
        unsafe { kept!(pg_sys::dsa_release_in_place(place.cast_mut_ptr())) };
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

/// The lock tranche, seen as the locks that `core` asks for.
#[derive(Clone, Copy)]
pub struct PartitionLocks {
    first: *mut pg_sys::LWLockPadded,
}

impl PartitionLocks {
    fn hold<R>(&self, index: usize, mode: pg_sys::LWLockMode::Type, f: impl FnOnce() -> R) -> R {
        // SAFETY: `index` is at most PARTITIONS, and PARTITIONS + 1 locks were requested. `f` comes from `core` and
        // cannot raise, so the release is reached.
        unsafe {
            let lock = &raw mut (*self.first.add(index)).lock;
            kept!(pg_sys::LWLockAcquire(lock, mode));
            let result = f();
            kept!(pg_sys::LWLockRelease(lock));
            result
        }
    }
}

impl Locks for PartitionLocks {
    fn shared<R>(&self, partition: usize, f: impl FnOnce() -> R) -> R {
        self.hold(partition % PARTITIONS, pg_sys::LWLockMode::LW_SHARED, f)
    }

    fn exclusive<R>(&self, partition: usize, f: impl FnOnce() -> R) -> R {
        self.hold(partition % PARTITIONS, pg_sys::LWLockMode::LW_EXCLUSIVE, f)
    }

    fn store<R>(&self, f: impl FnOnce() -> R) -> R {
        self.hold(PARTITIONS, pg_sys::LWLockMode::LW_EXCLUSIVE, f)
    }
}

/// PostgreSQL's dynamic shared area, in place over the end of the block.
#[derive(Clone, Copy)]
pub struct SharedArena {
    area: *mut pg_sys::dsa_area,
}

impl Arena for SharedArena {
    fn allocate(&self, bytes: usize) -> Option<ArenaPtr> {
        // Larger requests than these raise whatever the flags say (dsa.c checks the size first).
        const LARGEST: usize = 1 << 30;
        if bytes == 0 || bytes >= layout().arena_len {
            return None;
        }
        let mut flags = pg_sys::DSA_ALLOC_NO_OOM as i32;
        if bytes >= LARGEST {
            flags |= pg_sys::DSA_ALLOC_HUGE as i32;
        }
        // SAFETY: this backend is attached. With NO_OOM a full area gives a null pointer.
        let pointer = unsafe { kept!(pg_sys::dsa_allocate_extended(self.area, bytes, flags)) };
        (pointer != 0).then_some(ArenaPtr(pointer))
    }

    fn file_limits(&self) -> FileLimits {
        // The postmaster loads what outlives a restart before the server removes temporary files.
        // SAFETY: a plain global.
        let has_files = unsafe { pg_sys::IsUnderPostmaster };
        if has_files { files::limits() } else { FileLimits::NO_FILES }
    }

    fn write_file(&self, number: u64, count: usize, chunks: &mut dyn Iterator<Item = &[u8]>) -> bool {
        files::write(number, count, chunks)
    }

    fn remove_file(&self, number: u64) {
        files::remove(number);
    }

    unsafe fn free(&self, pointer: ArenaPtr) {
        // SAFETY: the caller passes what `allocate` returned, once.
        unsafe { kept!(pg_sys::dsa_free(self.area, pointer.0)) };
    }

    fn address(&self, pointer: ArenaPtr) -> *mut u8 {
        // The area has a single segment, number 0, which starts at its place. So the pointer is the offset (dsa.c,
        // "segment 0" of an in-place area). A check asks for places that it has not looked at yet, and that the area
        // has not handed out if something is damaged.
        BLOCK.load(Relaxed).wrapping_add(layout().arena_offset).wrapping_add(pointer.0 as usize)
    }
}
