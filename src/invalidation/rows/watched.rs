//! The nodes under way that change rows of tracked relations, and whether the watching routine stands in the
//! description of such a relation. State of this backend; no lock.
//!
//! A node may change rows of many relations: leaves, children. One of these is watched when the first row for it comes.
//!
//! The routine stands from when a row has come out of the node below, to be changed, until the change is made, the next
//! row is asked for, or the statement fails. `heap_getnext` refuses to go on while it stands, so any other scan of the
//! relation takes it back as it begins: then what is changed before the next row is not noted.
//!
//! A relation is open, and its description in its place, as long as a statement runs that changes it. Nobody else looks
//! at the description meanwhile: it belongs to this process.

use std::cell::RefCell;

use arrow_cache_core::{OutOfMemory, RoomyVec};
use pgrx::pg_sys;

use super::contents::Columns;
use crate::pg::backend_local::Local;
use crate::pg::next_row::{self, NextRow};
use crate::pg::server;

/// A node that changes rows of relations of which some may be tracked.
#[derive(Clone, Copy)]
pub struct Node {
    /// The state of its query.
    pub query: *const pg_sys::EState,
    /// The node itself.
    pub state: *mut pg_sys::ModifyTableState,
    /// The node below, which gives it the rows.
    pub below: *mut pg_sys::PlanState,
    /// What the node below does by itself.
    pub next_row: NextRow,
    /// It changes rows of one relation only, which it has named.
    pub is_alone: bool,
    /// So many of its rows were not to be noted.
    pub in_vain: u32,
}

/// A tracked relation whose rows a node changes.
#[derive(Clone, Copy)]
pub struct Watched {
    /// The state of its query.
    pub query: *const pg_sys::EState,
    /// The node.
    pub node: *mut pg_sys::ModifyTableState,
    /// The relation, as the executor knows it.
    pub target: *mut pg_sys::ResultRelInfo,
    pub relation: pg_sys::Relation,
    /// The slot in which a scan of the statement has the row that is to be changed; null if there is none.
    pub read: *mut pg_sys::TupleTableSlot,
    /// Where changes of the relation are noted.
    pub place: usize,
    /// What is noted, as this statement finds it.
    pub columns: Columns,
    /// A row is to be changed, and the routine stands for that.
    pub stands: bool,
}

impl Watched {
    fn is_for(&self, relation: pg_sys::Relation) -> bool {
        self.stands && std::ptr::eq(self.relation, relation)
    }
}

/// What is watched. The innermost statement comes last.
struct All {
    nodes: Vec<Node>,
    relations: Vec<Watched>,
}

/// Nodes, and relations, that the lists keep memory for when their transaction ends.
const KEPT: usize = 16;
/// So many rows of a node that need not be noted show that it is not worth asking for each.
const MOST_IN_VAIN: u32 = 100;

static WATCHED: Local<RefCell<All>> = Local::new(RefCell::new(All { nodes: Vec::new(), relations: Vec::new() }));

fn relations<T>(look: impl FnOnce(&mut Vec<Watched>) -> T) -> T {
    WATCHED.with_borrow_mut(|all| look(&mut all.relations))
}

/// Watches one more node.
///
/// # Errors
/// There is no memory.
pub fn add_node(node: Node) -> Result<(), OutOfMemory> {
    WATCHED.with_borrow_mut(|all| all.nodes.add(node))
}

/// Watches one more relation, whose rows a watched node changes.
///
/// # Errors
/// There is no memory.
pub fn add(watched: Watched) -> Result<(), OutOfMemory> {
    relations(|all| all.add(watched))
}

/// The watched node above this one.
fn node_above(below: *mut pg_sys::PlanState) -> Option<Node> {
    WATCHED.with_borrow(|all| all.nodes.iter().rfind(|node| node.below == below).copied())
}

/// The heap's own routine.
pub fn heap() -> &'static pg_sys::TableAmRoutine {
    // SAFETY: the address of a constant.
    unsafe { &*server::GetHeapamTableAmRoutine() }
}

/// Takes the routine back for one relation of a node.
///
/// # Safety
/// The query of the node must be under way, or have failed and not let its relations go yet.
unsafe fn take_back(all: &mut [Watched], place: usize) {
    if std::mem::replace(&mut all[place].stands, false) {
        let relation = all[place].relation;
        if !all.iter().any(|other| other.stands && std::ptr::eq(other.relation, relation)) {
            // SAFETY: the caller's promise: the relation is open.
            unsafe { (*relation).rd_tableam = heap() };
        }
    }
}

/// Takes the routine back for what `is_one` chooses.
///
/// # Safety
/// As `take_back`.
unsafe fn take_back_of(all: &mut [Watched], is_one: impl Fn(&Watched) -> bool) {
    for place in 0..all.len() {
        if all[place].stands && is_one(&all[place]) {
            // SAFETY: the caller's promise.
            unsafe { take_back(all, place) };
        }
    }
}

