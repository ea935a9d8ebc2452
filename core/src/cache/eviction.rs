//! Making room: windowed LRU with a hand that all processes share. The hand is an atomic and a hint. Candidates are chosen without a lock
//! and retired like any entry.
//!
//! One step examines the next 64 published entries. An entry that is useless (expired, or outdated) is retired at once; if none was useless,
//! the least recently used one is retired. Pinned entries are passed over: retiring them would free nothing. A call gives up after a few
//! windows in which all entries are pinned, so it costs the same however large the table is; the next call starts further on.

use crate::cache::counters::Counter;
use crate::cache::entry::Life;
use crate::cache::memory::{Arena, Locks};
use crate::cache::published::Pin;
use crate::cache::store::Store;
use std::sync::atomic::Ordering::Relaxed;

/// Published entries that one step examines.
const WINDOW: u32 = 64;
/// Windows that one call examines.
const MOST_WINDOWS: usize = 16;

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
        let table = self.header().fresh.load(Relaxed);
        let mut examined = 0;
        for _ in 0..MOST_WINDOWS {
            if examined == table {
                break;
            }
            let start = self.header().hand.load(Relaxed) % table;
            let (passed, progress) = self.evict_from_window(start, table - examined, table, now);
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
    fn evict_from_window(&self, start: u32, most: u32, table: u32, now: i64) -> (u32, bool) {
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
            if entry.pins() != 0 {
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
            if oldest.is_none_or(|candidate| last_used < candidate.last_used) {
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
