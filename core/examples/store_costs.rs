//! What the store's steps cost, by number of entries and of threads: `cargo run --release -p arrow_cache_core --example
//! store_costs`.
//!
//! Nanoseconds, the best of many short rounds, because other programs use the machine too. Keys are asked for in random
//! order, so with many entries the processor's caches miss as they would in a server. A lock here is a counter, as
//! cheap as the server's without waiting.

use arrow_cache_core::cache::key::CacheKey;
use arrow_cache_core::cache::layout::{Layout, PARTITIONS, Sizes};
use arrow_cache_core::cache::memory::{Arena, ArenaPtr, Locks};
use arrow_cache_core::cache::{Dependency, Fill, NewEntry, NewKind, Pin, Store};
use arrow_cache_core::hash::Hash128;
use arrow_cache_core::versions::snapshot::SnapshotView;
use std::alloc;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Instant;

const ROUNDS: usize = 40;
const DATA: usize = 64;
const EVERYTHING: SnapshotView<'_> = SnapshotView { xmin: u64::MAX, xmax: u64::MAX, in_progress: &[] };

#[repr(align(128))]
struct Lock(AtomicU32);

const ALONE: u32 = 1 << 31;

impl Lock {
    fn shared<R>(&self, f: impl FnOnce() -> R) -> R {
        while self.0.fetch_add(1, Acquire) & ALONE != 0 {
            self.0.fetch_sub(1, Relaxed);
            std::thread::yield_now();
        }
        let result = f();
        self.0.fetch_sub(1, Release);
        result
    }

    fn exclusive<R>(&self, f: impl FnOnce() -> R) -> R {
        while self.0.compare_exchange(0, ALONE, Acquire, Relaxed).is_err() {
            std::thread::yield_now();
        }
        let result = f();
        self.0.fetch_sub(ALONE, Release);
        result
    }
}

/// Free memory by size, in steps of 64 bytes, and where fresh memory begins.
struct Pieces {
    free: Vec<Vec<u64>>,
    fresh: u64,
    end: u64,
}

struct Block {
    base: *mut u8,
    memory: alloc::Layout,
    layout: Layout,
    locks: Vec<Lock>,
    pieces: Mutex<(Pieces, Vec<u32>)>,
}

// SAFETY: the store alone uses the block, as its rules allow.
unsafe impl Sync for Block {}

impl Block {
    fn new(max_entries: u32) -> Self {
        let sizes = |memory| Sizes { memory, max_entries, seats: 128 };
        let room = (max_entries as usize + 1000) * 1024;
        let needed = Layout::new(&sizes(0)).map_or_else(|error| error.needed(), |layout| layout.total);
        let layout = Layout::new(&sizes(needed + room)).expect("the block has room");
        let memory = alloc::Layout::from_size_align(layout.total, 4096).expect("a size of memory");
        // SAFETY: the size is not zero.
        let base = unsafe { alloc::alloc_zeroed(memory) };
        assert!(!base.is_null(), "no memory");
        // SAFETY: the block was just made for this layout.
        unsafe { Store::<&Block, &Block>::initialize(base, &layout) };
        let fresh = layout.arena_offset as u64;
        let pieces = Pieces { free: vec![Vec::new(); 64], fresh, end: layout.total as u64 };
        let locks = (0..=PARTITIONS).map(|_| Lock(AtomicU32::new(0))).collect();
        let sizes = vec![0; layout.arena_len / 64];
        Self { base, memory, layout, locks, pieces: Mutex::new((pieces, sizes)) }
    }

    fn attach(&self, stripe: usize) -> Store<'_, &Block, &Block> {
        // SAFETY: initialized for this layout; locks and arena are the block's own.
        let store = unsafe { Store::attach(self.base, &self.layout, self, self, stripe) }.seated(stripe as u32);
        store.take_seat();
        store
    }

    fn size_at(&self, place: u64) -> usize {
        (place as usize - self.layout.arena_offset) / 64
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout; nobody borrows the block any more.
        unsafe { alloc::dealloc(self.base, self.memory) };
    }
}

impl Locks for &Block {
    fn shared<R>(&self, partition: usize, f: impl FnOnce() -> R) -> R {
        self.locks[partition].shared(f)
    }

