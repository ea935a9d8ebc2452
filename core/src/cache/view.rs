//! What can be read of a published entry. Everything here is constant while the pin is held, except the usage figures,
//! which are atomics.

use crate::atomics::{AtomicI64, Ordering::Relaxed};
use crate::cache::entry::{Dependency, Entry, EntryId, EntryKind};
use crate::cache::memory::{Arena, ArenaPtr};
use crate::cache::payload::{COST, Chunks, HeadShape};
use crate::cache::rendition::Heads;

/// How much later an entry must be known to be good for the time to be written again, in microseconds.
const RENEWAL: i64 = 100_000;

/// A published entry, readable while its pin is held.
#[derive(Clone, Copy)]
pub struct EntryView<'a> {
    entry: &'a Entry,
    index: u32,
    arena: &'a dyn Arena,
}

impl<'a> EntryView<'a> {
    /// Only for a published entry that stays pinned for `'a`.
    pub(crate) fn new(entry: &'a Entry, index: u32, arena: &'a dyn Arena) -> Self {
        Self { entry, index, arena }
    }

    /// Index of the record in the entry table.
    #[must_use]
    pub fn id(&self) -> EntryId {
        EntryId(self.index)
    }

    /// A number that no other result in this block ever has: generation and index of the record.
    #[must_use]
    pub fn entry_id(&self) -> u64 {
        self.entry.life().number(self.index)
    }

    /// What the entry holds.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.entry.kind()
    }

    /// What people are shown of the statement.
    #[must_use]
    pub fn text(&self) -> &'a [u8] {
        let len = self.entry.text_len.load(Relaxed) as usize;
        self.head_bytes(self.shape().text, len)
    }

    /// The caller's column description.
    #[must_use]
    pub fn descriptor(&self) -> &'a [u8] {
        let len = self.entry.descriptor_len.load(Relaxed) as usize;
        self.head_bytes(self.shape().descriptor, len)
    }

    /// What the result rests on.
    #[must_use]
    pub fn dependencies(&self) -> &'a [Dependency] {
        let count = self.entry.dependency_count.load(Relaxed) as usize;
        // SAFETY: `write_head` put `count` dependencies there, which is a place aligned for them; they stay unchanged
        // while the entry is pinned, which it is for `'a`.
        unsafe { std::slice::from_raw_parts(self.head().add(self.shape().dependencies).cast::<Dependency>(), count) }
    }

    /// The relations that the answer rests on, each once. On a standby a relation may have two dependencies, one after
    /// the other.
    pub fn relations(&self) -> impl Iterator<Item = u32> + '_ {
        let mut last = 0;
        self.dependencies()
            .iter()
            .map(|dependency| dependency.relation)
            .filter(move |relation| *relation != 0 && std::mem::replace(&mut last, *relation) != *relation)
    }

    /// Returns true if only a plan of its statement tells whether the result may be given, as the caller said when it
    /// was published.
    #[must_use]
    pub fn needs_plan(&self) -> bool {
        self.entry.needs_plan()
    }

    /// What that plan was estimated to cost, in the planner's own unit, as the caller gave it.
    #[must_use]
    pub fn plan_cost(&self) -> f64 {
        // SAFETY: `write_head` put it there, aligned to 8; it stays unchanged while the entry is pinned, which it is
        // for `'a`.
        unsafe { self.head().add(COST).cast::<f64>().read() }
    }

    /// The data of every chunk, in the order they were appended; of none if a file has them.
    #[must_use]
    pub fn chunks(&self) -> Chunks<'a> {
        Chunks::new(self.arena, self.entry)
    }

    /// Number of chunks.
    #[must_use]
    pub fn chunk_count(&self) -> u32 {
        self.entry.chunk_count.load(Relaxed)
    }

    /// Rows of the result.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.entry.rows()
    }

    /// Columns of the result.
    #[must_use]
    pub fn columns(&self) -> u32 {
        self.entry.columns.load(Relaxed)
    }

    /// Bytes the entry takes from the arena.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entry.bytes.load(Relaxed)
    }

    /// The number of the file that has the chunks, if they do not lie in the arena.
    #[must_use]
    pub fn file(&self) -> Option<u64> {
        self.entry.is_in_file().then(|| self.entry_id())
    }

    /// Bytes of that file; 0 if there is none.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.entry.file_bytes.load(Relaxed)
    }

    /// What eviction goes by: the milliseconds that the entry is likely to save per second, for each of its megabytes,
    /// at `now` in microseconds. The entry of the lowest score goes first.
    #[must_use]
    pub fn score(&self, now: i64) -> f64 {
        self.entry.worth(now).as_score()
    }

    /// How many of its bytes renditions take.
    #[must_use]
    pub fn rendition_bytes(&self) -> u64 {
        Heads::from(self.arena, self.entry.renditions()).map(|(_, head)| head.bytes()).sum()
    }

    /// How long computing the result took, in microseconds.
    #[must_use]
    pub fn execution_micros(&self) -> u64 {
        self.entry.execution_micros()
    }

    /// When the result was stored, in microseconds.
    #[must_use]
    pub fn created_at(&self) -> i64 {
        self.entry.created_at.load(Relaxed)
    }

    /// From when on the result is no longer served, in microseconds; `i64::MAX` = never.
    #[must_use]
    pub fn expires_at(&self) -> i64 {
        self.entry.expires_at.load(Relaxed)
    }

    /// A moment at which the result was right, or one before that: the last that is known, in microseconds.
    #[must_use]
    pub fn known_good(&self) -> i64 {
        self.good().load(Relaxed)
    }

    /// How often the result was served.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.entry.hits()
    }

    /// When the result was served or stored last, in microseconds.
    #[must_use]
    pub fn last_used(&self) -> i64 {
        self.entry.last_used()
    }

    /// Database the result belongs to.
    #[must_use]
    pub fn database(&self) -> u32 {
        self.entry.database.load(Relaxed)
    }

    /// Role that computed the result.
    #[must_use]
    pub fn role(&self) -> u32 {
        self.entry.role.load(Relaxed)
    }

    /// It was found good at a time that is not before `then`. Of several who write at once any may be the last: each of
    /// their times is right.
    pub(crate) fn renew(&self, then: i64) {
        if then.saturating_sub(self.known_good()) > RENEWAL {
            self.good().store(then, Relaxed);
        }
    }

    fn good(&self) -> &'a AtomicI64 {
        // SAFETY: `write_head` put it at the start of the head, which is aligned to 8 and stays while the entry is
        // pinned, which it is for `'a`.
        unsafe { &*self.head().cast::<AtomicI64>() }
    }

    fn head(&self) -> *mut u8 {
        self.arena.address(ArenaPtr(self.entry.head.load(Relaxed)))
    }

    fn shape(&self) -> HeadShape {
        HeadShape::new(
            self.entry.dependency_count.load(Relaxed) as usize,
            self.entry.descriptor_len.load(Relaxed) as usize,
            self.entry.text_len.load(Relaxed) as usize,
        )
    }

    fn head_bytes(&self, offset: usize, len: usize) -> &'a [u8] {
        // SAFETY: `write_head` wrote `len` bytes at `offset` of the head; they stay unchanged while the entry is
        // pinned, which it is for `'a`.
        unsafe { std::slice::from_raw_parts(self.head().add(offset), len) }
    }
}
