//! Entries: a store of one or two records, its locks, and an arena that knows who may read what it has handed out.

use super::search::both;
use crate::cache::key::CacheKey;
use crate::cache::layout::{Layout, Sizes};
use crate::cache::memory::{Arena, ArenaPtr, FileLimits, Locks};
use crate::cache::{NewEntry, NewKind, Pin, Store};
use crate::hash::Hash128;
use loom::cell::UnsafeCell;
use loom::sync::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

/// Processes that have a seat.
const SEATS: u32 = 2;
const PIECE: u64 = 16 * 1024;
/// Bytes of an answer that may move to a file.
const LARGE: usize = 12 * 1024;

/// The locks and the arena of one execution.
struct World {
    partition: RwLock<()>,
    lists: Mutex<()>,
    /// What was handed out, by its place. Loom says when one reads what another frees without being ordered behind it.
    pieces: std::sync::Mutex<BTreeMap<u64, Arc<UnsafeCell<()>>>>,
    /// The same of files, by their numbers; and whether there is no room for more pieces before one is freed.
    files: std::sync::Mutex<BTreeMap<u64, Arc<UnsafeCell<()>>>>,
    is_full: std::sync::atomic::AtomicBool,
    layout: &'static Layout,
    base: *mut u8,
}

type Process = Store<'static, Arc<World>, Arc<World>>;

// SAFETY: all threads of an execution run on one thread of the system.
unsafe impl Send for World {}
// SAFETY: likewise.
unsafe impl Sync for World {}

impl World {
    fn new(max_entries: u32) -> Arc<Self> {
        static BLOCKS: [OnceLock<(usize, Layout)>; 4] = [const { OnceLock::new() }; 4];
        let (base, layout) = BLOCKS[max_entries as usize].get_or_init(|| {
            let layout = Layout::new(&Sizes { memory: 4 << 20, max_entries, seats: SEATS }).unwrap();
            let memory = std::alloc::Layout::from_size_align(layout.total, 4096).unwrap();
            // SAFETY: the size is not zero.
            (unsafe { std::alloc::alloc_zeroed(memory) }.expose_provenance(), layout)
        });
        Arc::new(Self {
            partition: RwLock::new(()),
            lists: Mutex::new(()),
            pieces: std::sync::Mutex::default(),
            files: std::sync::Mutex::default(),
            is_full: false.into(),
            layout,
            base: std::ptr::with_exposed_provenance_mut(*base),
        })
    }

    /// A process that has the seat of this number, if there are so many.
    fn process(self: &Arc<Self>, number: u32) -> Process {
        // SAFETY: the block is zeroed, which is how it begins, and is never given back; locks and arena are those of
        // the execution.
        let store = unsafe { Store::attach(self.base, self.layout, self.clone(), self.clone(), number as usize) };
        let store = store.seated(number);
        store.take_seat();
        store
    }

    fn piece(&self, ptr: ArenaPtr) -> Arc<UnsafeCell<()>> {
        let pieces = self.pieces.lock().unwrap();
        pieces.get(&ptr.0).expect("a place that was not handed out").clone()
    }
}

impl Locks for Arc<World> {
    fn shared<R>(&self, _: usize, f: impl FnOnce() -> R) -> R {
        let _held = self.partition.read().unwrap();
        f()
    }

    fn exclusive<R>(&self, _: usize, f: impl FnOnce() -> R) -> R {
        let _held = self.partition.write().unwrap();
        f()
    }

    fn store<R>(&self, f: impl FnOnce() -> R) -> R {
        let _held = self.lists.lock().unwrap();
        f()
    }
}

impl Arena for Arc<World> {
    fn allocate(&self, bytes: usize) -> Option<ArenaPtr> {
        assert!(bytes as u64 <= PIECE);
        if self.is_full.load(Relaxed) {
            return None;
        }
        let piece = Arc::new(UnsafeCell::new(()));
        let place = {
            let mut pieces = self.pieces.lock().unwrap();
            let place = self.layout.arena_offset as u64 + (pieces.len() as u64 + 1) * PIECE;
            pieces.insert(place, piece.clone());
            place
        };
        piece.with_mut(|_| ());
        Some(ArenaPtr(place))
    }

    fn file_limits(&self) -> FileLimits {
        FileLimits { least: LARGE as u64, most: 2 * PIECE }
    }

    fn write_file(&self, number: u64, _: usize, chunks: &mut dyn Iterator<Item = &[u8]>) -> bool {
        chunks.for_each(drop);
        let file = Arc::new(UnsafeCell::new(()));
        file.with_mut(|_| ());
        self.files.lock().unwrap().insert(number, file).is_none()
    }

    fn remove_file(&self, number: u64) {
        self.files.lock().unwrap().remove(&number).expect("a file that was not written").with_mut(|_| ());
    }

    unsafe fn free(&self, ptr: ArenaPtr) {
        self.is_full.store(false, Relaxed);
        self.piece(ptr).with_mut(|_| ());
    }

    fn address(&self, ptr: ArenaPtr) -> *mut u8 {
        self.piece(ptr).with(|_| ());
        self.base.wrapping_add(ptr.0 as usize)
    }
}

/// Keys of one bucket.
fn key(n: u64) -> CacheKey {
    CacheKey(Hash128 { hi: n << 32, lo: n })
}

fn put(store: &Process, n: u64, byte: u8) -> Pin {
    put_bytes(store, n, byte, 4)
}

