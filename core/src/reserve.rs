//! A small heap over one block of memory that its user lends it, for the time when there is no other memory. Used by
//! one thread.
//!
//! Free ranges are chained in the order of their places, and merge with their neighbours; the first that is large
//! enough is taken. That is slow with many ranges, which does not matter when all other memory is used up.

use std::alloc::Layout;
use std::ptr::NonNull;

/// Sizes and places are multiples of this: the bytes of the description of a free range.
pub const GRAIN: usize = size_of::<FreeRange>();

/// Description of a free range, at its beginning.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct FreeRange {
    size: usize,
    /// Where the next free range begins; `NONE` behind the last.
    next: usize,
}

const NONE: usize = usize::MAX;

/// A heap over a block.
#[derive(Debug)]
pub struct Reserve {
    block: NonNull<u8>,
    size: usize,
    /// Where the first free range begins.
    first: usize,
    used: usize,
}

impl Reserve {
    /// A heap over `size` bytes.
    ///
    /// # Safety
    /// The bytes are the heap's own as long as it or what it hands out is used, and begin at a multiple of [`GRAIN`].
    #[must_use]
    pub unsafe fn new(block: NonNull<u8>, size: usize) -> Self {
        let size = size / GRAIN * GRAIN;
        let mut reserve = Self { block, size, first: NONE, used: 0 };
        if size > 0 {
            reserve.first = 0;
            reserve.write(0, FreeRange { size, next: NONE });
        }
        reserve
    }

    /// Bytes of the block.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes that are handed out.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used
    }

    /// Returns true if this place lies in the block.
    #[must_use]
    pub fn contains(&self, place: *const u8) -> bool {
        let start = self.block.as_ptr() as usize;
        (start..start + self.size).contains(&(place as usize))
    }

    /// Hands out memory; `None` if no free range is large enough.
    pub fn allocate(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let size = rounded(layout)?;
        let start = self.block.as_ptr() as usize;
        let mut before = NONE;
        let mut at = self.first;
        while at != NONE {
            let range = self.read(at);
            // A stricter alignment leaves multiples of a grain free in front.
            let place = (start + at).next_multiple_of(layout.align().max(GRAIN)) - start;
            let front = place - at;
            if front <= range.size && range.size - front >= size {
                let rest = range.size - front - size;
                let mut next = range.next;
                if rest > 0 {
                    self.write(place + size, FreeRange { size: rest, next });
                    next = place + size;
                }
                if front > 0 {
                    self.write(at, FreeRange { size: front, next });
                } else {
                    self.link(before, next);
                }
                self.used += size;
                // SAFETY: `place` lies in the block.
                return Some(unsafe { self.block.add(place) });
            }
            before = at;
            at = range.next;
        }
        None
    }

    /// Takes memory back.
    ///
    /// # Safety
    /// The memory must have been handed out by this heap with this layout, and not been taken back.
    pub unsafe fn free(&mut self, place: NonNull<u8>, layout: Layout) {
        let Some(size) = rounded(layout) else { return };
        let at = place.as_ptr() as usize - self.block.as_ptr() as usize;
        self.used -= size;
        let (mut before, mut next) = (NONE, self.first);
        while next < at {
            before = next;
            next = self.read(next).next;
        }
        let mut range = FreeRange { size, next };
        if next != NONE && at + size == next {
            let behind = self.read(next);
            range = FreeRange { size: size + behind.size, next: behind.next };
        }
        self.write(at, range);
        self.link(before, at);
        if before != NONE {
            let front = self.read(before);
            if before + front.size == at {
                self.write(before, FreeRange { size: front.size + range.size, next: range.next });
            }
        }
    }

    fn link(&mut self, before: usize, next: usize) {
        if before == NONE {
            self.first = next;
        } else {
            let size = self.read(before).size;
            self.write(before, FreeRange { size, next });
        }
    }

    fn read(&self, at: usize) -> FreeRange {
        // SAFETY: free ranges begin at multiples of a grain in the block, which is aligned to that, and nobody else
        // writes there.
        unsafe { self.block.add(at).cast::<FreeRange>().read() }
    }

    fn write(&mut self, at: usize, range: FreeRange) {
        // SAFETY: as in `read`.
        unsafe { self.block.add(at).cast::<FreeRange>().write(range) }
    }
}

/// Bytes that a request takes of the block.
fn rounded(layout: Layout) -> Option<usize> {
    layout.size().max(1).checked_next_multiple_of(GRAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 4096;

    #[repr(align(64))]
    struct Memory([u8; SIZE]);

    fn with_reserve(test: impl FnOnce(&mut Reserve)) {
        let mut memory = Memory([0; SIZE]);
        // SAFETY: the memory is the heap's own until it is gone, and aligned.
        test(&mut unsafe { Reserve::new(NonNull::from(&mut memory.0).cast(), SIZE) });
    }

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn the_whole_block_can_be_had_and_had_again() {
        with_reserve(|reserve| {
            for _ in 0..2 {
                let all = reserve.allocate(layout(SIZE, 1)).unwrap();
                assert_eq!(reserve.used(), SIZE);
                assert!(reserve.contains(all.as_ptr()));
                assert!(reserve.allocate(layout(1, 1)).is_none());
                // SAFETY: handed out just now.
                unsafe { reserve.free(all, layout(SIZE, 1)) };
                assert_eq!(reserve.used(), 0);
            }
        });
    }

    #[test]
    fn too_much_is_refused() {
        with_reserve(|reserve| {
            assert!(reserve.allocate(layout(SIZE + 1, 1)).is_none());
            assert!(reserve.allocate(layout(isize::MAX as usize, 1)).is_none());
            assert!(!reserve.contains(std::ptr::null()));
            assert_eq!(reserve.used(), 0);
        });
    }

    /// Many sizes and alignments, given back in another order: nothing overlaps, nothing changes, and in the end all is
    /// one free range again.
    #[test]
    fn ranges_are_whole_and_merge() {
        with_reserve(|reserve| {
            let mut state = 1u32;
            let mut random = |below: u32| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) % below
            };
            let mut held: Vec<(NonNull<u8>, Layout, u8)> = Vec::new();
            for round in 0..3000u32 {
                if random(2) == 0 || held.is_empty() {
                    let wanted = layout(1 + random(300) as usize, 1 << random(7));
                    if let Some(place) = reserve.allocate(wanted) {
                        assert!((place.as_ptr() as usize).is_multiple_of(wanted.align()));
                        // SAFETY: handed out with this size.
                        unsafe { place.write_bytes(round as u8, wanted.size()) };
                        held.push((place, wanted, round as u8));
                    }
                } else {
                    let (place, layout, mark) = held.swap_remove(random(held.len() as u32) as usize);
                    for at in 0..layout.size() {
                        // SAFETY: as above, and not taken back yet.
                        assert_eq!(unsafe { place.add(at).read() }, mark);
                    }
                    // SAFETY: as above.
                    unsafe { reserve.free(place, layout) };
                }
            }
            for (place, layout, _) in held {
                // SAFETY: as above.
                unsafe { reserve.free(place, layout) };
            }
            assert_eq!(reserve.used(), 0);
            assert!(reserve.allocate(layout(SIZE, 64)).is_some());
        });
    }
}
