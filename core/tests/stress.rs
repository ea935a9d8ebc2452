//! Many threads, each attached as a process would be, publish, find, retire and evict in one small block.

mod common;

use arrow_cache_core::cache::{Dependency, NewKind, Pin};
use arrow_cache_core::versions::snapshot::SnapshotView;
use common::{Block, SEATS, TestStore, described, key};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const THREADS: u64 = if cfg!(miri) { 3 } else { 6 };
const ROUNDS: u64 = if cfg!(miri) { 25 } else { 40_000 };
const KEYS: u64 = 24;
/// Most bytes of fragments.
const SHARE: u64 = 5000;

/// xorshift: reproducible and enough.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Every byte of a payload follows from the serial number in its text.
fn byte(serial: u64, chunk: usize) -> u8 {
    (serial.wrapping_mul(31).wrapping_add(chunk as u64) % 251) as u8
}

fn check(store: &TestStore<'_>, pin: &Pin, n: Option<u64>) -> u64 {
    let view = store.view(pin);
    let (found, serial) = view.text().split_at(8);
    let found = u64::from_le_bytes(found.try_into().unwrap());
    let serial = u64::from_le_bytes(serial.try_into().unwrap());
    assert!(n.is_none_or(|n| n == found), "another key's entry");
    assert_eq!(view.rows(), serial);
    assert_eq!(view.chunks().count(), view.chunk_count() as usize);
    for (position, chunk) in view.chunks().enumerate() {
        assert!(chunk.iter().all(|&b| b == byte(serial, position)), "payload changed under a pin");
    }
    serial
}

fn one_thread(block: &Block, number: u64, serials: &AtomicU64) {
    // Half of the processes have a seat.
    let store = if number.is_multiple_of(2) { block.seat(number as usize) } else { block.attach(number as usize) };
    let versions = store.versions();
    let mut dice = Dice(number + 1);
    for round in 0..ROUNDS {
        let now = round as i64;
        let n = dice.roll(KEYS);
        match dice.roll(16) {
            0..=6 => {
                if let Some(pin) = store.lookup(key(n)) {
                    store.touch(&pin, now);
                    let serial = check(&store, &pin, Some(n));
                    let snapshot = SnapshotView { xmin: u64::MAX, xmax: u64::MAX, in_progress: &[] };
                    let _ = store.valid_for(&pin, &snapshot);
                    std::thread::yield_now();
                    if dice.roll(4) == 0 {
                        store.retire(&pin);
                    }
                    assert_eq!(check(&store, &pin, Some(n)), serial);
                    store.unpin(pin);
                }
            }
            7..=12 => {
                let serial = serials.fetch_add(1, Relaxed);
                let chunks: Vec<Vec<u8>> = (0..dice.roll(4) as usize)
                    .map(|chunk| vec![byte(serial, chunk); dice.roll(1500) as usize])
                    .collect();
                let Ok(fill) = common::fill(&store, &chunks, now) else {
                    continue;
                };
                match dice.roll(8) {
                    0 => store.abandon(fill),
                    1 => store.abandon_unlocked(&fill),
                    _ => {
                        let slot = versions.relation(1, n as u32);
                        let on = [Dependency { slot, relation: n as u32, version: versions.slot(slot).version() }];
                        let text = [n.to_le_bytes(), serial.to_le_bytes()].concat();
                        let mut new = described(&text, &on);
                        if dice.roll(2) == 0 {
                            new.kind = NewKind::Fragment { most_bytes: SHARE };
                        }
                        new.rows = serial;
                        new.expires_at = now + 1 + dice.roll(500) as i64;
                        if let Ok(pin) = store.publish(fill, key(n), new, now) {
                            assert_eq!(check(&store, &pin, Some(n)), serial);
                            store.unpin(pin);
                        }
                    }
                }
            }
            13 => versions.slot(versions.relation(1, n as u32)).bump(now),
            14 => store.for_each(|view| assert!(view.text().len() == 16)),
            _ => {
                store.retire_matching(|view| view.rows() % 5 == 0);
            }
        }
        assert!(store.entries() <= THREADS as u32 + 12);
        assert!(store.fragment_bytes() <= SHARE);
    }
}

