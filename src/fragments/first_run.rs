//! Bound statements that are combined of parts when they are run, not when they are started: those whose rows depend on
//! settings, which may change between the two, and those that may raise an error in a row that is never read. At the
//! first run it shows whether all rows are read at once, under the settings of the start. If so, the other plan is
//! started beside the server's own, and takes its place in the query's descriptor. The server's own stays as it was
//! started until the query ends: the portal describes its rows by it, and other libraries have put their clocks into
//! its memory.
//!
//! State of this backend: queries of open portals. A query leaves it with its memory context, after an error too.

use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::ptr::NonNull;

use arrow_cache_core::{OutOfMemory, Room};
use pgrx::pg_sys;

use super::admission::limits_files;
use super::carried;
use super::exchange::{end_started, exchange, has_columns_of};
use super::planning::plan_of;
use super::{index_locks, refused, way_back};
use crate::capture;
use crate::error::or_raise;
use crate::lookup::parts::{self, may_have_parts};
use crate::lookup::{definition_versions, portal};
use crate::pg::attention::{Attended, Matter};
use crate::pg::backend_local::Local;
use crate::pg::memory_context::room_for;
use crate::pg::query_desc::QueryDesc;
use crate::pg::server;
use crate::query::Versions;
use crate::query::eligibility::QueryTraits;
use crate::query::hashes::EnvironmentHash;
use crate::{settings, shmem};

/// Under what a query was started. All of it must be the same when it is run.
#[derive(Clone, Copy)]
pub struct Start {
    versions: Versions,
    environment: EnvironmentHash,
    traits: QueryTraits,
}

/// What there is to do for a query.
#[derive(Clone, Copy)]
enum Late {
    /// It is started, and waits for its first run.
    Waiting(Start),
    /// It runs the other plan. The server's own was started too, and ends with it: a descriptor that holds nothing else.
    Exchanged(*mut pg_sys::QueryDesc),
}

/// By the addresses of descriptors. A client may open many portals.
static LATE: Local<Attended<HashMap<usize, Late, Hasher>>> =
    Local::new(Attended::new(Matter::Late, HashMap::with_hasher(Hasher::new())));
type Hasher = BuildHasherDefault<DefaultHasher>;

/// What reports the end of a descriptor's memory context. Lives in that context.
struct Registration {
    callback: pg_sys::MemoryContextCallback,
    query: usize,
}

/// Is there no query that waits, or runs another plan since its first run, or is to do so?
pub fn is_idle() -> bool {
    LATE.holds_nothing() && refused::is_none()
}

/// Has a query that is about to be started wait for its first run. `versions` are the definitions of now.
pub fn wait(query: QueryDesc<'_>, traits: QueryTraits, versions: Versions) {
    let Some(environment) = parts::environment_now() else { return };
    let start = Start { versions, environment, traits };
    // Without memory for that, the server's own plan runs.
    let _ = add(query, Late::Waiting(start));
}

/// Puts a query on the list, until its memory goes.
///
/// # Errors
/// There is no memory for that.
fn add(query: QueryDesc<'_>, late: Late) -> Result<(), OutOfMemory> {
    LATE.with_borrow_mut(|list| list.make_room(1))?;
    // SAFETY: a live context. The registration lives in the context whose end it reports.
    unsafe {
        let context = query.own_context();
        let place = room_for::<Registration>(context).ok_or(OutOfMemory)?;
        place.write(Registration {
            callback: pg_sys::MemoryContextCallback {
                func: Some(context_gone),
                arg: place.cast(),
                next: std::ptr::null_mut(),
            },
            query: query.address(),
        });
        server::MemoryContextRegisterResetCallback(context, &raw mut (*place).callback);
    }
    LATE.with_borrow_mut(|list| list.insert(query.address(), late));
    Ok(())
}

/// Decides on a query that is about to be run, for up to `limit` rows (0: all), `forward` or not at all. What the server raises unwinds this frame, and
/// fails the portal.
#[cold]
#[inline(never)]
pub fn decide_at_run(query: QueryDesc<'_>, forward: bool, limit: u64) {
    let state = query.estate().map_or(std::ptr::null_mut(), NonNull::as_ptr);
    if let Some(instead) = refused::take(state) {
        // SAFETY: what runs instead of this query, which has not run.
        if let Some(combined) = unsafe { way_back::exchange_for(query, instead) } {
            or_raise(add(query, Late::Exchanged(combined)));
        }
        return;
    }
    match take(query.address(), |late| (!matches!(late, Late::Exchanged(_))).then_some(late)) {
        Some(Late::Waiting(start)) => combine_at_run(query, start, forward && limit == 0),
        Some(Late::Exchanged(_)) | None => {}
    }
}

/// The query runs another plan than it has started.
fn note_exchanged(query: QueryDesc<'_>, own_plan: *mut pg_sys::QueryDesc) {
    LATE.with_borrow_mut(|list| list.insert(query.address(), Late::Exchanged(own_plan)));
}

/// Combines a query of parts. `reads_all`: forward, without a limit of rows.
fn combine_at_run(query: QueryDesc<'_>, start: Start, reads_all: bool) {
    if !reads_all || !portal::is_before_first_row(query) || !holds(start) {
        return;
    }
    let Some(question) =
        carried::question_of(query.plan()).filter(|_| index_locks::are_had(query.plan(), start.versions))
    else {
        return;
    };
    // SAFETY: the memory of the descriptor outlives the execution, and with it the plan.
    let own_plan = unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(query.own_context());
        let own_plan = plan_of(query, question, start.versions, start.traits.clocks != 0, std::ptr::null_mut())
            .and_then(|plan| {
                let fits = |started: *mut pg_sys::QueryDesc| {
                    has_columns_of(query, started) && refused::take((*started).estate).is_none()
                };
                exchange(query, plan, query.params(), fits)
            });
        pg_sys::MemoryContextSwitchTo(caller);
        own_plan
    };
    if let Some(own_plan) = own_plan {
        note_exchanged(query, own_plan);
        capture::note_combined(query);
    }
}

/// Ends the server's own plan of a query that has run the other one, and is about to be ended: its memory goes with
/// that.
#[cold]
#[inline(never)]
pub fn end(query: QueryDesc<'_>) {
    let Some(Late::Exchanged(own_plan)) = take(query.address(), Some) else { return };
    // SAFETY: `exchange` has left there what the server has started; nobody uses it after this.
    unsafe { end_started(own_plan) };
}

/// Is everything as it was at the start?
fn holds(start: Start) -> bool {
    let Some(store) = shmem::store() else { return false };
    settings::enable_fragments()
        && !settings::debug_serve_fills()
        && !limits_files()
        && may_have_parts(&start.traits)
        && definition_versions(&store) == start.versions
        && parts::environment_now() == Some(start.environment)
}

/// Takes a query off the list, if it is there and `wanted` gives something for it.
fn take<T>(query: usize, wanted: impl Fn(Late) -> Option<T>) -> Option<T> {
    LATE.with_borrow_mut(|list| {
        let found = wanted(*list.get(&query)?)?;
        list.remove(&query);
        Some(found)
    })
}

/// The context of a descriptor goes away: its portal is dropped. Frees Rust memory and does nothing else.
unsafe extern "C-unwind" fn context_gone(registration: *mut c_void) {
    // SAFETY: registered with the address of the registration, which the context still contains.
    let query = unsafe { (*registration.cast::<Registration>()).query };
    take(query, Some);
}
