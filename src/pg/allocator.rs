//! The allocator of this library: the system's allocator, and behind it a reserve for when the system has no more
//! memory.
//!
//! Rust ends the process when an allocation fails and the code has not provided for that. PostgreSQL restarts when a
//! process ends this way. Therefore there are three rules, which docs/architecture/serving.md explains (*When memory
//! runs out*):
//!
//! * Code whose memory grows with data asks first, through `Room` of `core`, and handles a refusal. It does not use the
//!   reserve.
//! * Code that cannot ask (most of it in other libraries) and needs more than a little runs under a `Headroom` of the
//!   size that it takes at most. The reserve has that much, or a block of that size is obtained first, or the code does
//!   not run.
//! * Everything else is small: strings, boxes, error reports. It may be served from the reserve without asking. Code
//!   that begins something larger asks first whether memory `is_short`.
//!
//! State of this backend, which has one thread; no locks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use arrow_cache_core::reserve::{GRAIN, Reserve};
use arrow_cache_core::{OutOfMemory, room};

use super::backend_local::Local;
use super::error_passing::caught;
use super::server;

/// Bytes of the reserve. They take no memory until they are needed.
const RESERVE: usize = 1024 * 1024;
/// Bytes of it that may be served without having been claimed.
const UNCLAIMED: usize = 384 * 1024;
/// Bytes up to which the reserve also serves code that asks first.
const LITTLE: usize = 8 * 1024;
/// Memory is not short if this many bytes can be had in one piece.
const AMPLE: usize = 256 * 1024;

/// The allocator.
pub struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// A heap, and the next one on the list.
struct Heap {
    reserve: Reserve,
    next: *mut Self,
    /// Its headroom has ended. The heap is removed when the last memory that it has handed out is given back.
    abandoned: bool,
}

#[repr(C, align(64))]
struct Bytes(UnsafeCell<[MaybeUninit<u8>; RESERVE]>);

static BYTES: Local<Bytes> = Local::new(Bytes(UnsafeCell::new([MaybeUninit::uninit(); RESERVE])));
/// The heap over the reserve, made when it is needed.
static OWN: Local<UnsafeCell<MaybeUninit<Heap>>> = Local::new(UnsafeCell::new(MaybeUninit::uninit()));
/// All heaps: those of headrooms, the latest first, and then that of the reserve. Null as long as none is needed.
static HEAPS: Local<Cell<*mut Heap>> = Local::new(Cell::new(std::ptr::null_mut()));
/// Bytes of the reserve that headrooms have claimed.
static CLAIMED: Local<Cell<usize>> = Local::new(Cell::new(0));

// SAFETY: memory comes from the system's allocator, or from a heap that nobody else uses. Each piece goes back to where
// it came from, which its address tells. Nothing here unwinds, and only the system's allocator allocates.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `GlobalAlloc` is given layouts that are not empty.
        let place = unsafe { System.alloc(layout) };
        if place.is_null() { from_heaps(layout) } else { place }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `GlobalAlloc` is given layouts that are not empty; what a heap hands out has the size of the layout.
        unsafe {
            let place = System.alloc_zeroed(layout);
            if !place.is_null() {
                return place;
            }
            let place = from_heaps(layout);
            if !place.is_null() {
                place.write_bytes(0, layout.size());
            }
            place
        }
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: `GlobalAlloc` gets back what it has handed out, with its layout; what no heap has handed out is the
        // system's.
        unsafe {
            let heap = owner(place);
            if heap.is_null() { System.dealloc(place, layout) } else { give_back(heap, place, layout) }
        }
    }

    #[inline]
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `GlobalAlloc` gets back what it has handed out, with its layout, and a size that is valid for the
        // alignment; what no heap has handed out is the system's. The two places do not overlap.
        unsafe {
            if owner(place).is_null() {
                let moved = System.realloc(place, layout, size);
                if !moved.is_null() {
                    return moved;
                }
                if size <= layout.size() {
                    // Whoever gives a part back does not expect that there is no memory. The system gives back all of a
                    // place, whatever its size.
                    return place;
                }
            }
            let other = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !other.is_null() {
                other.copy_from_nonoverlapping(place, size.min(layout.size()));
                self.dealloc(place, layout);
            }
            other
        }
    }
}

