//! The nodes under way that change rows of tracked relations, and whether the watching routine stands in the
//! description of such a relation. State of this backend; no lock.
//!
//! The routine stands from when a row has come out of the node below, to be changed, until the change is made, the next
//! row is asked for, or the statement fails. `heap_getnext` refuses to go on while it stands, so any other scan of the
//! relation takes it back as it begins: then what is changed before the next row is not noted.
//!
//! A relation is open, and its description in its place, as long as a statement runs that changes it. Nobody else looks
//! at the description meanwhile: it belongs to this process.

use std::cell::RefCell;

use arrow_cache_core::versions::columns::MOST_COLUMNS;
use arrow_cache_core::{OutOfMemory, RoomyVec};
use pgrx::pg_sys;

use crate::pg::backend_local::Local;
use crate::pg::server;
use crate::query::value_hash::Form;

/// What a node of a plan does to give its next row.
pub type NextRow = unsafe extern "C-unwind" fn(*mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot;

/// A column that has values, and how these are hashed.
pub type Hashed = (i16, Form);

/// What is noted of a row that changes.
#[derive(Clone, Copy, Default)]
pub struct Columns {
    /// The tracked columns that have values, alone or two together.
    pub values: [Option<(Hashed, Option<Hashed>)>; MOST_COLUMNS],
    /// Columns that stand for zones.
    pub zones: [Option<i16>; MOST_COLUMNS],
    /// Whether `EACH_ROW` is tracked.
    pub has_each_row: bool,
    /// The node's own updates leave all these values as they are.
    pub keeps_values: bool,
    /// They leave all but quiet columns as they are.
    pub is_quiet: bool,
}

/// A node that changes rows of one tracked relation.
#[derive(Clone, Copy)]
pub struct Watched {
    /// The state of its query.
    pub query: *const pg_sys::EState,
    /// The node below, which gives it the rows.
    pub below: *mut pg_sys::PlanState,
    /// What the node below does by itself.
    pub next_row: NextRow,
    /// The relation whose rows it changes, as the executor knows it.
    pub target: *const pg_sys::ResultRelInfo,
    pub relation: pg_sys::Relation,
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

/// Nodes that the list keeps memory for when its transaction ends.
const KEPT: usize = 16;

/// The innermost statement comes last.
static WATCHED: Local<RefCell<Vec<Watched>>> = Local::new(RefCell::new(Vec::new()));

/// Watches one more.
///
/// # Errors
/// There is no memory.
pub fn add(watched: Watched) -> Result<(), OutOfMemory> {
    WATCHED.with_borrow_mut(|all| all.add(watched))
}

/// Returns true if the node above this one is watched.
pub fn is_watched(below: *mut pg_sys::PlanState) -> bool {
    WATCHED.with_borrow(|all| all.iter().any(|watched| watched.below == below))
}

/// The heap's own routine.
pub fn heap() -> &'static pg_sys::TableAmRoutine {
    // SAFETY: the address of a constant.
    unsafe { &*server::GetHeapamTableAmRoutine() }
}

/// Takes the routine back for one node.
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

/// Takes the routine back for the nodes that `is_one` chooses.
///
/// # Safety
/// As `take_back`.
unsafe fn take_back_of(is_one: impl Fn(&Watched) -> bool) {
    WATCHED.with_borrow_mut(|all| {
        for place in 0..all.len() {
            if is_one(&all[place]) {
                // SAFETY: the caller's promise.
                unsafe { take_back(all, place) };
            }
        }
    });
}

/// The node above this one is about to get its next row: the routine does not stand for it any more. Returns what the
/// node below does for that; `None` if it is not watched.
///
/// # Safety
/// The query of the node must be under way.
pub unsafe fn before_row(below: *mut pg_sys::PlanState) -> Option<NextRow> {
    WATCHED.with_borrow_mut(|all| {
        let place = all.iter().rposition(|watched| watched.below == below)?;
        // SAFETY: the caller's promise.
        unsafe { take_back(all, place) };
        Some(all[place].next_row)
    })
}

/// The node above this one has got a row: puts `routine` in the description of the relation that it changes, in the
/// place of the heap's.
///
/// # Safety
/// The query of the node must be under way.
pub unsafe fn after_row(below: *mut pg_sys::PlanState, routine: &'static pg_sys::TableAmRoutine) {
    WATCHED.with_borrow_mut(|all| {
        let Some(watched) = all.iter_mut().rfind(|watched| watched.below == below) else { return };
        // SAFETY: the caller's promise: the relation is open.
        unsafe {
            let place = &raw mut (*watched.relation).rd_tableam;
            if std::ptr::eq(*place, heap()) {
                *place = routine;
            }
            watched.stands = std::ptr::eq(*place, routine);
        }
    });
}

/// No more changes of this node are noted: the node below does what it does by itself.
///
/// # Safety
/// The query of the node must be under way.
pub unsafe fn let_go(watched: &Watched) {
    // SAFETY: the caller's promise. The server calls the one field, or the other one by way of measuring.
    unsafe {
        let below = &mut *watched.below;
        let watching = below.ExecProcNodeReal.replace(watched.next_row);
        if below.ExecProcNode.map(|called| called as usize) == watching.map(|called| called as usize) {
            below.ExecProcNode = Some(watched.next_row);
        }
    }
}

/// The innermost node for which the routine stands in the description of a relation.
pub fn standing(relation: pg_sys::Relation) -> Option<Watched> {
    WATCHED.with_borrow(|all| all.iter().rfind(|watched| watched.is_for(relation)).copied())
}

/// The same, and takes it back: the change is made.
///
/// # Safety
/// The relation must be open.
pub unsafe fn take_standing(relation: pg_sys::Relation) -> Option<Watched> {
    WATCHED.with_borrow_mut(|all| {
        let place = all.iter().rposition(|watched| watched.is_for(relation));
        // SAFETY: the caller's promise: a query for whose node it stands is under way.
        unsafe {
            match place {
                Some(place) => take_back(all, place),
                None => (*relation).rd_tableam = heap(),
            }
        }
        place.map(|place| all[place])
    })
}

/// Takes the routine back, whoever it stands for.
///
/// # Safety
/// The relation must be open.
pub unsafe fn take_back_from(relation: pg_sys::Relation) {
    // SAFETY: the caller's promise.
    unsafe {
        take_back_of(|watched| std::ptr::eq(watched.relation, relation));
        (*relation).rd_tableam = heap();
    }
}

/// Watches the nodes of a query no more.
///
/// # Safety
/// The query must be under way, or have failed and not let its relations go yet.
pub unsafe fn remove(query: *const pg_sys::EState) {
    // SAFETY: the caller's promise.
    unsafe { take_back_of(|watched| std::ptr::eq(watched.query, query)) };
    WATCHED.with_borrow_mut(|all| all.retain(|watched| !std::ptr::eq(watched.query, query)));
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
            take_back_of(|_| true);
        }
    }
}

/// Watches nothing any more, when a transaction has ended.
pub fn forget() {
    WATCHED.with_borrow_mut(|all| {
        all.clear();
        all.shrink_to(KEPT);
    });
}