/// The node above this one is about to get its next row: the routine does not stand for it any more. Returns that node,
/// and what the one below does for the row; `None` if it is not watched.
///
/// # Safety
/// The query of the node must be under way.
pub unsafe fn before_row(below: *mut pg_sys::PlanState) -> Option<(*mut pg_sys::ModifyTableState, NextRow)> {
    WATCHED.with_borrow_mut(|all| {
        let node = all.nodes.iter().rfind(|node| node.below == below)?;
        // SAFETY: the caller's promise.
        unsafe { take_back_of(&mut all.relations, |watched| watched.node == node.state) };
        Some((node.state, node.next_row))
    })
}

/// A node is about to change a row of a relation: puts `routine` in the description of that, in the place of the
/// heap's. Returns false if the relation is not watched for the node.
///
/// # Safety
/// The query of the node must be under way.
pub unsafe fn stand_for(
    node: *mut pg_sys::ModifyTableState,
    target: *mut pg_sys::ResultRelInfo,
    routine: &'static pg_sys::TableAmRoutine,
) -> bool {
    relations(|all| {
        let is_it = |watched: &&mut Watched| watched.node == node && watched.target == target;
        let Some(watched) = all.iter_mut().rfind(is_it) else { return false };
        // SAFETY: the caller's promise: the relation is open.
        unsafe {
            let place = &raw mut (*watched.relation).rd_tableam;
            if std::ptr::eq(*place, heap()) {
                *place = routine;
            }
            watched.stands = std::ptr::eq(*place, routine);
        }
        true
    })
}

/// A row of this node is not to be noted. After many of these the node is watched no more.
///
/// # Safety
/// As `let_go`.
pub unsafe fn count_in_vain(below: *mut pg_sys::PlanState) {
    let is_enough = WATCHED.with_borrow_mut(|all| {
        let node = all.nodes.iter_mut().rfind(|node| node.below == below);
        node.is_some_and(|node| {
            node.in_vain += 1;
            node.is_alone || node.in_vain >= MOST_IN_VAIN
        })
    });
    if is_enough {
        // SAFETY: the caller's promise.
        unsafe { let_go(below) };
    }
}

/// No more changes of a node are noted: the node below does what it does by itself.
///
/// # Safety
/// The query of the node must be under way.
unsafe fn let_go(below: *mut pg_sys::PlanState) {
    let Some(node) = node_above(below) else { return };
    // SAFETY: the caller's promise.
    unsafe { next_row::take_back(below, node.next_row) };
}

/// The innermost node for which the routine stands in the description of a relation.
pub fn standing(relation: pg_sys::Relation) -> Option<Watched> {
    relations(|all| all.iter().rfind(|watched| watched.is_for(relation)).copied())
}

/// The same, where it stands on the list, and takes the routine back: the change is made. It stays there until a
/// statement begins or ends.
///
/// # Safety
/// The relation must be open.
pub unsafe fn take_standing(relation: pg_sys::Relation) -> Option<*const Watched> {
    relations(|all| {
        let place = all.iter().rposition(|watched| watched.is_for(relation));
        // SAFETY: the caller's promise: a query for whose node it stands is under way.
        unsafe {
            match place {
                Some(place) => take_back(all, place),
                None => (*relation).rd_tableam = heap(),
            }
        }
        place.map(|place| &raw const all[place])
    })
}

/// Takes the routine back, whoever it stands for.
///
/// # Safety
/// The relation must be open.
pub unsafe fn take_back_from(relation: pg_sys::Relation) {
    // SAFETY: the caller's promise.
    unsafe {
        relations(|all| take_back_of(all, |watched| std::ptr::eq(watched.relation, relation)));
        (*relation).rd_tableam = heap();
    }
}

/// Watches the nodes of a query no more.
///
/// # Safety
/// The query must be under way, or have failed and not let its relations go yet.
pub unsafe fn remove(query: *const pg_sys::EState) {
    WATCHED.with_borrow_mut(|all| {
        // SAFETY: the caller's promise.
        unsafe { take_back_of(&mut all.relations, |watched| std::ptr::eq(watched.query, query)) };
        all.relations.retain(|watched| !std::ptr::eq(watched.query, query));
        all.nodes.retain(|node| !std::ptr::eq(node.query, query));
    });
}

/// Takes the routine back, whoever it stands for, when a transaction has failed.
///
/// # Safety
/// Before relations are let go, or in a process that ends.
pub unsafe fn take_all_back() {
    // In a process that ends, subtransactions have let relations go without telling.
    // SAFETY: a plain global of the backend; the caller's promise.
    unsafe {
        if !pg_sys::proc_exit_inprogress {
            relations(|all| take_back_of(all, |_| true));
        }
    }
}

/// Watches nothing any more, when a transaction has ended.
pub fn forget() {
    WATCHED.with_borrow_mut(|all| {
        all.nodes.clear();
        all.nodes.shrink_to(KEPT);
        all.relations.clear();
        all.relations.shrink_to(KEPT);
    });
}