    fn exclusive<R>(&self, partition: usize, f: impl FnOnce() -> R) -> R {
        self.locks[partition].exclusive(f)
    }

    fn store<R>(&self, f: impl FnOnce() -> R) -> R {
        self.locks[PARTITIONS].exclusive(f)
    }
}

impl Arena for &Block {
    fn allocate(&self, bytes: usize) -> Option<ArenaPtr> {
        let steps = bytes.div_ceil(64);
        let mut pieces = self.pieces.lock().expect("no panic under this lock");
        let (pieces, sizes) = &mut *pieces;
        let place = pieces.free[steps].pop().or_else(|| {
            let place = pieces.fresh;
            pieces.fresh += steps as u64 * 64;
            (pieces.fresh <= pieces.end).then_some(place)
        })?;
        sizes[self.size_at(place)] = steps as u32;
        Some(ArenaPtr(place))
    }

    unsafe fn free(&self, ptr: ArenaPtr) {
        let mut pieces = self.pieces.lock().expect("no panic under this lock");
        let (pieces, sizes) = &mut *pieces;
        pieces.free[sizes[self.size_at(ptr.0)] as usize].push(ptr.0);
    }

    fn address(&self, ptr: ArenaPtr) -> *mut u8 {
        self.base.wrapping_add(ptr.0 as usize)
    }
}

type BenchStore<'a> = Store<'a, &'a Block, &'a Block>;

