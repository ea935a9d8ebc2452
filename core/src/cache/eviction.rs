//! Making room: windowed LRU with a hand that all processes share. The hand is an atomic and a hint; candidates are looked at without a
//! lock and retired as anybody would.
//!
//! One step looks at the next 64 published entries. What is useless (expired, or resting on something that changed) goes at once; if there
//! was nothing useless, the least recently used goes. Entries somebody reads are passed over: retiring them would free nothing. A call
//! gives up after a few windows with nothing but those, so it costs the same however large the table is; the next call looks further on.

use crate::cache::counters::Counter;
use crate::cache::entry::Life;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::{Pin, Store};
use std::sync::atomic::Ordering::Relaxed;

/// Published entries that one step looks at.
const WINDOW: u32 = 64;
/// Windows that one call looks at.
const MOST_WINDOWS: usize = 16;

/// The entry of a window that was used longest ago.
#[derive(Clone, Copy)]
struct Candidate {
    index: u32,
    life: Life,
    last_used: i64,
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Retires and frees at least one entry, or sees somebody else do it. False when it found none that can be freed.
    pub(crate) fn evict(&self, now: i64) -> bool {
        let table = self.header().fresh.load(Relaxed);
        let mut looked = 0;
        for _ in 0..MOST_WINDOWS {
            if looked == table {
                break;
            }
            let start = self.header().hand.load(Relaxed) % table;
            let (passed, progress) = self.evict_from_window(start, table - looked, table, now);
            looked += passed;
            self.header().hand.store(wrapped(start, passed, table), Relaxed);
            if progress {
                self.reclaim_some();
                return true;
            }
        }
        false
    }

    /// Looks at one window from `start` on, at most `most` records of the table. Returns how many it passed, and whether anything was retired.
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
            // Not retired by us means retired by somebody else since: room was made either way.
            return (passed, true);
        }
        (passed, useless)
    }

    /// Pins an entry seen in the table and retires it if it is as `wanted`; counts it.
    fn retire_seen(&self, index: u32, life: Life, counter: Counter, wanted: impl FnOnce(&Pin) -> bool) -> bool {
        if !self.pin_seen(index, life) {
            return false;
        }
        let pin = Pin::of(index);
        let retired = wanted(&pin) && self.retire(&pin);
        self.unpin(pin);
        if retired {
            self.counters().add(self.stripe, counter, 1);
        }
        retired
    }
}

/// The record `passed` places after `start` in a table that is a ring.
fn wrapped(start: u32, passed: u32, table: u32) -> u32 {
    ((u64::from(start) + u64::from(passed)) % u64::from(table)) as u32
}
