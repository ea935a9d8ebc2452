//! The bodies of users' functions in SQL that a check has met: what they mean together, and where their trees lie.

use std::collections::HashSet;

use arrow_cache_core::{Hash128, HashBuffer};
use pgrx::pg_sys;

use crate::pg::sql_body::{Body, SqlCall};

/// Most bodies that are read for one query, and how deeply they may call each other.
const MOST_BODIES: usize = 128;
const DEEPEST: u32 = 16;

/// What the bodies of the functions that a query calls were found to mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SqlBodies {
    /// All of it. A plan that carries the finding does not have it, but has it in the hash of its tree.
    pub hash: Hash128,
    /// Some of them are kept as text, so that the same functions may mean something else under another `search_path`, or after a change of any
    /// definition.
    pub by_name: bool,
}

/// A function as a query calls it: what its body is analysed for.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Called {
    pub(super) function: u32,
    pub(super) collation: u32,
    pub(super) result: u32,
    pub(super) arguments: Vec<u32>,
    /// Inside a function that is IMMUTABLE.
    pub(super) immutable: bool,
}

/// The bodies of functions that a check has met.
pub(super) struct MetBodies {
    /// The secret of the store; `None` where no function of a user is accepted.
    pub(super) seed: Option<u64>,
    met: HashSet<Called>,
    hash: HashBuffer,
    by_name: bool,
    /// A body was met that could not be read.
    unreadable: bool,
    pub(super) depth: u32,
    /// The check is inside a function that is IMMUTABLE.
    pub(super) immutable: bool,
    /// The body that the check is in, and its function.
    pub(super) body: Option<(pg_sys::Oid, Body)>,
    /// Where bodies are read.
    memory: pg_sys::MemoryContext,
}

impl MetBodies {
    /// None yet.
    pub(super) fn new(seed: Option<u64>) -> Self {
        Self {
            seed,
            met: HashSet::new(),
            hash: HashBuffer::new(),
            by_name: false,
            unreadable: false,
            depth: 0,
            immutable: false,
            body: None,
            memory: std::ptr::null_mut(),
        }
    }

    /// Was the function met, called in this way?
    pub(super) fn knows(&self, called: &Called) -> bool {
        self.met.contains(called)
    }

    /// May one more be read?
    pub(super) fn has_room(&self) -> bool {
        self.met.len() < MOST_BODIES && self.depth < DEEPEST
    }

    /// Adds what a body means.
    pub(super) fn add(&mut self, called: Called, body: Body, meaning: Hash128) {
        let Called { function, collation, result, .. } = called;
        self.hash.words([function, collation, result, called.arguments.len() as u32]);
        called.arguments.iter().for_each(|argument| self.hash.u32(*argument));
        self.hash.hash(meaning);
        self.by_name |= body.by_name;
        self.met.insert(called);
    }

    /// What they mean together; `None` if there were none.
    pub(super) fn meaning(&self) -> Option<SqlBodies> {
        (!self.met.is_empty()).then(|| SqlBodies { hash: self.hash.finish(), by_name: self.by_name })
    }

    /// Does what was found so far rest on how names are resolved?
    pub(super) fn resolves_names(&self) -> bool {
        self.by_name || self.unreadable
    }

    /// Frees the trees of all bodies. After an error they go with the memory context that was current.
    pub(super) fn free(&mut self) {
        if !self.memory.is_null() {
            // SAFETY: a context of ours, and nothing refers to what is in it any more.
            unsafe { pg_sys::MemoryContextDelete(std::mem::replace(&mut self.memory, std::ptr::null_mut())) };
        }
    }

    /// Reads a body into memory of its own.
    pub(super) fn read(&mut self, call: &SqlCall<'_, '_>) -> Option<Body> {
        // SAFETY: a child of the current context, which is made current for the time of the reading alone.
        unsafe {
            if self.memory.is_null() {
                self.memory = pg_sys::AllocSetContextCreateInternal(
                    pg_sys::CurrentMemoryContext,
                    c"pg_arrow_cache bodies".as_ptr(),
                    0,
                    pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
                );
            }
            let caller = pg_sys::MemoryContextSwitchTo(self.memory);
            let body = call.body();
            pg_sys::MemoryContextSwitchTo(caller);
            self.unreadable |= body.is_none();
            body
        }
    }
}
