//! The bodies of users' functions in SQL that a check has met, and what they mean together.

use arrow_cache_core::{Hash128, HashBuffer};
use pgrx::pg_sys;

use crate::pg::sql_body::{Body, SqlCall};
use crate::pg::tree::Tree;
use crate::query::hashes::TreeHash;

/// Most bodies that are read for one query, and how deeply they may call each other.
const MOST_BODIES: usize = 128;
const DEEPEST: usize = 16;

/// What the bodies of the functions that a query calls were found to mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SqlBodies {
    /// All of it. A plan that carries the finding does not have it, but has it in the hash of its tree.
    pub hash: Hash128,
    /// Some of them are kept as text, or declared pure, so that the same functions may mean something else under
    /// another `search_path`, or after a change of any definition.
    pub by_name: bool,
    /// Some of them are declared pure: what they read is seen when they run.
    pub are_declared: bool,
}

/// The bodies of functions that a check has met.
pub(super) struct MetBodies {
    /// The secret of the store; `None` where no function of a user is accepted.
    pub(super) seed: Option<u64>,
    /// How many were met.
    met: usize,
    hash: HashBuffer,
    by_name: bool,
    are_declared: bool,
    /// A body was met that could not be read.
    unreadable: bool,
    /// The calls around the node that is checked, each as what its body is analysed and checked for.
    pub(super) around: Vec<Vec<u32>>,
    /// The check is inside a function that is IMMUTABLE.
    pub(super) immutable: bool,
    /// The body that the check is in, and its function.
    pub(super) body: Option<(pg_sys::Oid, Body)>,
}

impl MetBodies {
    /// None yet.
    pub(super) fn new(seed: Option<u64>) -> Self {
        Self {
            seed,
            met: 0,
            hash: HashBuffer::new(),
            by_name: false,
            are_declared: false,
            unreadable: false,
            around: Vec::new(),
            immutable: false,
            body: None,
        }
    }

    /// May one more be read?
    pub(super) fn has_room(&self) -> bool {
        self.met < MOST_BODIES && self.around.len() < DEEPEST
    }

    /// Adds what the body of a function means that is called.
    pub(super) fn add(&mut self, call: Tree<'_, pg_sys::FuncExpr>, body: Body, meaning: TreeHash) {
        self.add_call(call);
        self.hash.hash(meaning.0);
        self.by_name |= body.by_name;
    }

    /// Adds a function that is declared pure. What it means is that of all definitions: the names in its queries are resolved when it runs.
    pub(super) fn add_declared(&mut self, call: Tree<'_, pg_sys::FuncExpr>) {
        self.add_call(call);
        self.by_name = true;
        self.are_declared = true;
    }

    fn add_call(&mut self, call: Tree<'_, pg_sys::FuncExpr>) {
        self.met += 1;
        self.hash.words([call.funcid, call.inputcollid, call.funcresulttype].map(pg_sys::Oid::to_u32));
    }

    /// What they mean together; `None` if there were none.
    pub(super) fn meaning(&self) -> Option<SqlBodies> {
        (self.met > 0).then(|| SqlBodies {
            hash: self.hash.finish(),
            by_name: self.by_name,
            are_declared: self.are_declared,
        })
    }

    /// Does what was found so far rest on how names are resolved?
    pub(super) fn resolves_names(&self) -> bool {
        self.by_name || self.unreadable
    }

    /// Reads a body; `None` if that cannot be done now.
    pub(super) fn read(&mut self, call: &SqlCall<'_, '_>) -> Option<Body> {
        let body = call.body();
        self.unreadable |= body.is_none();
        body
    }
}