/// A key is replaced all the time, among neighbours of its bucket that come and go, whose records and its own are used
/// for each other.
#[test]
fn what_is_found_is_never_older() {
    const RECORDS: u32 = 12;
    const NEIGHBOURS: [u64; 3] = [5, 10, 15];
    let block = Block::new(RECORDS, 64 * 1024);
    let put = |store: &TestStore<'_>, n: u64, serial: u64| {
        let fill = common::fill(store, &[vec![byte(serial, 0); 40]], 0).unwrap();
        let text = [n.to_le_bytes(), serial.to_le_bytes()].concat();
        let mut new = described(&text, &[]);
        new.rows = serial;
        store.publish(fill, key(n), new, 0).unwrap()
    };
    let first = block.attach(0);
    first.unpin(put(&first, 0, 0));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (block, over, put) = (&block, &over, &put);
        let readers = (0..2).map(|number| {
            scope.spawn(move || {
                let store = if number == 0 { block.seat(number) } else { block.attach(number) };
                let mut latest = 0;
                let mut rounds = 0;
                while !over.load(Relaxed) || rounds == 0 {
                    let Some(pin) = store.lookup(key(0)) else { continue };
                    let serial = check(&store, &pin, Some(0));
                    assert!(serial >= latest, "an older result came back");
                    latest = serial;
                    for n in NEIGHBOURS {
                        if let Some(pin) = store.lookup(key(n)) {
                            check(&store, &pin, Some(n));
                            store.unpin(pin);
                        }
                    }
                    store.unpin(pin);
                    rounds += 1;
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        let writer = scope.spawn(move || {
            let store = block.attach(7);
            for serial in 1..ROUNDS {
                let n = NEIGHBOURS[serial as usize % NEIGHBOURS.len()];
                let neighbour = put(&store, n, serial);
                store.unpin(put(&store, 0, serial));
                if serial % 3 != 0 {
                    store.retire(&neighbour);
                }
                store.unpin(neighbour);
            }
            over.store(true, Relaxed);
        });
        let ended = writer.join();
        over.store(true, Relaxed);
        assert!(ended.is_ok() && readers.into_iter().all(|reader| reader.join().is_ok()));
    });
    assert_eq!(first.lookup(key(0)).map(|pin| first.view(&pin).rows()), Some(ROUNDS - 1));
}

#[test]
fn pinned_payloads_never_change_and_nothing_leaks() {
    let block = Block::new(12, 16 * 1024);
    let serials = AtomicU64::new(1);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (block, serials, over) = (&block, &serials, &over);
        let workers = (0..THREADS).map(|number| scope.spawn(move || one_thread(block, number, serials)));
        let workers: Vec<_> = workers.collect();
        // Miri would see that a check reads memory which others write meanwhile, and does not know that it forgets what
        // it has read there.
        let checker = (!cfg!(miri)).then(|| {
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    block.check_beside_others();
                }
            })
        });
        let ended: Vec<_> = workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        over.store(true, Relaxed);
        assert!(ended.iter().all(Result::is_ok) && checker.is_none_or(|checker| checker.join().is_ok()));
    });
    block.check_alone(SEATS as usize - 1);
    let store = block.attach(0);
    let mut left = 0;
    store.for_each(|_| left += 1);
    assert_eq!(store.entries(), left);
    assert_eq!(store.retire_matching(|_| true), u64::from(left));
    assert_eq!((store.entries(), store.fragment_bytes()), (0, 0));
    assert_eq!(store.bytes_used(), block.layout.bookkeeping_bytes());
    assert_eq!(block.live(), 0);
    // Every record is free again.
    let fills: Vec<_> = (0..12).map(|_| store.reserve(0).unwrap()).collect();
    assert!(store.reserve(0).is_err());
    fills.into_iter().for_each(|fill| store.abandon(fill));
}
