//! Making room: of a window of entries, the one that is worth least goes (`worth`), with a hand that all processes
//! share. The hand is an atomic and a hint. Candidates are chosen without a lock and retired like any entry.
//!
//! One step examines the next 32 published entries. An entry that is useless (expired, or outdated and taken by nobody
//! then) is retired at once; if none was useless, and memory is needed, the entry that is worth least loses its
//! renditions, if any has some (`renditions`); else the one that is worth least is retired, unless it is worth more
//! than what the room is for; of several, the one that was used longest ago. Pinned entries are passed over: retiring
//! them would free nothing. A call gives up after a few windows in which all entries are pinned, or worth more, so it
//! costs the same however large the table is; the next call starts further on.

use crate::atomics::Ordering::Relaxed;
use crate::cache::counters::Counter;
use crate::cache::entry::{Entry, EntryKind, Life};
use crate::cache::memory::{Arena, Locks};
use crate::cache::published::Pin;
use crate::cache::store::Store;
use crate::cache::worth::Worth;

/// Published entries that one step examines.
const WINDOW: u32 = 32;
/// Windows that one call examines.
const MOST_WINDOWS: usize = 32;
/// Windows that one call examines if the entries there are worth more than what the room is for.
const MOST_WINDOWS_OF_WORTH: usize = 4;

/// Windows that one call examines for fragments: it is called for each fragment that finds no room.
const MOST_FRAGMENT_WINDOWS: usize = 4;
/// A fragment that was used within the last minute is not spared for another, in microseconds: if a statement needs
/// more fragments than have room, the first of them stay, instead of taking each other's places at every run.
const FRAGMENT_REST: i64 = 60_000_000;

/// What a call came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Eviction {
    /// At least one entry has gone.
    Done,
    /// Some could go, but they are worth more.
    Outweighed,
    /// No entry was found that can go.
    Impossible,
}

/// What room is needed for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Bytes: those of renditions will do, and those of an answer that moves to a file.
    Memory,
    /// A record, or the share of a fragment or a file.
    Entry,
}

/// Which entries may go.
#[derive(Clone, Copy)]
enum Among {
    All,
    /// Those that are not worth clearly more than this, if they were ever used.
    NotOutweighing(Worth),
    /// Fragments that are useless, or were not used since then.
    FragmentsUnusedSince(i64),
    /// Those in files, on the terms of `NotOutweighing`.
    FilesNotOutweighing(Worth),
}

impl Among {
    /// Returns true if this entry may go at all. One in a file has few bytes of memory.
    fn has(self, need: Need, entry: &Entry) -> bool {
        match self {
            Among::All | Among::NotOutweighing(_) => need == Need::Entry || !entry.is_in_file(),
            Among::FragmentsUnusedSince(_) => entry.kind() == EntryKind::Fragment,
            Among::FilesNotOutweighing(_) => entry.is_in_file(),
        }
    }

    /// The worth that an entry must not outweigh.
    fn worth(self) -> Option<Worth> {
        match self {
            Among::NotOutweighing(worth) | Among::FilesNotOutweighing(worth) => Some(worth),
            Among::All | Among::FragmentsUnusedSince(_) => None,
        }
    }

    /// Returns true if an entry of use may go that was used last at this time.
    fn spares(self, last_used: i64) -> bool {
        match self {
            Among::All | Among::NotOutweighing(_) | Among::FilesNotOutweighing(_) => true,
            Among::FragmentsUnusedSince(time) => last_used < time,
        }
    }
}

/// The entry of a window that is worth least.
#[derive(Clone, Copy)]
struct Candidate {
    index: u32,
    life: Life,
    worth: Worth,
    last_used: i64,
    was_used: bool,
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Retires and frees at least one entry, or sees that another process does. If a worth is given, entries that were
    /// used and are worth more stay.
    /// Large answers move to files.
    pub(crate) fn evict(&self, worth: Option<Worth>, now: i64) -> Eviction {
        self.evict_among(worth.map_or(Among::All, Among::NotOutweighing), Need::Memory, MOST_WINDOWS, now)
    }

    /// The same among entries in files, so that there is room for another one of this worth.
    pub(crate) fn evict_file(&self, worth: Worth, now: i64) -> Eviction {
        self.evict_among(Among::FilesNotOutweighing(worth), Need::Entry, MOST_WINDOWS, now)
    }

    /// Retires and frees at least one entry, whatever it is worth, so that its record can be used.
    pub(crate) fn evict_record(&self, now: i64) -> Eviction {
        self.evict_among(Among::All, Need::Entry, MOST_WINDOWS, now)
    }

