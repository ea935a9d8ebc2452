//! Making room: windowed LRU with a hand that all processes share. The hand is an atomic and a hint. Candidates are chosen without a lock
//! and retired like any entry.
//!
//! One step examines the next 64 published entries. An entry that is useless (expired, or outdated) is retired at once; if none was useless,
//! the least recently used one is retired. Pinned entries are passed over: retiring them would free nothing. A call gives up after a few
//! windows in which all entries are pinned, so it costs the same however large the table is; the next call starts further on.

use crate::cache::counters::Counter;
use crate::cache::entry::{Entry, EntryKind, Life};
use crate::cache::memory::{Arena, Locks};
use crate::cache::published::Pin;
use crate::cache::store::Store;
use std::sync::atomic::Ordering::Relaxed;

/// Published entries that one step examines.
const WINDOW: u32 = 64;
/// Windows that one call examines.
const MOST_WINDOWS: usize = 16;

/// Windows that one call examines for fragments: it is called for each fragment that finds no room.
const MOST_FRAGMENT_WINDOWS: usize = 2;
/// A fragment that was used within the last minute is not spared for another, in microseconds: if a statement needs more fragments than
/// have room, the first of them stay, instead of taking each other's places at every run.
const FRAGMENT_REST: i64 = 60_000_000;

/// Which entries may go.
#[derive(Clone, Copy)]
enum Among {
    All,
    /// Fragments that are useless, or were not used since then.
    FragmentsUnusedSince(i64),
}

impl Among {
    /// May this entry go at all?
    fn has(self, entry: &Entry) -> bool {
        matches!(self, Among::All) || entry.kind() == EntryKind::Fragment
    }

    /// May an entry of use go that was used last at this time?
    fn spares(self, last_used: i64) -> bool {
        match self {
            Among::All => true,
            Among::FragmentsUnusedSince(time) => last_used < time,
        }
    }
}

/// The entry of a window that was used longest ago.
#[derive(Clone, Copy)]
struct Candidate {
    index: u32,
    life: Life,
    last_used: i64,
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Retires and frees at least one entry, or sees that another process does. False when it found none that can be freed.
    pub(crate) fn evict(&self, now: i64) -> bool {
        self.evict_among(Among::All, MOST_WINDOWS, now)
    }

    /// The same among fragments.
    pub(crate) fn evict_fragment(&self, now: i64) -> bool {
        self.evict_among(Among::FragmentsUnusedSince(now - FRAGMENT_REST), MOST_FRAGMENT_WINDOWS, now)
    }

    fn evict_among(&self, among: Among, windows: usize, now: i64) -> bool {
        let table = self.header().fresh.load(Relaxed);
        let mut examined = 0;
        for _ in 0..windows {
            if examined == table {
                break;
            }
            let start = self.header().hand.load(Relaxed) % table;
            let (passed, progress) = self.evict_from_window(among, start, table - examined, table, now);
            examined += passed;
            self.header().hand.store(wrapped(start, passed, table), Relaxed);
            if progress {
                self.reclaim_some();
                return true;
            }
        }
        false
    }

    /// Examines one window from `start` on, at most `most` records of the table. Returns how many it passed, and whether anything was
    /// retired.
    fn evict_from_window(&self, among: Among, start: u32, most: u32, table: u32, now: i64) -> (u32, bool) {
        let mut passed = 0;
        let mut seen = 0;
        let mut useless = false;
        let mut oldest: Option<Candidate> = None;
        while passed < most && seen < WINDOW {
            let place = wrapped(start, passed, table);
            let end = table.min(place.saturating_add(most - passed));
            let index = self.first_published(place, end);
            passed += index - place;
            if index == end {
                continue;
            }
            passed += 1;
            let entry = self.entry(index);
            let life = entry.life();
            if !life.is_published() {
                continue;
            }
            seen += 1;
            if entry.pins() != 0 || !among.has(entry) {
                continue;
            }
            if entry.expires_at.load(Relaxed) <= now {
                useless |= self.retire_seen(index, life, Counter::Expirations, |_| true);
                continue;
            }
            if self.retire_seen(index, life, Counter::Evictions, |pin| !self.is_current(pin)) {
                useless = true;
                continue;
            }
            let last_used = entry.last_used();
            if among.spares(last_used) && oldest.is_none_or(|candidate| last_used < candidate.last_used) {
                oldest = Some(Candidate { index, life, last_used });
            }
        }
        if let (false, Some(victim)) = (useless, oldest) {
            self.retire_seen(victim.index, victim.life, Counter::Evictions, |_| true);
            // If we did not retire it, another process has: room was made in both cases.
            return (passed, true);
        }
        (passed, useless)
    }

    /// Pins an entry seen in the table and retires it if it is `wanted`; counts it.
    fn retire_seen(&self, index: u32, life: Life, counter: Counter, wanted: impl FnOnce(&Pin) -> bool) -> bool {
        if !self.pin_seen(index, life) {
            return false;
        }
        let pin = Pin::of(index);
        let retired = wanted(&pin) && self.retire(&pin);
        self.unpin(pin);
        if retired {
            self.counters().add(self.stripe(), counter, 1);
        }
        retired
    }
}

/// The record `passed` places after `start` in a table that is a ring.
fn wrapped(start: u32, passed: u32, table: u32) -> u32 {
    ((u64::from(start) + u64::from(passed)) % u64::from(table)) as u32
}
