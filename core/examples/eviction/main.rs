//! What eviction saves: traces are replayed through the store itself, and through models of other policies. `cargo run
//! --release -p arrow_cache_core --example eviction`
//!
//! Prints the share of the time of all questions that a cache saves which holds 5, 10, 25 or 50 % of the bytes of all
//! answers that are asked for more than once: the store, the same as a ratio to LRU, models of LRU and GDSF, and a
//! bound that knows the future. Then what an eviction takes.

mod policies;
mod traces;

use arrow_cache_core::cache::key::CacheKey;
use arrow_cache_core::cache::layout::{Layout, Sizes};
use arrow_cache_core::cache::memory::{Arena, ArenaPtr, Locks};
use arrow_cache_core::cache::{Dependency, NewEntry, NewKind, Store};
use arrow_cache_core::hash::Hash128;
use policies::Model;
use std::alloc;
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Instant;
use traces::{Event, Question, Trace};

const PERCENTS: [u64; 4] = [5, 10, 25, 50];
/// What an entry takes besides its data.
const OVERHEAD: u64 = 400;
const ENTRIES: u32 = 1 << 17;

/// Memory of this process alone, up to a limit.
struct Host {
    base: *mut u8,
    memory: alloc::Layout,
    layout: Layout,
    capacity: u64,
    pieces: RefCell<(u64, HashMap<u64, alloc::Layout>)>,
}

impl Host {
    fn new(capacity: u64) -> Self {
        let needed = Layout::new(&Sizes { memory: 0, max_entries: ENTRIES, seats: 0 })
            .map_or_else(|error| error.needed(), |layout| layout.total);
        // The store asks only how large the arena is at most.
        let layout =
            Layout::new(&Sizes { memory: needed + capacity as usize, max_entries: ENTRIES, seats: 0 }).expect("enough");
        let memory = alloc::Layout::from_size_align(layout.bookkeeping_bytes(), 4096).expect("a size of memory");
        // SAFETY: the size is not zero.
        let base = unsafe { alloc::alloc_zeroed(memory) };
        assert!(!base.is_null(), "no memory");
        // SAFETY: only the bookkeeping is written; the arena lies elsewhere.
        unsafe { Store::<&Host, &Host>::initialize(base, &layout) };
        Self { base, memory, layout, capacity, pieces: RefCell::default() }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout; nobody borrows it any more. What was allocated later has its
        // layout beside it.
        unsafe {
            alloc::dealloc(self.base, self.memory);
            for (place, layout) in self.pieces.borrow().1.iter() {
                alloc::dealloc(*place as *mut u8, *layout);
            }
        }
    }
}

impl Locks for &Host {
    fn shared<R>(&self, _: usize, f: impl FnOnce() -> R) -> R {
        f()
    }

    fn exclusive<R>(&self, _: usize, f: impl FnOnce() -> R) -> R {
        f()
    }

    fn store<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }
}

impl Arena for &Host {
    fn allocate(&self, bytes: usize) -> Option<ArenaPtr> {
        let mut pieces = self.pieces.borrow_mut();
        if pieces.0 + bytes as u64 > self.capacity {
            return None;
        }
        let layout = alloc::Layout::from_size_align(bytes, 64).expect("a size of memory");
        // SAFETY: the store asks for no empty pieces.
        let place = unsafe { alloc::alloc_zeroed(layout) } as u64;
        pieces.0 += bytes as u64;
        pieces.1.insert(place, layout);
        Some(ArenaPtr(place))
    }

    unsafe fn free(&self, ptr: ArenaPtr) {
        let mut pieces = self.pieces.borrow_mut();
        let layout = pieces.1.remove(&ptr.0).expect("allocated");
        pieces.0 -= layout.size() as u64;
        // SAFETY: allocated above with this layout; the caller does not use it any more.
        unsafe { alloc::dealloc(ptr.0 as *mut u8, layout) };
    }

    fn address(&self, ptr: ArenaPtr) -> *mut u8 {
        ptr.0 as *mut u8
    }
}

