//! Files: a large answer whose room in the arena is needed moves its chunks to a file of its own, which the host
//! writes ([`Arena::write_file`]). Its record, its key and its head stay as they are.
//!
//! Whoever needs the room moves it. The file is written while the entry can be found and read; then the entry is
//! retired like any other. If nobody reads it at that moment, its record belongs to the one who has retired it: as one
//! who fills an entry, he changes it, and publishes it again. Else it stays retired, and the file goes.
//!
//! The bytes of all files are an atomic that anybody changes: they are claimed before a file is written, and given back
//! when it is removed. Nothing here takes a lock.

use crate::atomics::{AtomicU32, Ordering::Relaxed};
use crate::cache::counters::Counter;
use crate::cache::entry::{Entry, EntryKind, Life};
use crate::cache::eviction::Eviction;
use crate::cache::file_format::file_bytes;
use crate::cache::memory::{Arena, ArenaPtr, Locks};
use crate::cache::payload::{Chunks, HeadShape};
use crate::cache::published::Pin;
use crate::cache::store::Store;
use crate::cache::worth::Worth;

/// Least bytes of a file for each byte of its entry's head, which stays in the arena.
const LEAST_PER_HEAD: u64 = 512;
/// Most bytes of all files for each byte of the arena. So heads take at most a quarter of it.
const MOST_PER_ARENA: u64 = LEAST_PER_HEAD / 4;
/// Most evictions for one file.
const MOST_EVICTIONS: usize = 1024;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Bytes that files take.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.header().file_bytes.load(Relaxed)
    }

    /// Most bytes that files may take together.
    #[must_use]
    pub fn most_file_bytes(&self) -> u64 {
        self.arena.file_limits().most.min(self.layout.arena_len as u64 * MOST_PER_ARENA)
    }

    /// Moves the chunks of an entry that was seen in the table to a file. Returns true if they have left the arena, or
    /// another process is at the entry.
    pub(crate) fn move_to_file(&self, index: u32, life: Life, now: i64) -> bool {
        let entry = self.entry(index);
        let is_small = entry.bytes.load(Relaxed) < self.arena.file_limits().least;
        let may_move = !is_small && entry.kind() == EntryKind::Answer && !entry.is_in_file();
        if !may_move || !self.pin_seen(index, life) {
            return false;
        }
        let pin = Pin::of(index);
        let has_moved = entry.pins_exactly() > 1 || self.move_pinned(&pin, life, now);
        self.drop_pin(pin);
        has_moved
    }

    fn move_pinned(&self, pin: &Pin, life: Life, now: i64) -> bool {
        let entry = self.entry(pin.entry().0);
        let bytes = file_bytes(Chunks::new(&self.arena, entry).map(<[u8]>::len));
        let head = self.head_bytes(entry) as u64;
        if bytes < self.arena.file_limits().least.max(head * LEAST_PER_HEAD) || !self.is_current(pin) {
            return false;
        }
        let worth = Worth::of(entry.execution_micros(), bytes, entry.uses(now));
        if !self.claim_file(bytes, worth, now) {
            return false;
        }
        let has_moved = self.write(pin, life, bytes);
        if !has_moved {
            self.give_file_back(bytes);
        }
        has_moved
    }

    fn head_bytes(&self, entry: &Entry) -> usize {
        let count = |field: &AtomicU32| field.load(Relaxed) as usize;
        HeadShape::new(count(&entry.dependency_count), count(&entry.descriptor_len), count(&entry.text_len)).total
    }

    /// Writes the file, for which there is room, and lets the entry have it.
    fn write(&self, pin: &Pin, life: Life, bytes: u64) -> bool {
        let index = pin.entry().0;
        let (entry, number) = (self.entry(index), life.number(index));
        let count = entry.chunk_count.load(Relaxed) as usize;
        if !self.arena.write_file(number, count, &mut Chunks::new(&self.arena, entry)) {
            self.counters().add(self.stripe(), Counter::FileFailures, 1);
            return false;
        }
        let has_file = self.unlink(index) && {
            // `held` has the fence. Nobody who comes later finds the entry published before it is published again.
            let is_alone = entry.pins_exactly() == 1 && !self.held().has(index);
            if is_alone {
                self.leave_arena(entry, bytes);
            }
            let is_back = is_alone && self.link_again(index);
            if !is_back {
                self.note_unpublished(index);
                self.enter_limbo(index);
            }
            let counter = if is_back { Counter::FileMoves } else { Counter::Evictions };
            self.counters().add(self.stripe(), counter, 1);
            is_alone
        };
        if !has_file {
            self.arena.remove_file(number);
        }
        has_file
    }

    /// Frees all that a retired entry has in the arena but its head: a file has the rest. The caller has the only pin.
    fn leave_arena(&self, entry: &Entry, bytes: u64) {
        let head = self.head_bytes(entry) as u64;
        self.free_chain(ArenaPtr(entry.first_chunk.swap(0, Relaxed)));
        entry.last_chunk.store(0, Relaxed);
        self.free_renditions(entry);
        entry.file_bytes.store(bytes, Relaxed);
        let before = entry.bytes.swap(head, Relaxed);
        self.header().payload_bytes.fetch_sub(before - head, Relaxed);
    }

    /// Removes the file of an entry that belongs to the caller alone, if it has one.
    pub(crate) fn free_file(&self, index: u32) {
        let entry = self.entry(index);
        let bytes = entry.file_bytes.swap(0, Relaxed);
        if bytes > 0 {
            self.arena.remove_file(entry.life().number(index));
            self.give_file_back(bytes);
        }
    }

    /// Claims the bytes of a file, evicting entries that have one if all files together would take too many. False if
    /// too few of them can go: then nothing was claimed.
    fn claim_file(&self, bytes: u64, worth: Worth, now: i64) -> bool {
        let most = self.most_file_bytes();
        let within = |taken: u64| taken.checked_add(bytes).filter(|sum| *sum <= most);
        for _ in 0..=MOST_EVICTIONS {
            if bytes > most {
                break;
            }
            if self.header().file_bytes.fetch_update(Relaxed, Relaxed, within).is_ok() {
                return true;
            }
            if self.evict_file(worth, now) != Eviction::Done {
                break;
            }
        }
        false
    }

    /// Notes that a file has gone.
    fn give_file_back(&self, bytes: u64) {
        self.header().file_bytes.fetch_sub(bytes, Relaxed);
    }
}
