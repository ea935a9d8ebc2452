//! The bodies of users' functions in SQL that a check has met: what they mean together, and where their trees lie.

use arrow_cache_core::{Hash128, HashBuffer, Reason};
use pgrx::pg_sys;

use super::body_relations;
use crate::pg::sql_body::{Body, Queries, SqlCall};
use crate::pg::tree::Tree;
use crate::query::extras::MOST_ROW_TYPES;
use crate::query::hashes::TreeHash;

/// Most bodies that are read for one query, and how deeply they may call each other.
const MOST_BODIES: usize = 128;
const DEEPEST: usize = 16;

/// What the bodies of the functions that a query calls were found to mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SqlBodies {
    /// All of it. A plan that carries the finding does not have it, but has it in the hash of its tree.
    pub hash: Hash128,
    /// Some of them are kept as text, so that the same functions may mean something else under another `search_path`, or after a change of any
    /// definition. Or some read relations, and the same is true for another role, too.
    pub by_name: bool,
    /// Some of them read relations, or run queries that may.
    pub read_relations: bool,
    /// Some of them are declared pure: what they read is seen when they run.
    pub are_declared: bool,
}

/// What reading a body came to.
pub(super) enum Read {
    /// It was read.
    Body(Body),
    /// It is not one that is accepted, or not valid now.
    Unreadable,
    /// It is a query that reads something on which answers must not rest.
    Refused(Reason),
}

/// The bodies of functions that a check has met.
pub(super) struct MetBodies {
    /// The secret of the store; `None` where no function of a user is accepted.
    pub(super) seed: Option<u64>,
    /// How many were met.
    met: usize,
    hash: HashBuffer,
    by_name: bool,
    read_relations: bool,
    are_declared: bool,
    /// The relations that bodies read, each once.
    pub(super) relations: Vec<u32>,
    /// A body was met that could not be read.
    unreadable: bool,
    /// The calls around the node that is checked, each as what its body is analysed and checked for.
    pub(super) around: Vec<Vec<u32>>,
    /// The check is inside a function that is IMMUTABLE.
    pub(super) immutable: bool,
    /// The check is inside a function that is VOLATILE. Unless the server puts its body in its place, it takes a new snapshot for each call.
    pub(super) volatile: bool,
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
            met: 0,
            hash: HashBuffer::new(),
            by_name: false,
            read_relations: false,
            are_declared: false,
            relations: Vec::new(),
            unreadable: false,
            around: Vec::new(),
            immutable: false,
            volatile: false,
            body: None,
            memory: std::ptr::null_mut(),
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
        self.read_relations = true;
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
            read_relations: self.read_relations,
            are_declared: self.are_declared,
        })
    }

    /// Does what was found so far rest on how names are resolved?
    pub(super) fn resolves_names(&self) -> bool {
        self.by_name || self.unreadable
    }

    /// Frees the trees of all bodies. After an error they go with the memory context that was current.
    pub(super) fn free(&mut self) {
        if !self.memory.is_null() {
            // SAFETY: a context of ours, and nothing refers to what is in it any more.
            unsafe { kept!(pg_sys::MemoryContextDelete(std::mem::replace(&mut self.memory, std::ptr::null_mut()))) };
        }
    }

    /// Adds relations that a body reads. False if there are too many.
    fn note_relations(&mut self, relations: &[u32]) -> bool {
        self.by_name |= !relations.is_empty();
        self.read_relations |= !relations.is_empty();
        for relation in relations {
            if !self.relations.contains(relation) {
                self.relations.push(*relation);
            }
        }
        self.relations.len() <= MOST_ROW_TYPES
    }

    /// Reads a body into memory of its own. `may_query`: it may be a query. `may_read`: the query may read relations.
    pub(super) fn read(&mut self, call: &SqlCall<'_, '_>, may_query: bool, may_read: bool) -> Read {
        let mut found = Ok(Vec::new());
        let mut inspect = |query: Tree<'_, pg_sys::Query>| {
            found = body_relations::read_by(query);
            found.as_ref().is_ok_and(|relations| may_read || relations.is_empty())
        };
        // SAFETY: a child of the current context, which is made current for the time of the reading alone.
        let body = unsafe {
            if self.memory.is_null() {
                self.memory = kept!(pg_sys::AllocSetContextCreateInternal(
                    pg_sys::CurrentMemoryContext,
                    c"pg_arrow_cache bodies".as_ptr(),
                    0,
                    pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
                ));
            }
            let caller = pg_sys::MemoryContextSwitchTo(self.memory);
            let body = call.body(may_query.then_some(Queries { may_read, inspect: &mut inspect }));
            pg_sys::MemoryContextSwitchTo(caller);
            body
        };
        self.unreadable |= body.is_none();
        match (body, found) {
            (_, Err(reason)) => Read::Refused(reason),
            (None, _) => Read::Unreadable,
            (Some(_), Ok(relations)) if !self.note_relations(&relations) => Read::Refused(Reason::TooComplex),
            (Some(body), Ok(_)) => Read::Body(body),
        }
    }
}
