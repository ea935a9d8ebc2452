//! Runs a model through all its executions.

use crate::atomics::{self, Place};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Switches between threads that are tried in one execution, beyond those at which a thread waits or ends. Faults of
/// memory order show with one or two.
const PREEMPTIONS: usize = 2;

pub struct Model {
    pub name: &'static str,
    /// One execution. Its processes are those of [`both`].
    pub body: fn(),
}

pub struct Ran {
    pub executions: usize,
    pub failure: Option<String>,
    /// The places that ask for an order.
    pub places: BTreeSet<Place>,
}

impl Ran {
    /// Has an execution failed? One that spins longer than loom follows it shows nothing about orders: a store may be
    /// late for ever there.
    pub fn is_wrong(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| !failure.contains("exceeded maximum number of branches"))
    }
}

/// Tries all executions, until one fails.
pub fn run(model: &Model, weaker: Option<Place>) -> Ran {
    let hook = take_hook();
    set_hook(Box::new(|_| ()));
    let ran = loop {
        atomics::begin_search(model.name, weaker.clone());
        let executions = Arc::new(AtomicUsize::new(0));
        let (counted, body) = (executions.clone(), model.body);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(PREEMPTIONS);
        builder.max_branches = 20_000;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            builder.check(move || {
                counted.fetch_add(1, Relaxed);
                atomics::begin_execution();
                body();
            });
        }));
        if atomics::has_met_new() {
            continue;
        }
        let failure = outcome.err().map(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
        });
        break Ran { executions: executions.load(Relaxed), failure, places: atomics::places() };
    };
    set_hook(hook);
    ran
}

/// Two processes at once.
pub fn both<A: 'static, B: 'static>(one: impl FnOnce() -> A + 'static, other: impl FnOnce() -> B + 'static) -> (A, B) {
    atomics::begin_threads();
    let (one, other) = (loom::thread::spawn(one), loom::thread::spawn(other));
    (one.join().unwrap(), other.join().unwrap())
}

/// Zeroed memory for as long as the test runs, at the same address in all executions.
pub fn zeroed<T: 'static>() -> &'static T {
    thread_local! {
        static MADE: RefCell<HashMap<&'static str, usize>> = RefCell::default();
    }
    let address = MADE.with_borrow_mut(|made| {
        *made.entry(std::any::type_name::<T>()).or_insert_with(|| {
            // SAFETY: no type here is empty.
            unsafe { std::alloc::alloc_zeroed(std::alloc::Layout::new::<T>()) }.addr()
        })
    });
    // SAFETY: zeroed memory is valid for the types of the models, which hold atomics alone; it is never given back.
    unsafe { &*std::ptr::with_exposed_provenance::<T>(address) }
}
