//! Growth that may fail. Rust ends the process when a buffer cannot grow, and the server restarts when a process ends
//! in this way. So every buffer that grows with data asks first. Pure functions, except for one flag of this process.

use std::collections::{TryReserveError, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::reason::Reason;

/// There is not enough memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory;

impl From<TryReserveError> for OutOfMemory {
    fn from(_: TryReserveError) -> Self {
        Self
    }
}

impl From<OutOfMemory> for Reason {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

/// The caller that is asking for memory at present can go on without it.
static ASKING: AtomicBool = AtomicBool::new(false);

/// Returns true if the caller that asks for memory at this moment can go on without it. Then an allocator need not
/// touch what it keeps for callers that cannot.
pub fn is_asking() -> bool {
    ASKING.load(Relaxed)
}

#[cold]
fn ask(reserve: impl FnOnce() -> Result<(), TryReserveError>) -> Result<(), OutOfMemory> {
    ASKING.store(true, Relaxed);
    let answer = reserve();
    ASKING.store(false, Relaxed);
    Ok(answer?)
}

/// Collections that can be asked to make room.
pub trait Room {
    /// Makes room for `more` items, and for further ones as the collection usually does.
    ///
    /// # Errors
    /// There is no memory; nothing has changed.
    fn make_room(&mut self, more: usize) -> Result<(), OutOfMemory>;
}

impl<T> Room for Vec<T> {
    #[inline]
    fn make_room(&mut self, more: usize) -> Result<(), OutOfMemory> {
        if more <= self.capacity() - self.len() { Ok(()) } else { ask(|| self.try_reserve(more)) }
    }
}

impl Room for String {
    fn make_room(&mut self, more: usize) -> Result<(), OutOfMemory> {
        if more <= self.capacity() - self.len() { Ok(()) } else { ask(|| self.try_reserve(more)) }
    }
}

impl<T> Room for VecDeque<T> {
    fn make_room(&mut self, more: usize) -> Result<(), OutOfMemory> {
        if more <= self.capacity() - self.len() { Ok(()) } else { ask(|| self.try_reserve(more)) }
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> Room for std::collections::HashMap<K, V, S> {
    fn make_room(&mut self, more: usize) -> Result<(), OutOfMemory> {
        if more <= self.capacity() - self.len() { Ok(()) } else { ask(|| self.try_reserve(more)) }
    }
}

/// Further operations on a vector that may not be able to grow.
pub trait RoomyVec<T>: Room + Sized {
    /// Makes room for exactly `more` items.
    ///
    /// # Errors
    /// There is no memory; nothing has changed.
    fn make_exact_room(&mut self, more: usize) -> Result<(), OutOfMemory>;

    /// An empty vector with room for `items` items.
    ///
    /// # Errors
    /// There is no memory.
    fn with_room(items: usize) -> Result<Self, OutOfMemory>;

    /// Appends one item.
    ///
    /// # Errors
    /// There is no memory; nothing has changed.
    fn add(&mut self, item: T) -> Result<(), OutOfMemory>;

    /// Appends copies of some items.
    ///
    /// # Errors
    /// There is no memory; nothing has changed.
    fn add_all(&mut self, items: &[T]) -> Result<(), OutOfMemory>
    where
        T: Copy;

    /// Makes the vector `length` items long; new ones are `item`.
    ///
    /// # Errors
    /// There is no memory; nothing has changed.
    fn lengthen(&mut self, length: usize, item: T) -> Result<(), OutOfMemory>
    where
        T: Copy;

    /// A copy of some items.
    ///
    /// # Errors
    /// There is no memory.
    fn copy_of(items: &[T]) -> Result<Self, OutOfMemory>
    where
        T: Copy,
    {
        let mut copy = Self::with_room(items.len())?;
        copy.add_all(items)?;
        Ok(copy)
    }

    /// All items of an iterator that knows how many it has.
    ///
    /// # Errors
    /// There is no memory.
    fn collected(items: impl ExactSizeIterator<Item = T>) -> Result<Self, OutOfMemory> {
        let mut all = Self::with_room(items.len())?;
        for item in items {
            all.add(item)?;
        }
        Ok(all)
    }
}

impl<T> RoomyVec<T> for Vec<T> {
    fn make_exact_room(&mut self, more: usize) -> Result<(), OutOfMemory> {
        if more <= self.capacity() - self.len() { Ok(()) } else { ask(|| self.try_reserve_exact(more)) }
    }

    fn with_room(items: usize) -> Result<Self, OutOfMemory> {
        let mut empty = Self::new();
        empty.make_exact_room(items)?;
        Ok(empty)
    }

    #[inline]
    fn add(&mut self, item: T) -> Result<(), OutOfMemory> {
        self.make_room(1)?;
        self.push(item);
        Ok(())
    }

    #[inline]
    fn add_all(&mut self, items: &[T]) -> Result<(), OutOfMemory>
    where
        T: Copy,
    {
        let length = self.len();
        if items.len() > self.capacity() - length {
            ask(|| self.try_reserve(items.len()))?;
        }
        // SAFETY: there is room for the items behind those that are there, and they do not overlap it, because the
        // vector is borrowed mutably. (`extend_from_slice` would check for room a second time.)
        unsafe {
            self.as_mut_ptr().add(length).copy_from_nonoverlapping(items.as_ptr(), items.len());
            self.set_len(length + items.len());
        }
        Ok(())
    }

    fn lengthen(&mut self, length: usize, item: T) -> Result<(), OutOfMemory>
    where
        T: Copy,
    {
        self.make_exact_room(length.saturating_sub(self.len()))?;
        if length > self.len() {
            self.resize(length, item);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_an_error_and_changes_nothing() {
        let mut bytes = vec![1u8, 2];
        assert_eq!(bytes.make_room(usize::MAX / 4), Err(OutOfMemory));
        assert_eq!(bytes.make_exact_room(usize::MAX / 4), Err(OutOfMemory));
        assert_eq!(bytes.lengthen(usize::MAX / 4, 0), Err(OutOfMemory));
        assert_eq!(bytes, [1, 2]);
        assert_eq!(Vec::<u64>::with_room(usize::MAX / 16), Err(OutOfMemory));
        assert_eq!(String::new().make_room(usize::MAX / 4), Err(OutOfMemory));
        assert!(!is_asking());
    }

    #[test]
    fn what_can_be_had_is_there() {
        let mut bytes = Vec::copy_of(b"ab").unwrap();
        bytes.add(b'c').unwrap();
        bytes.add_all(b"de").unwrap();
        bytes.lengthen(7, b'.').unwrap();
        bytes.lengthen(3, b'!').unwrap();
        assert_eq!(bytes, b"abcde..");
        assert_eq!(Vec::collected([1, 2, 3].iter().map(|n| n * 2)), Ok(vec![2, 4, 6]));
        assert!(Vec::<u8>::with_room(10).unwrap().capacity() >= 10);
    }
}
