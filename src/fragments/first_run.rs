//! Bound statements that are combined of parts when they are run, not when they are started: those whose rows depend on settings, which may
//! change between the two, and those that may raise an error in a row that is never read. At the first run it shows whether all rows are read at
//! once, under the settings of the start. If so, the combined plan is started beside the server's own, and takes its place in the query's descriptor. The
//! server's own stays as it was started until the query ends: the portal describes its rows by it, and other libraries have put their clocks into
//! its memory.
//!
//! State of this backend: few queries, those of open portals. A query leaves it with its memory context, after an error too.

use std::cell::RefCell;
use std::ffi::c_void;

use pgrx::pg_sys;

use super::kept_question;
use super::planning::{Known, plan_of};
use crate::capture;
use crate::lookup::parts::{self, may_have_parts};
use crate::lookup::{definition_versions, portal};
use crate::pg::backend_local::Local;
use crate::pg::error_passing::kept;
use crate::pg::query_desc::QueryDesc;
use crate::pg::{compat, server};
use crate::query::eligibility::QueryTraits;
use crate::query::hashes::EnvironmentHash;
use crate::query::{Versions, plan_facts};
use crate::{settings, shmem};

/// Under what a query was started. All of it must be the same when it is run.
#[derive(Clone, Copy)]
pub struct Start {
    versions: Versions,
    environment: EnvironmentHash,
    pruning: u64,
    traits: QueryTraits,
}

/// What there is to do for a query.
#[derive(Clone, Copy)]
enum Late {
    /// It is started, and waits for its first run.
    Waiting(Start),
    /// It runs the combined plan. The server's own was started too, and ends with it: a descriptor that holds nothing else.
    Combined(*mut pg_sys::QueryDesc),
}

/// By the addresses of descriptors.
static LATE: Local<RefCell<Vec<(usize, Late)>>> = Local::new(RefCell::new(Vec::new()));

/// What reports the end of a descriptor's memory context. Lives in that context.
struct Registration {
    callback: pg_sys::MemoryContextCallback,
    query: usize,
}

/// Is there no query that waits, or runs a combined plan since its first run?
pub fn is_idle() -> bool {
    LATE.with_borrow(Vec::is_empty)
}

/// Has a query that is about to be started wait for its first run. `versions` are the definitions of now.
pub fn wait(query: QueryDesc<'_>, traits: QueryTraits, versions: Versions) {
    let Some(environment) = parts::environment_now() else { return };
    // SAFETY: with NO_OOM a lack of memory gives null. The registration lives in the context whose end it reports.
    unsafe {
        let context = query.own_context();
        let size = size_of::<Registration>();
        let place: *mut Registration =
            pg_sys::MemoryContextAllocExtended(context, size, pg_sys::MCXT_ALLOC_NO_OOM as i32).cast();
        if place.is_null() {
            return;
        }
        place.write(Registration {
            callback: pg_sys::MemoryContextCallback {
                func: Some(context_gone),
                arg: place.cast(),
                next: std::ptr::null_mut(),
            },
            query: query.address(),
        });
        pg_sys::MemoryContextRegisterResetCallback(context, &raw mut (*place).callback);
    }
    let start = Start { versions, environment, pruning: plan_facts::pruning(), traits };
    LATE.with_borrow_mut(|list| list.push((query.address(), Late::Waiting(start))));
}

