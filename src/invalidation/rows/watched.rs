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

use arrow_cache_core::{OutOfMemory, RoomyVec};
use pgrx::pg_sys;

use crate::pg::backend_local::Local;
use crate::pg::server;

/// What a node of a plan does to give its next row.
pub type NextRow = unsafe extern "C-unwind" fn(*mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot;

/// A node that changes rows of one tracked relation.
#[derive(Clone, Copy)]
pub struct Watched {
    /// The state of its query.
    pub query: *const pg_sys::EState,
    /// The node below, which gives it the rows.
    pub below: *mut pg_sys::PlanState,
    /// What the node below does by itself.
    pub next_row: NextRow,
    pub relation: pg_sys::Relation,
    /// Where changes of the relation are noted.
    pub place: usize,
    /// A row is to be changed, and the routine stands for that.
    pub stands: bool,
}

/// The innermost statement comes last.
static WATCHED: Local<RefCell<Vec<Watched>>> = Local::new(RefCell::new(Vec::new()));

/// Returns true if nothing is watched.
#[inline]
pub fn is_idle() -> bool {
    WATCHED.with_borrow(Vec::is_empty)
}

/// Watches one more.
///
/// # Errors
/// There is no memory.
pub fn add(watched: Watched) -> Result<(), OutOfMemory> {
    WATCHED.with_borrow_mut(|all| all.add(watched))
}

/// The node above this one, if it is watched.
pub fn above(below: *mut pg_sys::PlanState) -> Option<Watched> {
    WATCHED.with_borrow(|all| all.iter().rev().find(|watched| watched.below == below).copied())
}

/// The heap's own routine.
pub fn heap() -> &'static pg_sys::TableAmRoutine {
    // SAFETY: the address of a constant.
    unsafe { &*server::GetHeapamTableAmRoutine() }
}

/// Puts `routine` in the description of the relation that the node above this one changes, in the place of the heap's.
///
/// # Safety
/// The query of the node must be under way.
pub unsafe fn put(below: *mut pg_sys::PlanState, routine: &'static pg_sys::TableAmRoutine) {
    WATCHED.with_borrow_mut(|all| {
        let Some(watched) = all.iter_mut().rev().find(|watched| watched.below == below) else { return };
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

/// Takes the routine back for the node above this one, if it stands.
///
/// # Safety
/// As `put`.
pub unsafe fn take_back(below: *mut pg_sys::PlanState) {
    // SAFETY: the caller's promise.
    unsafe { take_back_of(|watched| watched.below == below) };
}

/// Takes the routine back for nodes that `is_one` chooses and for which it stands.
///
/// # Safety
/// The queries of these nodes must be under way, or have failed and not let their relations go yet.
unsafe fn take_back_of(is_one: impl Fn(&Watched) -> bool) {
    WATCHED.with_borrow_mut(|all| {
        for place in (0..all.len()).rev() {
            if all[place].stands && is_one(&all[place]) {
                all[place].stands = false;
                let relation = all[place].relation;
                if !all.iter().any(|other| other.stands && std::ptr::eq(other.relation, relation)) {
                    // SAFETY: the caller's promise: the relation is open.
                    unsafe { (*relation).rd_tableam = heap() };
                }
            }
        }
    });
}

/// Where the change that is being made to a relation is to be noted: that of the innermost node for which the routine
/// stands. `None` if there is none.
pub fn noted_at(relation: pg_sys::Relation) -> Option<usize> {
    WATCHED.with_borrow(|all| {
        let innermost = all.iter().rev().find(|watched| watched.stands && std::ptr::eq(watched.relation, relation));
        innermost.map(|watched| watched.place)
    })
}

/// A change of the relation is made: takes the routine back for the innermost node for which it stands.
///
/// # Safety
/// The relation must be open.
pub unsafe fn take_back_after_change(relation: pg_sys::Relation) {
    let below = WATCHED.with_borrow(|all| {
        let innermost = all.iter().rev().find(|watched| watched.stands && std::ptr::eq(watched.relation, relation));
        innermost.map(|watched| watched.below)
    });
    match below {
        // SAFETY: the caller's promise: a query for whose node it stands is under way.
        Some(below) => unsafe { take_back(below) },
        // SAFETY: the caller's promise.
        None => unsafe { (*relation).rd_tableam = heap() },
    }
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

/// Watches nothing any more, when a transaction has failed.
///
/// # Safety
/// Before relations are let go, or in a process that ends.
pub unsafe fn take_all_back() {
    if is_idle() {
        return;
    }
    // SAFETY: a plain global of the backend.
    if !unsafe { pg_sys::proc_exit_inprogress } {
        // SAFETY: the caller's promise. In a process that ends, subtransactions have let relations go without telling.
        unsafe { take_back_of(|_| true) };
    }
    forget();
}

/// Watches nothing any more, when a transaction has ended.
pub fn forget() {
    if !is_idle() {
        WATCHED.take();
    }
}
