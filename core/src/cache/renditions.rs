//! Renditions of entries: finished messages, kept beside the columns, so that a hit is sent as it lies there.
//!
//! An entry has a list of them. A process that holds a pin makes one: it puts the head at the front of the list at once
//! (`Store::begin_rendition`), so that whatever becomes of the process, the memory belongs to the entry; then it adds
//! blocks, and says at last that it is ready. Nobody reads it before that, and it is constant afterwards. All of a list
//! is freed with its entry, or earlier, when room is needed: by a process that has taken the list off the entry, has a
//! pin, and then finds no other pin and no hold (`seats`). A reader that comes later finds no list. So the fences of
//! holds serve here, too: the reader's stands between its hold and its look at the list, the other's between taking the
//! list and looking for holds.
//!
//! No lock is taken here; the arena takes its own.

use crate::atomics::Ordering::Relaxed;
use crate::cache::entry::{Entry, EntryKind};
use crate::cache::memory::{Arena, ArenaPtr, Locks};
use crate::cache::payload::{CHUNK_OVERHEAD, chunk_header, data_of};
use crate::cache::published::Pin;
use crate::cache::rendition::{HEAD, Heads, Progress, RenditionHead, head_at};
use crate::cache::store::Store;
use crate::hash::Hash128;

/// Most renditions of one entry, given up ones included.
const MOST: usize = 3;
/// A rendition takes at most this part of the memory for results.
const SHARE: usize = 16;

/// Where a block of messages is. It stays there while the entry is pinned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockPlace(ArenaPtr);

impl BlockPlace {
    fn of(place: ArenaPtr) -> Option<Self> {
        (!place.is_null()).then_some(Self(place))
    }
}

/// A rendition that this process is making, of an entry that it has pinned.
#[derive(Debug)]
#[must_use]
pub struct Draft {
    index: u32,
    head: ArenaPtr,
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// The first block of messages, if a pinned entry has a rendition of this key with any.
    #[must_use]
    pub fn rendition(&self, pin: &Pin, key: Hash128) -> Option<BlockPlace> {
        let (_, head) =
            self.heads(self.entry(pin.entry().0)).find(|(_, head)| head.is(Progress::Ready) && head.key() == key)?;
        BlockPlace::of(head.first())
    }