/// Gives memory back to the heap that has handed it out.
///
/// # Safety
/// As `GlobalAlloc::dealloc`; `heap` must be on the list.
#[cold]
#[inline(never)]
unsafe fn give_back(heap: *mut Heap, place: *mut u8, layout: Layout) {
    // SAFETY: the caller's promise; memory that was handed out is not null.
    unsafe { (*heap).reserve.free(NonNull::new_unchecked(place), layout) };
    tidy();
}

/// Memory from the heaps; null if they have none, or if the code asks first and can handle a refusal.
#[cold]
fn from_heaps(layout: Layout) -> *mut u8 {
    ready();
    let mut heap = HEAPS.get();
    if room::is_asking() {
        // A small piece is granted, rather than an error raised, as long as enough is left for code that cannot ask.
        if layout.size() > LITTLE || own_used() > UNCLAIMED / 4 {
            rest();
            return std::ptr::null_mut();
        }
        heap = OWN.get().cast();
    }
    while !heap.is_null() {
        // SAFETY: heaps are on the list as long as they live, and one thread uses them.
        let Heap { reserve, next, .. } = unsafe { &mut *heap };
        if let Some(place) = reserve.allocate(layout) {
            return place.as_ptr();
        }
        heap = *next;
    }
    std::ptr::null_mut()
}

/// Makes the heap over the reserve, if there is none.
fn ready() {
    if HEAPS.get().is_null() {
        // SAFETY: nobody else uses these bytes, which are aligned. A heap that had them before was unused when it was
        // forgotten.
        unsafe {
            let bytes = NonNull::new_unchecked(BYTES.0.get().cast());
            let heap = Heap { reserve: Reserve::new(bytes, RESERVE), next: std::ptr::null_mut(), abandoned: false };
            HEAPS.set((*OWN.get()).write(heap));
        }
    }
}

/// The heap that has handed this memory out, null if none has.
#[inline]
fn owner(place: *mut u8) -> *mut Heap {
    if HEAPS.get().is_null() { std::ptr::null_mut() } else { owner_on_list(place) }
}

#[cold]
fn owner_on_list(place: *mut u8) -> *mut Heap {
    let mut heap = HEAPS.get();
    // SAFETY: heaps are on the list as long as they live.
    while let Some(Heap { reserve, next, .. }) = unsafe { heap.as_ref() } {
        if reserve.contains(place) {
            break;
        }
        heap = *next;
    }
    heap
}

/// Removes the heaps that are not needed any more, when memory was given back or a headroom has ended.
#[cold]
fn tidy() {
    remove_abandoned();
    rest();
}

/// Forgets the heap over the reserve, if it is the only heap and unused. Then memory costs only what the system's
/// allocator takes.
fn rest() {
    // SAFETY: heaps are on the list as long as they live.
    if let Some(Heap { reserve, next, .. }) = unsafe { HEAPS.get().as_ref() }
        && next.is_null()
        && reserve.used() == 0
    {
        HEAPS.set(std::ptr::null_mut());
    }
}

/// The layout of the block of a headroom: the heap, and behind it the memory that the heap hands out.
fn block_layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(size_of::<Heap>().next_multiple_of(GRAIN).checked_add(bytes)?, 64).ok()
}

/// Takes abandoned heaps that are unused off the list and frees their blocks.
fn remove_abandoned() {
    let mut before: *mut Heap = std::ptr::null_mut();
    let mut heap = HEAPS.get();
    while !heap.is_null() {
        // SAFETY: heaps are on the list as long as they live. Only heaps with a block of their own are abandoned; such
        // a block was allocated with this layout, and nobody has memory of it.
        unsafe {
            let next = (*heap).next;
            if !(*heap).abandoned || (*heap).reserve.used() > 0 {
                before = heap;
            } else {
                if before.is_null() {
                    HEAPS.set(next)
                } else {
                    (*before).next = next
                }
                if let Some(layout) = block_layout((*heap).reserve.size()) {
                    System.dealloc(heap.cast(), layout);
                }
            }
            heap = next;
        }
    }
}

/// Bytes of stack that exist from the start. A stack grows by itself, but when memory is short it cannot, and the
/// process ends.
const STACK: usize = 1024 * 1024;
/// Bytes of it that the functions on their way down to `release_stack` may be using.
const STACK_IN_USE: usize = 16 * 1024;

