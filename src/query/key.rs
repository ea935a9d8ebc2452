//! The key of a question: everything its answer can depend on besides the data, in 128 bits. The normalized text goes with it, to be
//! compared on a match, since equal hashes do not prove equal texts.

use std::cell::Cell;
use std::rc::Rc;

use arrow_cache_core::{CacheKey, Hash128, HashBuffer, OutOfMemory, Reason};

use super::clock::{self, Clock, Times};
use super::hashes::{EnvironmentHash, TreeHash};
use super::known_texts;
use super::parameters;
use super::statement_text::{self, Text};
use crate::pg::allocator::headroom;
use crate::pg::backend_local::Local;

/// What a statement asks, apart from its text and the values of its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// What name resolution made of its text (`identity`).
    pub tree: TreeHash,
    /// The number of its plan, if that was made under other settings, or as another role, so that it shares answers with
    /// nobody: it keeps what the planner computed by them, and the functions that it inlined, which that role may
    /// execute.
    pub plan_made_otherwise: Option<u64>,
    /// The settings it runs under (`environment::hash`).
    pub environment: EnvironmentHash,
}

static BUFFER: Local<Cell<HashBuffer>> = Local::new(Cell::new(HashBuffer::new()));
/// What is kept of it at most, in bytes.
const KEPT: usize = 64 * 1024;

/// A normalized text, and its hash under a secret.
#[derive(Clone, Debug)]
pub struct HashedText {
    /// The text.
    pub bytes: Rc<[u8]>,
    /// Its hash.
    hash: Hash128,
}

static NORMALIZED: Local<Cell<Vec<u8>>> = Local::new(Cell::new(Vec::new()));

impl HashedText {
    /// Normalizes a text, unless that is remembered. The secret is the same in all calls of a backend.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn of(text: Text, seed: u64) -> Result<Self, OutOfMemory> {
        let raw = statement_text::raw(&text);
        if let Some((bytes, hash)) = known_texts::normalized(raw) {
            return Ok(Self { bytes, hash });
        }
        let mut normalized = NORMALIZED.take();
        statement_text::normalized(text, &mut normalized)?;
        let mut key = BUFFER.take();
        key.clear();
        key.u64(seed);
        key.part(&normalized);
        if !key.is_complete() {
            return Err(OutOfMemory);
        }
        // A count of users cannot ask for its memory.
        let _headroom = if normalized.len() > KEPT { Some(headroom(normalized.len() + 64)?) } else { None };
        let hashed = Self { bytes: Rc::from(normalized.as_slice()), hash: key.finish() };
        if normalized.len() <= KEPT {
            NORMALIZED.set(normalized);
            BUFFER.set(key);
        }
        known_texts::remember(raw, &hashed.bytes, hashed.hash);
        Ok(hashed)
    }
}

/// A key, and what the clock has added to it.
#[derive(Clone, Copy)]
pub struct Keyed {
    /// The key.
    pub key: CacheKey,
    /// The values of the clock.
    pub times: Times,
}

/// Computes the key of a statement under a secret. Its parameters are those that the clock expressions are computed with.
///
/// # Errors
/// The reason to bypass, when the parameters or the clock cannot be part of a key, or there is no memory for them.
pub fn of(asked: &Asked, text: &HashedText, clock: &Clock<'_>, seed: u64) -> Result<Keyed, Reason> {
    let mut key = BUFFER.take();
    key.clear();
    key.u64(seed);
    key.hash(text.hash);
    key.hash(asked.tree.0);
    key.u8(u8::from(asked.plan_made_otherwise.is_some()));
    key.u64(asked.plan_made_otherwise.unwrap_or(0));
    key.hash(asked.environment.0);
    parameters::add_parameters(&mut key, clock.params)?;
    let times = clock::times(clock, seed)?;
    key.hash(times.hash);
    let hash = key.is_complete().then(|| CacheKey(key.finish())).ok_or(Reason::OutOfMemory);
    if key.len() <= KEPT {
        BUFFER.set(key);
    }
    hash.map(|key| Keyed { key, times })
}