fn put_bytes(store: &Process, n: u64, byte: u8, bytes: usize) -> Pin {
    let mut fill = store.reserve(0).unwrap();
    store.append(&mut fill, bytes, 0).unwrap().fill(byte);
    let new = NewEntry {
        kind: NewKind::Answer,
        database: 1,
        role: 1,
        text: &[byte],
        dependencies: &[],
        descriptor: &[],
        needs_plan: false,
        plan_cost: 0.0,
        rows: u64::from(byte),
        columns: 1,
        execution_micros: 1,
        created_at: 0,
        expires_at: i64::MAX,
        known_good: 0,
        catalogs: 0,
        keeps_outdated: false,
    };
    store.publish(fill, key(n), new, 0).unwrap()
}

/// Looks up, reads and lets go: the byte of the answer.
fn get(store: &Process, n: u64) -> Option<u8> {
    let pin = store.lookup(key(n))?;
    let view = store.view(&pin);
    let byte = view.text()[0];
    assert_eq!(view.rows(), u64::from(byte), "torn");
    let chunks: Vec<&[u8]> = view.chunks().collect();
    assert_eq!(chunks, [[byte; 4]], "torn");
    store.unpin(pin);
    Some(byte)
}

/// Looks up, and finds this byte or nothing. The process is used after that.
fn finds(store: Process, n: u64, byte: u8) -> Process {
    let found = get(&store, n);
    assert!(found.is_none_or(|found| found == byte), "another one's: {found:?}");
    store
}

/// One looks up an answer, another one frees it.
fn read_beside_one_who_frees(reader: u32) {
    let world = World::new(1);
    let (reader, writer) = (world.process(reader), world.process(1));
    let pin = put(&writer, 1, 11);
    let free = move || {
        assert!(writer.retire(&pin));
        writer.unpin(pin);
        writer.reclaim();
    };
    let ((), reader) = both(free, move || finds(reader, 1, 11));
    reader.reclaim();
    assert_eq!(get(&reader, 1), None);
}

pub fn held_by_a_seat() {
    read_beside_one_who_frees(0);
}

pub fn pinned_at_the_entry() {
    read_beside_one_who_frees(SEATS);
}

/// The one record is used again for another key.
pub fn used_again() {
    let world = World::new(1);
    let (reader, writer) = (world.process(0), world.process(1));
    let pin = put(&writer, 1, 11);
    let replace = move || {
        writer.retire(&pin);
        writer.unpin(pin);
        if writer.reclaim() == 1 {
            let pin = put(&writer, 2, 22);
            writer.unpin(pin);
        }
    };
    both(replace, move || finds(reader, 1, 11));
}

/// What is replaced is there all the time, and what came later does not go.
pub fn replaced() {
    let world = World::new(2);
    let (reader, writer) = (world.process(0), world.process(1));
    let pin = put(&writer, 1, 11);
    writer.unpin(pin);
    let replace = move || {
        let pin = put(&writer, 1, 12);
        writer.unpin(pin);
    };
    let read = move || {
        let found = get(&reader, 1);
        assert!(matches!(found, Some(11 | 12)), "it is always there: {found:?}");
        reader
    };
    let ((), reader) = both(replace, read);
    assert_eq!(get(&reader, 1), Some(12));
}

/// Whoever finds what was just published reads all of it.
pub fn published() {
    let world = World::new(1);
    let (reader, writer) = (world.process(0), world.process(1));
    let publish = move || {
        let pin = put(&writer, 1, 11);
        writer.unpin(pin);
    };
    let ((), reader) = both(publish, move || finds(reader, 1, 11));
    assert_eq!(get(&reader, 1), Some(11));
}

/// Whoever looks up a large answer beside one who needs its room finds it in the arena or in its file, or does not find
/// it. What he reads stays as long as he reads.
fn read_beside_one_who_moves(reader: u32) {
    let world = World::new(2);
    let (reader, writer) = (world.process(reader), world.process(1));
    let pin = put_bytes(&writer, 1, 11, LARGE);
    writer.unpin(pin);
    world.is_full.store(true, Relaxed);
    let displace = move || {
        // Answer 1 may be read: then it stays, and nothing else can go.
        if let Ok(mut fill) = writer.reserve(1) {
            let _ = writer.append(&mut fill, 4, 1).map(|room| room.fill(22));
            writer.abandon(fill);
        }
    };
    let files = world.clone();
    let read = move || {
        if let Some(pin) = reader.lookup(key(1)) {
            let view = reader.view(&pin);
            assert_eq!(view.text(), [11], "torn");
            match view.file() {
                Some(number) => {
                    let file = files.files.lock().unwrap().get(&number).expect("the file of what is read").clone();
                    file.with(|_| ());
                }
                None => {
                    // They may go to a file now, and stay for whoever has found them.
                    let chunks: Vec<&[u8]> = view.chunks().collect();
                    assert!(chunks.len() == 1 && chunks[0].iter().all(|byte| *byte == 11), "torn");
                }
            }
            reader.unpin(pin);
        }
        reader
    };
    let ((), reader) = both(displace, read);
    reader.retire_matching(|_| true);
    reader.reclaim();
    assert!(world.files.lock().unwrap().is_empty() && reader.file_bytes() == 0);
}

pub fn held_while_it_moves() {
    read_beside_one_who_moves(0);
}

pub fn pinned_while_it_moves() {
    read_beside_one_who_moves(SEATS);
}