/// Decides on a query that is about to be run. `reads_all`: forward, without a limit of rows. What the server raises unwinds this frame, and fails the portal.
pub fn combine_at_run(query: QueryDesc<'_>, reads_all: bool) {
    let Some(start) = take(query.address(), |late| match late {
        Late::Waiting(start) => Some(start),
        Late::Combined(_) => None,
    }) else {
        return;
    };
    if !reads_all || !portal::is_before_first_row(query) || !holds(start) {
        return;
    }
    let Some(question) = kept_question::of(query.plan()) else { return };
    let known = Known { may_fail: start.traits.may_fail, asks_for_time: start.traits.clocks != 0, reads_all };
    // SAFETY: the memory of the descriptor outlives the execution, and with it the plan.
    let own_plan = unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(query.own_context());
        let own_plan = plan_of(query, question, start.versions, known).and_then(|plan| exchange(query, plan));
        pg_sys::MemoryContextSwitchTo(caller);
        own_plan
    };
    if let Some(own_plan) = own_plan {
        LATE.with_borrow_mut(|list| list.push((query.address(), Late::Combined(own_plan))));
        capture::note_combined(query);
    }
}

/// Ends the server's own plan of a query that has run the combined one, and has ended.
pub fn end(query: QueryDesc<'_>) {
    let Some(Late::Combined(own_plan)) = take(query.address(), Some) else { return };
    // SAFETY: `exchange` has left there what the server has started; nobody uses it after this.
    unsafe { end_started(own_plan) };
}

/// Is everything as it was at the start?
fn holds(start: Start) -> bool {
    let Some(store) = shmem::store() else { return false };
    settings::enable_fragments()
        && !settings::debug_serve_fills()
        && may_have_parts(&start.traits)
        && definition_versions(&store) == start.versions
        && parts::environment_now() == Some(start.environment)
        && plan_facts::pruning() == start.pruning
}

/// Starts a combined plan, and puts it in the place of the plan that a query has started. Returns a descriptor that holds the latter. `None` if the
/// columns differ.
///
/// # Safety
/// The query must be started, and not have run. The plan must be one of the same query, in memory that outlives it, which is the current context.
unsafe fn exchange(query: QueryDesc<'_>, plan: *mut pg_sys::PlannedStmt) -> Option<*mut pg_sys::QueryDesc> {
    let (text, snapshot, params) = (query.source(), query.snapshot(), query.params());
    // SAFETY: the caller's promise. Permissions were asked when the query was started, and are not asked again.
    unsafe {
        let plan = compat::unchecked_plan(plan);
        let instruments = (*query.as_ptr()).instrument_options;
        let (no_snapshot, no_environment) = (std::ptr::null_mut(), std::ptr::null_mut());
        let nowhere = pg_sys::None_Receiver;
        let desc = kept!(server::CreateQueryDesc(
            plan,
            text,
            snapshot,
            no_snapshot,
            nowhere,
            params,
            no_environment,
            instruments
        ));
        kept!(server::standard_ExecutorStart(desc, 0));
        if !pg_sys::equalTupleDescs((*desc).tupDesc, (*query.as_ptr()).tupDesc) {
            end_started(desc);
            return None;
        }
        query.exchange_execution(desc);
        Some(desc)
    }
}

/// Ends what was started and has not run.
///
/// # Safety
/// A started descriptor that nobody uses any more.
unsafe fn end_started(desc: *mut pg_sys::QueryDesc) {
    // SAFETY: the caller's promise.
    unsafe {
        kept!(server::standard_ExecutorFinish(desc));
        kept!(server::standard_ExecutorEnd(desc));
        kept!(server::FreeQueryDesc(desc));
    }
}

/// Takes a query off the list, if it is there and `wanted` gives something for it.
fn take<T>(query: usize, wanted: impl Fn(Late) -> Option<T>) -> Option<T> {
    LATE.with_borrow_mut(|list| {
        let place = list.iter().position(|(address, _)| *address == query)?;
        let found = wanted(list[place].1)?;
        list.swap_remove(place);
        Some(found)
    })
}

/// The context of a descriptor goes away: its portal is dropped. Frees Rust memory and does nothing else.
unsafe extern "C-unwind" fn context_gone(registration: *mut c_void) {
    // SAFETY: registered with the address of the registration, which the context still contains.
    let query = unsafe { (*registration.cast::<Registration>()).query };
    take(query, Some);
}
