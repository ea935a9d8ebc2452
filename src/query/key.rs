//! The key of a question: everything its answer can depend on besides the data, in 128 bits, which are taken for the
//! question itself. They are seeded with a secret of the server.

use std::cell::Cell;

use arrow_cache_core::{CacheKey, HashBuffer, Reason};

use super::clock::{self, Clock, Cuts};
use super::hashes::{EnvironmentHash, TreeHash};
use super::parameters;
use crate::pg::backend_local::Local;

/// What a statement asks, apart from the values of its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The question itself (`identity`).
    pub tree: TreeHash,
    /// The number of its plan, if that was made under other settings, or as another role, so that it shares answers
    /// with nobody: it keeps what the planner computed by them, and the functions that it inlined, which that role may
    /// execute.
    pub plan_made_otherwise: Option<u64>,
    /// The settings it runs under (`environment::hash`).
    pub environment: EnvironmentHash,
}

static BUFFER: Local<Cell<HashBuffer>> = Local::new(Cell::new(HashBuffer::new()));
/// What is kept of it at most, in bytes.
const KEPT: usize = 64 * 1024;

/// A key, and what the clock has added to it.
#[derive(Clone, Copy)]
pub struct Keyed {
    /// The key.
    pub key: CacheKey,
    /// The times that are not in it.
    pub cuts: Cuts,
}

/// Computes the key of a statement under a secret. Its parameters are those that the clock expressions are computed
/// with.
///
/// # Errors
/// The reason to bypass, when the parameters or the clock cannot be part of a key, or there is no memory for them.
pub fn of(asked: &Asked, clock: &Clock<'_>, seed: u64) -> Result<Keyed, Reason> {
    let mut key = BUFFER.take();
    key.clear();
    key.seed(seed);
    key.hash(asked.tree.0);
    key.u8(u8::from(asked.plan_made_otherwise.is_some()));
    key.u64(asked.plan_made_otherwise.unwrap_or(0));
    key.hash(asked.environment.0);
    parameters::add_parameters(&mut key, clock.params)?;
    let cuts = clock::times(clock, &mut key)?;
    let hash = key.is_complete().then(|| CacheKey(key.finish())).ok_or(Reason::OutOfMemory);
    if key.len() <= KEPT {
        BUFFER.set(key);
    }
    hash.map(|key| Keyed { key, cuts })
}
