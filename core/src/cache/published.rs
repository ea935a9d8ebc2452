//! Published entries: looked up, pinned, read, checked against a snapshot, retired. `index` says which locks a lookup
//! and a retirement take; the rest uses atomics only.

use crate::atomics::Ordering::Relaxed;
use crate::cache::entry::{Dependency, EntryId, Life};
use crate::cache::key::CacheKey;
use crate::cache::memory::{Arena, Locks};
use crate::cache::seat::Hold;
use crate::cache::store::Store;
use crate::cache::view::EntryView;
use crate::versions::snapshot::SnapshotView;

/// Hold on a published entry: it can be read until [`Store::unpin`] takes this.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Pin {
    entry: EntryId,
    /// The word of this process's seat that holds the entry; else the pin is counted at the entry.
    hold: Option<Hold>,
}

impl Pin {
    /// A pin that is counted at the entry.
    pub(crate) fn of(index: u32) -> Self {
        Self { entry: EntryId(index), hold: None }
    }

    /// A pin by the seat of this process.
    pub(crate) fn by(index: u32, hold: Hold) -> Self {
        Self { entry: EntryId(index), hold: Some(hold) }
    }

    /// The pinned entry.
    #[must_use]
    pub fn entry(&self) -> EntryId {
        self.entry
    }
}

/// Whether a result may be served under a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Validity {
    /// Every version is the one of the result, and the snapshot sees all that was published.
    Valid,
    /// Something the result rests on has changed: it will never be valid again.
    Changed,
    /// Nothing has changed, but the snapshot may not see all of it: another snapshot may still be served.
    NotVisible,
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Finds and pins the entry of a key. The entry may be expired, outdated or another statement's: the caller checks
    /// before serving it.
    #[must_use]
    pub fn lookup(&self, key: CacheKey) -> Option<Pin> {
        let pin = self.find_and_pin(key)?;
        self.note_given();
        Some(pin)
    }

    /// Gives a pin back, in the process that took it. Takes no lock, so it can be called from the clean-up of an error.
    pub fn unpin(&self, pin: Pin) {
        self.note_given_back();
        self.drop_pin(pin);
    }

    /// Gives back a pin that no caller has.
    pub(crate) fn drop_pin(&self, pin: Pin) {
        match pin.hold {
            Some(hold) => self.let_go(hold),
            None => self.entry(pin.entry.0).unpin(),
        }
    }

    /// What can be read of a pinned entry.
    pub fn view<'p>(&'p self, pin: &'p Pin) -> EntryView<'p> {
        let index = pin.entry.0;
        EntryView::new(self.entry(index), index, &self.arena)
    }

    /// Notes that the entry was served, at `now` in microseconds. A process with a seat adds it to the entry later.
    pub fn touch(&self, pin: &Pin, now: i64) {
        self.note_use(pin.entry.0, now);
    }

    /// Whether nothing that the entry rests on has changed since it was stored.
    #[must_use]
    pub fn is_current(&self, pin: &Pin) -> bool {
        self.is_still_current(pin.entry.0)
    }

    /// The same for an entry that this process has pinned.
    pub(crate) fn is_still_current(&self, index: u32) -> bool {
        let versions = self.versions();
        EntryView::new(self.entry(index), index, &self.arena)
            .dependencies()
            .iter()
            .all(|on| versions.version(on.slot) == on.version)
    }

    /// Whether the entry may be served under a snapshot, which was taken before the call.
    #[must_use]
    pub fn valid_for(&self, pin: &Pin, snapshot: &SnapshotView<'_>) -> Validity {
        let versions = self.versions();
        let mut whole = true;
        for on in self.view(pin).dependencies() {
            let state = versions.read(on.slot);
            if state.version != on.version {
                return Validity::Changed;
            }
            whole &= state.seen_whole(snapshot);
        }
        // The floor is read after the slots: see `Versions::begin_anew`.
        if whole && versions.above_base_floor(snapshot) { Validity::Valid } else { Validity::NotVisible }
    }

    /// Notes that the entry was found valid, at a time that is not before `then`, in microseconds.
    #[inline]
    pub fn renew(&self, pin: &Pin, then: i64) {
        self.view(pin).renew(then);
    }

    /// Lets the entry stay in the index when it is outdated, for those who take it then.
    pub fn keep_outdated(&self, pin: &Pin) {
        self.entry(pin.entry.0).keep_outdated();
    }

    /// Returns true if somebody takes the entry when it is outdated.
    #[must_use]
    pub fn keeps_outdated(&self, pin: &Pin) -> bool {
        self.entry(pin.entry.0).keeps_outdated()
    }

    /// Returns true if nothing has changed since the entry was computed but rows of relations that are known.
    /// `database` is that of the entry.
    ///
    /// A change of any definition moves the version of the catalogs before it can be visible. What concerns all
    /// databases, and changes of unknown relations, have slots that the entry rests on.
    #[must_use]
    pub fn only_rows_changed(&self, pin: &Pin, database: u32) -> bool {
        let versions = self.versions();
        let catalogs = versions.version(versions.catalogs(database));
        let is_same = |on: &Dependency| on.relation != 0 || versions.version(on.slot) == on.version;
        catalogs == self.entry(pin.entry.0).catalogs() && self.view(pin).dependencies().iter().all(is_same)
    }

    /// Takes the entry out of the index; true if this call did. The first [`Store::reclaim`] after the last pin is gone
    /// frees its memory.
    pub fn retire(&self, pin: &Pin) -> bool {
        let _step = self.step();
        let index = pin.entry.0;
        let retired = self.unlink(index);
        if retired {
            self.note_unpublished(index);
            self.enter_limbo(index);
        }
        retired
    }

    /// Retires every published entry that `matches`, frees those without a pin, and returns how many were retired. Each
    /// entry is pinned while `matches` reads it; no lock is held. `matches` should not raise an error of the server,
    /// which would leave the pin behind.
    pub fn retire_matching(&self, mut matches: impl FnMut(&EntryView<'_>) -> bool) -> u64 {
        let mut retired = 0;
        self.visit(|pin| {
            if matches(&self.view(pin)) && self.retire(pin) {
                retired += 1;
            }
        });
        self.reclaim();
        retired
    }

    /// Shows every published entry, on the terms of [`Store::retire_matching`], with all uses up to now.
    pub fn for_each(&self, mut show: impl FnMut(&EntryView<'_>)) {
        self.gather_uses();
        self.visit(|pin| show(&self.view(pin)));
    }

    pub(crate) fn visit(&self, mut f: impl FnMut(&Pin)) {
        let used = self.header().fresh.load(Relaxed);
        let mut index = self.first_published(0, used);
        while index < used {
            let life: Life = self.entry(index).life();
            if self.pin_seen(index, life) {
                let guard = Unpinned { store: self, pin: Pin::of(index) };
                f(&guard.pin);
            }
            index = self.first_published(index + 1, used);
        }
    }
}

/// Unpins when a visit ends, by a panic of the visitor too.
struct Unpinned<'s, 'a, L: Locks, A: Arena> {
    store: &'s Store<'a, L, A>,
    pin: Pin,
}

impl<L: Locks, A: Arena> Drop for Unpinned<'_, '_, L, A> {
    fn drop(&mut self) {
        self.store.entry(self.pin.entry.0).unpin();
    }
}