fn scatter(n: u64) -> u64 {
    let x = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn key(n: u64) -> CacheKey {
    let hi = scatter(n);
    CacheKey(Hash128 { hi: hi ^ (hi >> 32), lo: scatter(!n) })
}

fn fill(store: &BenchStore<'_>, now: i64) -> Fill {
    loop {
        // With two threads in a tiny table one may take what the other freed.
        if let Ok(mut fill) = store.reserve(now) {
            store.append(&mut fill, DATA, now).expect("room").fill(1);
            return fill;
        }
    }
}

fn publish(store: &BenchStore<'_>, n: u64, now: i64) -> Pin {
    let versions = store.versions();
    let on = |slot| Dependency { slot, relation: 1, version: versions.slot(slot).version() };
    let dependencies = [on(versions.ddl(1)), on(versions.enums(1)), on(versions.relation(1, n as u32 % 100))];
    let new = NewEntry {
        kind: NewKind::Answer,
        database: 1,
        role: 10,
        text: b"select 1",
        dependencies: &dependencies,
        descriptor: b"columns",
        needs_plan: false,
        plan_cost: 0.0,
        rows: 1,
        columns: 1,
        execution_micros: 1000,
        created_at: now,
        expires_at: i64::MAX,
        known_good: 0,
        catalogs: 0,
        keeps_outdated: false,
    };
    store.publish(fill(store, now), key(n), new, now).expect("room")
}

/// Nanoseconds per call of `step`, which every thread runs `times` times on a store of its own.
fn measure(block: &Block, threads: usize, times: u64, step: impl Fn(&BenchStore<'_>, u64) + Sync) -> f64 {
    let figures: Vec<f64> = (0..ROUNDS as u64)
        .map(|round| {
            let one = |thread: usize| {
                let store = block.attach(thread);
                let first = (round * 2 + thread as u64) * times;
                let start = Instant::now();
                for n in first..first + times {
                    step(&store, n);
                }
                start.elapsed().as_nanos() as f64 / times as f64
            };
            std::thread::scope(|scope| {
                let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
                handles.into_iter().map(|handle| handle.join().expect("no panic")).fold(0.0, f64::max)
            })
        })
        .collect();
    figures.into_iter().fold(f64::INFINITY, f64::min)
}

fn hit(store: &BenchStore<'_>, n: u64) {
    let pin = store.lookup(key(n)).expect("stored");
    store.unpin(black_box(pin));
}

fn whole_hit(store: &BenchStore<'_>, n: u64) {
    use arrow_cache_core::cache::counters::Counter;
    let pin = store.lookup(key(n)).expect("stored");
    black_box(store.view(&pin).text());
    black_box(store.valid_for(&pin, &EVERYTHING));
    store.touch(&pin, n as i64);
    store.counters().add(store.stripe(), Counter::Hits, 1);
    store.counters().add(store.stripe(), Counter::TimeSavedMicros, store.view(&pin).execution_micros());
    black_box(store.view(&pin).chunks().next());
    store.unpin(pin);
}

fn main() {
    println!(
        "{:>9} {:>7} {:>8} {:>10} {:>8} {:>9} {:>9}",
        "entries", "threads", "hit", "whole hit", "miss", "same key", "publish"
    );
    for entries in [10u32, 1000, 100_000, 1_000_000] {
        let block = Block::new(entries);
        block.attach(0).versions().ensure_floor(10);
        let store = block.attach(0);
        for n in 0..u64::from(entries) {
            store.unpin(publish(&store, n, n as i64));
        }
        let any = |n: u64| scatter(n) % u64::from(entries);
        for threads in [1, 2] {
            let hits = measure(&block, threads, 20_000, |store, n| hit(store, any(n)));
            let whole = measure(&block, threads, 20_000, |store, n| whole_hit(store, any(n)));
            let misses = measure(&block, threads, 20_000, |store, n| {
                assert!(black_box(store.lookup(key(n + (1 << 40)))).is_none());
            });
            let same = measure(&block, threads, 20_000, |store, _| whole_hit(store, 3));
            println!("{entries:>9} {threads:>7} {hits:>8.1} {whole:>10.1} {misses:>8.1} {same:>9.1}");
        }
        for threads in [1, 2] {
            let publications = measure(&block, threads, 2000, |store, n| {
                store.unpin(publish(store, n + (1 << 32), 1 << 40));
            });
            println!("{entries:>9} {threads:>7} {:>8} {:>10} {:>8} {:>9} {publications:>9.1}", "", "", "", "");
        }
    }
    evictions();
    room();
    writers();
}

/// Storing where each result displaces another one, beside storing where there is room.
fn evictions() {
    for entries in [1000u32, 100_000, 1_000_000] {
        let block = Block::new(entries);
        let store = block.attach(0);
        let more = ROUNDS as u64 * 20;
        let apart = |n: u64| u64::from(entries) - more + n;
        (0..apart(0)).for_each(|n| store.unpin(publish(&store, n, n as i64)));
        let free = measure(&block, 1, 10, |store, n| store.unpin(publish(store, apart(n), 1 << 40)));
        (0..more).for_each(|n| store.unpin(publish(&store, apart(n), 1 << 40)));
        let full = measure(&block, 1, 100, |store, n| store.unpin(publish(store, (1 << 32) + n, 1 << 40)));
        println!("an eviction, {entries} entries: {:.0} ns", full - free);
    }
}

/// Tables in which little or nothing can be evicted.
fn room() {
    let entries = 1_000_000;
    let block = Block::new(entries);
    let store = block.attach(0);
    let pins: Vec<Pin> = (0..u64::from(entries)).map(|n| publish(&store, n, n as i64)).collect();
    let full = measure(&block, 1, 5, |store, _| assert!(black_box(store.reserve(0)).is_err()));
    println!("refused, {entries} entries pinned: {full:.0} ns");
    for pin in &pins[1000..] {
        store.retire(pin);
    }
    let mut pins = pins.into_iter();
    let kept: Vec<Pin> = pins.by_ref().take(1000).collect();
    pins.by_ref().take(20_000).for_each(drop);
    let free = Instant::now();
    let waiting = pins.len();
    pins.for_each(|pin| store.unpin(pin));
    store.reclaim();
    println!("{waiting} entries reclaimed: {:.1} ns each", free.elapsed().as_nanos() as f64 / waiting as f64);
    let limbo = measure(&block, 1, 10, |store, n| store.unpin(publish(store, n + (1 << 32), 0)));
    println!("publish, 20000 retired entries still pinned: {limbo:.0} ns");
    kept.into_iter().for_each(|pin| store.unpin(pin));
}

/// Publications of writers, independent of what is stored.
fn writers() {
    let block = Block::new(1000);
    for threads in [1, 2] {
        let publications = measure(&block, threads, 20_000, |store, n| {
            let versions = store.versions();
            versions.slot(versions.relation(1, n as u32 % 1000)).publish(n + 100, n + 50, |_| false, 0);
        });
        println!("publication of a writer, {threads} threads: {publications:.1} ns per relation");
    }
}
