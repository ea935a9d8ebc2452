//! The chunks of an entry, wherever they lie: in shared memory, where they are read in place, or in a file, from which
//! one at a time is read. Belongs to one query of this backend.

use arrow_cache_core::{Counter, EntryView, Reason, RoomyVec};

use crate::error::CacheError;
use crate::files::{FileChunks, Name, Unreadable};
use crate::shmem::{self, SharedStore};

/// The chunks of a pinned entry, in order.
pub enum StoredChunks {
    /// They stay in place as long as the entry is pinned.
    InMemory(Vec<&'static [u8]>),
    /// One at a time is in memory of this backend.
    InFile(Box<FileChunks>),
}

impl StoredChunks {
    /// Those of an entry. Of a file, the first is read.
    ///
    /// # Errors
    /// The reason why the entry cannot be served. If it is its file, the entry is dropped.
    ///
    /// # Safety
    /// The entry must stay pinned as long as this value lives.
    pub unsafe fn of(store: &SharedStore, entry: &EntryView<'_>) -> Result<Self, Reason> {
        let mut places = Vec::new();
        for chunk in entry.chunks() {
            // SAFETY: the caller keeps the entry pinned; shared memory outlives the process.
            let chunk = unsafe { std::slice::from_raw_parts(chunk.as_ptr(), chunk.len()) };
            places.add(chunk).map_err(|_| Reason::OutOfMemory)?;
        }
        if places.is_empty()
            && let Some(number) = entry.file()
        {
            return Self::in_file(store, number);
        }
        Ok(Self::InMemory(places))
    }

    #[cold]
    fn in_file(store: &SharedStore, number: u64) -> Result<Self, Reason> {
        match FileChunks::open(number) {
            Ok(chunks) => Ok(Self::InFile(Box::new(chunks))),
            Err(Unreadable::OutOfMemory) => Err(Reason::OutOfMemory),
            Err(Unreadable::Failed(_) | Unreadable::Damaged) => {
                drop_unreadable(store, number);
                Err(Reason::UnreadableFile)
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::InMemory(places) => places.len(),
            Self::InFile(chunks) => chunks.len(),
        }
    }

    /// Bytes of all.
    pub fn bytes(&self) -> usize {
        match self {
            Self::InMemory(places) => places.iter().map(|chunk| chunk.len()).sum(),
            Self::InFile(chunks) => chunks.bytes(),
        }
    }

    /// A chunk; `None` if there is none of this number. One in a file is read if it is not the last that was. Raises if
    /// its file cannot be read any more.
    ///
    /// # Safety
    /// What is returned must not be used any more when another one is asked for, or when this value goes.
    #[inline]
    pub unsafe fn get(&mut self, number: usize) -> Option<&'static [u8]> {
        match self {
            Self::InMemory(places) => places.get(number).copied(),
            // SAFETY: the caller's promise.
            Self::InFile(chunks) => unsafe { read(chunks, number) },
        }
    }
}

/// As `get`.
///
/// # Safety
/// As `get`.
#[cold]
unsafe fn read(chunks: &mut FileChunks, number: usize) -> Option<&'static [u8]> {
    let file = chunks.number();
    let chunk = chunks.read(number).unwrap_or_else(|why| refuse(file, &why))?;
    // SAFETY: the buffer stays where it is; the caller keeps to its life.
    Some(unsafe { std::slice::from_raw_parts(chunk.as_ptr(), chunk.len()) })
}

/// Raises that a file cannot be read any more, some of which may have been delivered. Its entry is dropped, so that the
/// statement can be repeated.
#[cold]
fn refuse(number: u64, why: &Unreadable) -> ! {
    let name = Name::of(number);
    let error = match why {
        Unreadable::OutOfMemory => CacheError::out_of_memory(),
        Unreadable::Failed(error) => CacheError::failed_file(name.path().display(), error),
        Unreadable::Damaged => CacheError::damaged_file(name.path().display()),
    };
    if let (false, Some(store)) = (matches!(why, Unreadable::OutOfMemory), shmem::store()) {
        drop_unreadable(&store, number);
    }
    error.raise()
}

/// Drops the entry of a file that cannot be read.
#[cold]
fn drop_unreadable(store: &SharedStore, number: u64) {
    store.counters().add(store.stripe(), Counter::FileFailures, 1);
    store.retire_matching(|entry| entry.file() == Some(number));
}
