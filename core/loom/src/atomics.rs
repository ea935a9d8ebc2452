//! Atomics that loom follows, as large as those of `std`, and valid when zeroed: the block of the cache is memory that
//! was zeroed. An atomic is known by its address. Loom's own of it is made before the threads of an execution begin:
//! see [`Run`].
//!
//! Each call knows where it stands in the source. One place can be made weaker: a fence that does nothing, a load or
//! store that is relaxed. So the models can ask of each place whether it is needed.

use loom::sync::atomic as followed;
use std::cell::{RefCell, UnsafeCell};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::rc::Rc;

pub use loom::hint::spin_loop;
pub use loom::thread::yield_now;
pub use std::sync::atomic::Ordering;

/// A place in the source, and what is asked for there.
pub type Place = (String, u32);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Width {
    U64,
    I64,
    U32,
}

enum Followed {
    U64(followed::AtomicU64),
    I64(followed::AtomicI64),
    U32(followed::AtomicU32),
}

/// What one search through all executions has come to know, and what loom follows in the present one.
#[derive(Default)]
pub struct Run {
    model: &'static str,
    /// The atomics that each model uses, by their addresses. Loom takes it for a race if one is made while threads run
    /// that use it. Each execution makes those of its model, and no others: one model alone uses all slots.
    known: BTreeMap<&'static str, BTreeMap<usize, Width>>,
    /// Those that threads have met for the first time in this execution: it does not count then.
    met: bool,
    do_threads_run: bool,
    now: BTreeMap<usize, Rc<Followed>>,
    weaker: Option<Place>,
    /// All places that ask for an order.
    places: BTreeSet<Place>,
}

thread_local! {
    // Loom runs all threads of an execution on the thread of the test.
    static RUN: RefCell<Run> = RefCell::default();
}

/// Begins a search through the executions of a model, in which this place is weaker.
pub fn begin_search(model: &'static str, weaker: Option<Place>) {
    RUN.with_borrow_mut(|run| *run = Run { model, weaker, known: std::mem::take(&mut run.known), ..Run::default() });
}

/// Begins an execution, with the atomics that are known.
pub fn begin_execution() {
    let known = RUN.with_borrow_mut(|run| {
        run.do_threads_run = false;
        run.met = false;
        run.now.clear();
        run.known.get(run.model).cloned().unwrap_or_default()
    });
    for (address, width) in known {
        make(address, width);
    }
}

/// From here on other threads run.
pub fn begin_threads() {
    RUN.with_borrow_mut(|run| run.do_threads_run = true);
}

/// Has a thread met an atomic that was not known? Then the search begins anew.
pub fn has_met_new() -> bool {
    RUN.with_borrow(|run| run.met)
}

/// The places of the search that ask for an order.
pub fn places() -> BTreeSet<Place> {
    RUN.with_borrow(|run| run.places.clone())
}

fn make(address: usize, width: Width) -> Rc<Followed> {
    // SAFETY: the address is that of an atomic of this width, which nobody writes: values are in the atomics of loom.
    let made = Rc::new(unsafe {
        match width {
            Width::U64 => Followed::U64(followed::AtomicU64::new(*(address as *const u64))),
            Width::I64 => Followed::I64(followed::AtomicI64::new(*(address as *const i64))),
            Width::U32 => Followed::U32(followed::AtomicU32::new(*(address as *const u32))),
        }
    });
    RUN.with_borrow_mut(|run| run.now.insert(address, made.clone()));
    made
}

fn of(address: usize, width: Width) -> Rc<Followed> {
    if let Some(there) = RUN.with_borrow(|run| run.now.get(&address).cloned()) {
        return there;
    }
    let is_late = RUN.with_borrow_mut(|run| {
        run.known.entry(run.model).or_default().insert(address, width);
        run.met |= run.do_threads_run;
        run.do_threads_run
    });
    assert!(!is_late, "an atomic was met for the first time");
    make(address, width)
}

fn ordering(asked: Ordering, location: &Location<'_>) -> Ordering {
    if asked == Ordering::Relaxed {
        return asked;
    }
    let place = (location.file().rsplit('/').next().unwrap_or_default().to_owned(), location.line());
    RUN.with_borrow_mut(|run| {
        let weaker = run.weaker.as_ref() == Some(&place);
        run.places.insert(place);
        if weaker { Ordering::Relaxed } else { asked }
    })
}

/// A fence.
#[track_caller]
pub fn fence(asked: Ordering) {
    let order = ordering(asked, Location::caller());
    if order != Ordering::Relaxed {
        followed::fence(order);
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty, $width:ident) => {
        /// An atomic that loom follows.
        #[derive(Default)]
        #[repr(transparent)]
        pub struct $name(UnsafeCell<$value>);

        // SAFETY: all threads of an execution run on one thread of the system, and the cell is only read.
        unsafe impl Sync for $name {}

        #[allow(dead_code)]
        impl $name {
            pub const fn new(value: $value) -> Self {
                Self(UnsafeCell::new(value))
            }

            #[track_caller]
            fn followed<R>(&self, act: impl FnOnce(&followed::$name) -> R) -> R {
                match &*of(self.0.get().addr(), Width::$width) {
                    Followed::$width(there) => act(there),
                    _ => panic!("one address, two widths"),
                }
            }

            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                let order = ordering(order, Location::caller());
                self.followed(|there| there.load(order))
            }

            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                let order = ordering(order, Location::caller());
                self.followed(|there| there.store(value, order));
            }

            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                let order = ordering(order, Location::caller());
                self.followed(|there| there.swap(value, order))
            }

            #[track_caller]
            pub fn compare_exchange(
                &self,
                from: $value,
                to: $value,
                order: Ordering,
                failed: Ordering,
            ) -> Result<$value, $value> {
                let order = ordering(order, Location::caller());
                let failed = ordering(failed, Location::caller());
                self.followed(|there| there.compare_exchange(from, to, order, failed))
            }

            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                from: $value,
                to: $value,
                order: Ordering,
                failed: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(from, to, order, failed)
            }

            #[track_caller]
            pub fn fetch_update(
                &self,
                order: Ordering,
                failed: Ordering,
                mut next: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut seen = self.load(failed);
                while let Some(to) = next(seen) {
                    match self.compare_exchange(seen, to, order, failed) {
                        Ok(before) => return Ok(before),
                        Err(there) => seen = there,
                    }
                }
                Err(seen)
            }

            pub fn into_inner(self) -> $value {
                self.load(Ordering::SeqCst)
            }

            atomic!(@fetch $value, fetch_add fetch_sub fetch_and fetch_or fetch_max fetch_min);
        }
    };
    (@fetch $value:ty, $($method:ident)*) => {
        $(
            #[track_caller]
            pub fn $method(&self, value: $value, order: Ordering) -> $value {
                if std::thread::panicking() {
                    // The execution has failed; a second panic would end all of it.
                    return value;
                }
                let order = ordering(order, Location::caller());
                self.followed(|there| there.$method(value, order))
            }
        )*
    };
}

atomic!(AtomicU64, u64, U64);
atomic!(AtomicI64, i64, I64);
atomic!(AtomicU32, u32, U32);