    /// A block of a rendition of a pinned entry, and the next one.
    pub fn block<'p>(&'p self, _pin: &'p Pin, place: BlockPlace) -> (&'p [u8], Option<BlockPlace>) {
        let start = self.arena.address(place.0);
        // SAFETY: places are made by `rendition` and by this, of a ready rendition: `append_block` has put a header and
        // that many bytes behind it there. They are constant, and stay while the entry is pinned, which it is for `'p`.
        unsafe {
            let header = chunk_header(start);
            (std::slice::from_raw_parts(data_of(start), header.len()), BlockPlace::of(header.next()))
        }
    }

    /// Begins a rendition of a pinned entry. `None` for a fragment, if there is one of this key, or too many, or no
    /// free memory (nothing is evicted for it), or if the entry is outdated.
    #[must_use]
    pub fn begin_rendition(&self, pin: &Pin, key: Hash128) -> Option<Draft> {
        let _step = self.step();
        let index = pin.entry().0;
        let entry = self.entry(index);
        // What fragments take together is counted when they are published. What lies in a file has left the memory.
        if entry.kind() == EntryKind::Fragment || entry.is_in_file() {
            return None;
        }
        if !self.is_current(pin) {
            return None;
        }
        let mut count = 0;
        for (place, head) in self.heads(entry) {
            count += 1;
            if !head.is(Progress::GivenUp) && head.key() == key {
                return None;
            }
            if head.take_over() {
                self.free_blocks(entry, head);
                head.begin_anew(key);
                return Some(Draft { index, head: place });
            }
        }
        if count >= MOST {
            return None;
        }
        let place = self.arena.allocate(HEAD)?;
        let head = self.head_at(place);
        head.begin(key);
        self.account(entry, HEAD);
        self.put_in_front(entry, place, head);
        Some(Draft { index, head: place })
    }

    /// Adds a block of whole messages, given in parts. False if there is no free memory for it, or the rendition is too
    /// large: it should be given up.
    #[must_use]
    pub fn append_block(&self, draft: &Draft, parts: &[&[u8]]) -> bool {
        let _step = self.step();
        let head = self.head_at(draft.head);
        let length = parts.iter().map(|part| part.len()).sum();
        let bytes = length + CHUNK_OVERHEAD;
        if head.bytes() as usize + bytes > self.layout.arena_len / SHARE {
            return false;
        }
        let Some(place) = self.arena.allocate(bytes) else { return false };
        let start = self.arena.address(place);
        // SAFETY: the allocation is ours, larger than a header, and holds that many bytes behind its header
        // (`CHUNK_OVERHEAD`).
        unsafe {
            chunk_header(start).set(ArenaPtr::NULL, length);
            let mut place = data_of(start);
            for part in parts {
                place.copy_from_nonoverlapping(part.as_ptr(), part.len());
                place = place.add(part.len());
            }
        }
        let last = head.last();
        if !last.is_null() {
            // SAFETY: the last block of a rendition that we are making is allocated.
            unsafe { chunk_header(self.arena.address(last)) }.set_next(place);
        }
        head.append(place, bytes);
        self.account(self.entry(draft.index), bytes);
        true
    }

    /// Lets others read it. The entry is pinned by this process. If it is outdated by now, gives the rendition up: what
    /// was put in may tell of the change, and whoever holds the entry from before it would read that.
    pub fn publish_rendition(&self, draft: Draft) {
        if self.is_still_current(draft.index) {
            self.head_at(draft.head).set(Progress::Ready);
        } else {
            self.give_up_rendition(draft);
        }
    }

    /// Gives it up for good, since there is no room for it: what it has is freed, and nobody begins it again before it
    /// is dropped.
    pub fn refuse_rendition(&self, draft: Draft) {
        let _step = self.step();
        let head = self.head_at(draft.head);
        self.free_blocks(self.entry(draft.index), head);
        head.begin_anew(head.key());
        head.set(Progress::Refused);
    }

    /// Gives it up. Touches one word, so it can be called from the clean-up of an error, before the pin is given back.
    pub fn give_up_rendition(&self, draft: Draft) {
        self.head_at(draft.head).set(Progress::GivenUp);
    }

    /// Frees the renditions of an entry that this process has pinned, and nobody else; true if there were some. Else
    /// leaves them.
    pub(crate) fn drop_renditions(&self, index: u32) -> bool {
        let _step = self.step();
        let entry = self.entry(index);
        let first = entry.take_renditions();
        if first.is_null() {
            return false;
        }
        // `held` has the fence. A pin that is counted later was taken by a process that finds no list any more.
        if entry.pins_exactly() != 1 || self.held().has(index) {
            let mut last = self.head_at(first);
            while !last.next().is_null() {
                last = self.head_at(last.next());
            }
            self.put_in_front(entry, first, last);
            return false;
        }
        self.discharge(entry, self.free_list(first));
        true
    }

    /// Frees all renditions of an entry that is the caller's alone. Its bytes are left to the caller.
    pub(crate) fn free_renditions(&self, entry: &Entry) {
        self.free_list(entry.take_renditions());
    }

    fn discharge(&self, entry: &Entry, freed: u64) {
        entry.bytes.fetch_sub(freed, Relaxed);
        self.header().payload_bytes.fetch_sub(freed, Relaxed);
    }

    fn free_list(&self, first: ArenaPtr) -> u64 {
        let (mut place, mut freed) = (first, 0);
        while !place.is_null() {
            let head = self.head_at(place);
            freed += head.bytes();
            self.free_chain(head.first());
            let next = head.next();
            // SAFETY: allocated by `begin_rendition`; the list that named it was taken, and nobody reads it.
            unsafe { self.arena.free(place) };
            place = next;
        }
        freed
    }

    /// Frees the blocks of a rendition that this process makes.
    fn free_blocks(&self, entry: &Entry, head: &RenditionHead) {
        self.free_chain(head.first());
        self.discharge(entry, head.forget_blocks());
    }

    /// Puts a chain of heads, `first` to `last`, in front of an entry's list.
    fn put_in_front(&self, entry: &Entry, first: ArenaPtr, last: &RenditionHead) {
        let mut before = entry.renditions();
        loop {
            last.set_next(before);
            match entry.replace_renditions(before, first) {
                Ok(()) => return,
                Err(other) => before = other,
            }
        }
    }

    fn heads<'s>(&'s self, entry: &Entry) -> Heads<'s> {
        Heads::from(&self.arena, entry.renditions())
    }

    /// The head at a place of a list, which the caller's pin keeps, or that only the caller knows.
    fn head_at(&self, place: ArenaPtr) -> &RenditionHead {
        // SAFETY: the place was allocated for a head by `begin_rendition`, and is freed only when nobody has the entry
        // pinned.
        unsafe { head_at(&self.arena, place) }
    }
}
