//! What the host of the cache lends it: an allocator inside the block, files for chunks that have to leave it, and
//! locks. Traits only: nothing here is shared.

/// Place in the arena, the same number in every process. 0 is no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArenaPtr(pub u64);

impl ArenaPtr {
    /// No place.
    pub const NULL: ArenaPtr = ArenaPtr(0);

    /// Whether this is no place.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// Which files of chunks there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileLimits {
    /// Least bytes of a file.
    pub least: u64,
    /// Most bytes of all files together.
    pub most: u64,
}

impl FileLimits {
    /// There are none.
    pub const NO_FILES: Self = Self { least: u64::MAX, most: 0 };
}

/// Allocator of payload memory inside the shared block. It takes a lock of its own, so the cache never calls `allocate`
/// or `free` under one of its locks.
///
/// The memory it hands out is aligned to 8 bytes, holds initialised bytes (of any value) and stays at the same address
/// until it is freed.
pub trait Arena {
    /// Memory for `bytes` bytes, or `None` when there is no room. Must not raise.
    fn allocate(&self, bytes: usize) -> Option<ArenaPtr>;

    /// Gives memory back. Must not raise.
    ///
    /// # Safety
    /// `ptr` came from `allocate` of this arena (in any process), was not freed since, and nobody reads or writes it
    /// any more.
    unsafe fn free(&self, ptr: ArenaPtr);

    /// Where `ptr` is in this process. Called on every read; must not lock or raise.
    fn address(&self, ptr: ArenaPtr) -> *mut u8;

    /// How large files of chunks may be.
    fn file_limits(&self) -> FileLimits {
        FileLimits::NO_FILES
    }

    /// Writes so many chunks of an entry to a file of this number. Returns true if it is whole. Else none is left,
    /// unless somebody else has written it. May take long. Must not raise.
    fn write_file(&self, _number: u64, _count: usize, _chunks: &mut dyn Iterator<Item = &[u8]>) -> bool {
        false
    }

    /// Removes the file of this number, which nobody reads any more. Must not raise.
    fn remove_file(&self, _number: u64) {}
}

/// The locks of the cache. Each call takes one lock, runs `f` and releases the lock. `f` is short, cannot fail, and
/// calls nothing outside this crate and none of these functions.
pub trait Locks {
    /// Runs `f` while holding the lock of a partition (below [`crate::cache::layout::PARTITIONS`]) together with other
    /// readers.
    fn shared<R>(&self, partition: usize, f: impl FnOnce() -> R) -> R;
    /// Runs `f` while holding the lock of a partition alone.
    fn exclusive<R>(&self, partition: usize, f: impl FnOnce() -> R) -> R;
    /// Runs `f` while holding the lock of the free list and the limbo list alone.
    fn store<R>(&self, f: impl FnOnce() -> R) -> R;
}