    /// The same among fragments.
    pub(crate) fn evict_fragment(&self, now: i64) -> bool {
        let among = Among::FragmentsUnusedSince(now - FRAGMENT_REST);
        self.evict_among(among, Need::Entry, MOST_FRAGMENT_WINDOWS, now) == Eviction::Done
    }

    fn evict_among(&self, among: Among, need: Need, windows: usize, now: i64) -> Eviction {
        let table = self.header().fresh.load(Relaxed);
        let (mut examined, mut outweighed) = (0, 0);
        for _ in 0..windows {
            if examined == table || outweighed == MOST_WINDOWS_OF_WORTH {
                break;
            }
            let start = self.header().hand.load(Relaxed) % table;
            let (passed, outcome) = self.evict_from_window((among, need), start, table - examined, table, now);
            examined += passed;
            self.header().hand.store(wrapped(start, passed, table), Relaxed);
            match outcome {
                Eviction::Done => {
                    self.reclaim_some();
                    return Eviction::Done;
                }
                Eviction::Outweighed => outweighed += 1,
                Eviction::Impossible => {}
            }
        }
        if outweighed > 0 { Eviction::Outweighed } else { Eviction::Impossible }
    }

    /// Examines one window from `start` on, at most `most` records of the table. Returns how many it passed, and
    /// whether anything was retired.
    fn evict_from_window(
        &self,
        (among, need): (Among, Need),
        start: u32,
        most: u32,
        table: u32,
        now: i64,
    ) -> (u32, Eviction) {
        let held = self.held();
        let mut passed = 0;
        let mut seen = 0;
        let mut useless = false;
        let mut least: Option<Candidate> = None;
        let mut rendered: Option<Candidate> = None;
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
            if entry.pins() != 0 || held.has(index) || !among.has(need, entry) {
                continue;
            }
            if entry.expires_at.load(Relaxed) <= now {
                useless |= self.retire_seen(index, life, Counter::Expirations, |_| true);
                continue;
            }
            if self.retire_seen(index, life, Counter::Evictions, |pin| self.is_useless(pin)) {
                useless = true;
                continue;
            }
            let (worth, last_used) = (entry.worth(now), entry.last_used());
            let is_less = |than: Candidate| (worth, last_used) < (than.worth, than.last_used);
            let this = Candidate { index, life, worth, last_used, was_used: entry.was_used() };
            if among.spares(last_used) && least.is_none_or(is_less) {
                least = Some(this);
            }
            if need == Need::Memory && !entry.renditions().is_null() && rendered.is_none_or(is_less) {
                rendered = Some(this);
            }
        }
        if !useless && rendered.is_some_and(|entry| self.drop_renditions_seen(entry)) {
            return (passed, Eviction::Done);
        }
        match (useless, least) {
            (true, _) => (passed, Eviction::Done),
            (false, None) => (passed, Eviction::Impossible),
            (false, Some(victim)) => (passed, self.evict_one((among, need), victim, now)),
        }
    }

    /// Returns true if an entry is outdated and nobody takes it then. Those who take outdated ones take none across a
    /// change of definitions.
    fn is_useless(&self, pin: &Pin) -> bool {
        let may_be_taken = || self.keeps_outdated(pin) && self.only_rows_changed(pin, self.view(pin).database());
        !self.is_current(pin) && !may_be_taken()
    }

    /// Frees the renditions of an entry seen in the table, unless somebody may read them.
    fn drop_renditions_seen(&self, seen: Candidate) -> bool {
        if !self.pin_seen(seen.index, seen.life) {
            return false;
        }
        let dropped = self.drop_renditions(seen.index);
        self.drop_pin(Pin::of(seen.index));
        dropped
    }

    /// Retires the entry of a window that is worth least, unless it is to stay.
    fn evict_one(&self, (among, need): (Among, Need), victim: Candidate, now: i64) -> Eviction {
        if let Some(worth) = among.worth()
            && victim.was_used
            && worth.is_outweighed_by(victim.worth)
        {
            return Eviction::Outweighed;
        }
        if need == Need::Memory && self.move_to_file(victim.index, victim.life, now) {
            return Eviction::Done;
        }
        self.retire_seen(victim.index, victim.life, Counter::Evictions, |_| true);
        // If we did not retire it, another process has: room was made in both cases.
        Eviction::Done
    }

    /// Pins an entry seen in the table and retires it if it is `wanted`; counts it.
    fn retire_seen(&self, index: u32, life: Life, counter: Counter, wanted: impl FnOnce(&Pin) -> bool) -> bool {
        if !self.pin_seen(index, life) {
            return false;
        }
        let pin = Pin::of(index);
        let retired = wanted(&pin) && self.retire(&pin);
        self.drop_pin(pin);
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