fn key(n: u32) -> CacheKey {
    let mix = |n: u64| {
        let x = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    let hi = mix(u64::from(n));
    CacheKey(Hash128 { hi: hi ^ (hi >> 32), lo: mix(u64::from(!n)) ^ (hi >> 7) })
}

/// Milliseconds that the store saves, and those questions that had no room.
fn saved_by_store(trace: &Trace, capacity: u64) -> (f64, u64) {
    let host = Host::new(capacity);
    // SAFETY: initialized for this layout; locks and arena are those of this process, which has one thread.
    let store = unsafe { Store::attach(host.base, &host.layout, &host, &host, 0) };
    let (mut saved, mut refused) = (0.0, 0);
    for event in &trace.events {
        match event {
            Event::Write(table) => store.versions().slot(store.versions().relation(1, *table)).bump(1),
            Event::Ask(question) => match ask(&store, trace, question) {
                Ok(micros) => saved += micros as f64 / 1000.0,
                Err(()) => refused += 1,
            },
        }
    }
    (saved, refused)
}

/// The microseconds that were saved; an error if the answer is not stored.
fn ask(store: &Store<'_, &Host, &Host>, trace: &Trace, question: &Question) -> Result<u64, ()> {
    let (key, answer, now) = (key(question.key), trace.answers[question.key as usize], question.at);
    if let Some(pin) = store.lookup(key) {
        let current = store.is_current(&pin);
        if current {
            store.touch(&pin, now);
        } else {
            store.retire(&pin);
        }
        store.unpin(pin);
        if current {
            return Ok(answer.micros);
        }
    }
    let slot = store.versions().relation(1, answer.table);
    let dependencies = [Dependency { slot, relation: answer.table, version: store.versions().slot(slot).version() }];
    let mut fill = store.reserve(now).map_err(|_| ())?;
    fill.compete();
    fill.note_time(answer.micros);
    if store.append(&mut fill, answer.bytes.saturating_sub(OVERHEAD) as usize, now).is_err() {
        store.abandon(fill);
        return Err(());
    }
    let new = NewEntry {
        kind: NewKind::Answer,
        database: 1,
        role: 10,
        text: &[b'q'; 100],
        dependencies: &dependencies,
        descriptor: &[b'd'; 50],
        needs_plan: false,
        plan_cost: 0.0,
        rows: 1,
        columns: 1,
        execution_micros: answer.micros,
        created_at: now,
        expires_at: i64::MAX,
        known_good: 0,
        catalogs: 0,
        keeps_outdated: false,
    };
    let pin = store.publish(fill, key, new, now).map_err(|_| ())?;
    store.unpin(pin);
    Ok(0)
}

/// Bytes of all answers that are asked for more than once.
fn working_set(trace: &Trace) -> u64 {
    let mut times = vec![0; trace.answers.len()];
    for event in &trace.events {
        if let Event::Ask(question) = event {
            times[question.key as usize] += 1;
        }
    }
    times.iter().zip(&trace.answers).filter(|(times, _)| **times > 1).map(|(_, answer)| answer.bytes).sum()
}

fn main() {
    println!(
        "{:<33} {:>4} {:>7} {:>7} {:>7} {:>7} {:>7} {:>9}",
        "trace", "%", "store", "of LRU", "LRU", "GDSF", "bound", "not kept"
    );
    for trace in traces::all() {
        let (all, set) = (policies::all(&trace), working_set(&trace));
        for percent in PERCENTS {
            let capacity = set * percent / 100;
            let began = Instant::now();
            let (saved, refused) = saved_by_store(&trace, capacity);
            let took = began.elapsed();
            let [lru, gdsf] = [Model::Lru, Model::Gdsf].map(|model| policies::saved_by_model(&trace, capacity, model));
            let bound = policies::bound(&trace, capacity);
            println!(
                "{:<33} {percent:>4} {:>7.3} {:>7.2} {:>7.3} {:>7.3} {:>7.3} {refused:>9} {:>6.1} s",
                trace.name,
                saved / all,
                saved / lru,
                lru / all,
                gdsf / all,
                bound / all,
                took.as_secs_f64()
            );
        }
    }
}
