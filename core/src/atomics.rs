//! The atomics of the crate: those of `std`. The models of `core/loom` put others in their place, which try what other
//! processes may see.

#[cfg(modelled)]
#[path = "../loom/src/atomics.rs"]
mod instead;

#[cfg(modelled)]
pub(crate) use instead::*;
#[cfg(not(modelled))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence},
    thread::yield_now,
};