/// Obtains, in the postmaster, what its children inherit and could not obtain when memory is short: their stack, and
/// the thread-local variables of a panic (if there is no memory for those, the C library ends the process).
pub fn prepare() {
    use_stack(STACK);
    release_stack();
    // The first panic creates all of these variables, including those of pgrx.
    let _ = caught(|| panic!("the first panic"));
}

#[inline(never)]
fn use_stack(left: usize) {
    const FRAME: usize = 16 * 1024;
    let mut frame = [0u8; FRAME];
    black_box(&mut frame);
    if let Some(left) = left.checked_sub(FRAME) {
        use_stack(left);
    }
    black_box(&mut frame);
}

/// Gives back the memory that `use_stack` has used, but not the addresses: each new process would have to copy the
/// postmaster's pages.
fn release_stack() {
    const PAGE: usize = 4096;
    let here = 0u8;
    let end = ((&raw const here) as usize - STACK_IN_USE) / PAGE * PAGE;
    let bytes = (STACK - 2 * STACK_IN_USE) / PAGE * PAGE;
    // SAFETY: these pages lie below all frames, where `use_stack` has been, and a signal handler leaves nothing there.
    // Their advice can be refused.
    unsafe { server::madvise((end - bytes) as *mut c_void, bytes, server::MADV_DONTNEED) };
}

/// Returns true if memory is so short that nothing larger should be begun. While there is enough, this reads one
/// variable.
#[inline]
pub fn is_short() -> bool {
    !HEAPS.get().is_null() && is_short_now()
}

#[cold]
fn is_short_now() -> bool {
    let used = own_used();
    if used == 0 {
        return false;
    }
    if used > UNCLAIMED / 2 {
        return true;
    }
    // The little that is in use may stay for long, while the system may have memory again.
    // SAFETY: the layout is not empty, and the memory is given back.
    unsafe {
        let layout = Layout::from_size_align_unchecked(AMPLE, GRAIN);
        let place = System.alloc(layout);
        if place.is_null() {
            return true;
        }
        System.dealloc(place, layout);
    }
    false
}

/// Bytes of the reserve in use.
fn own_used() -> usize {
    if HEAPS.get().is_null() {
        return 0;
    }
    // SAFETY: `ready` makes this heap before any heap is on the list.
    unsafe { (*OWN.get()).assume_init_ref().reserve.used() }
}

/// Memory for code that cannot ask first, as long as the value lives.
pub struct Headroom {
    claimed: usize,
    /// Null if the reserve has enough.
    block: *mut Heap,
}

/// Obtains memory for code that takes at most this many bytes at any one time, without asking first.
///
/// # Errors
/// There is not enough memory.
pub fn headroom(bytes: usize) -> Result<Headroom, OutOfMemory> {
    if is_short() {
        return Err(OutOfMemory);
    }
    if CLAIMED.get() + bytes <= RESERVE - UNCLAIMED {
        CLAIMED.set(CLAIMED.get() + bytes);
        return Ok(Headroom { claimed: bytes, block: std::ptr::null_mut() });
    }
    let bytes = bytes.next_multiple_of(GRAIN);
    let layout = block_layout(bytes).ok_or(OutOfMemory)?;
    ready();
    // SAFETY: the layout is not empty. The heap is the first part of the block; the rest, which is aligned, is its
    // memory.
    unsafe {
        let block = System.alloc(layout);
        if block.is_null() {
            return Err(OutOfMemory);
        }
        let heap: *mut Heap = block.cast();
        let rest = NonNull::new_unchecked(block.add(layout.size() - bytes));
        heap.write(Heap { reserve: Reserve::new(rest, bytes), next: HEAPS.get(), abandoned: false });
        HEAPS.set(heap);
        Ok(Headroom { claimed: 0, block: heap })
    }
}

impl Drop for Headroom {
    fn drop(&mut self) {
        CLAIMED.set(CLAIMED.get() - self.claimed);
        if !self.block.is_null() {
            // SAFETY: the heap is on the list since `headroom` made it.
            unsafe { (*self.block).abandoned = true };
            tidy();
        }
    }
}
