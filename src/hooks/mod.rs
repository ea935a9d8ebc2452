//! The only file that installs hooks. Each hook asks whether we are on, calls the next library in
//! line, and hands over to one named function. `pg::error_passing` says how that leaves errors as they are.

use pgrx::pg_sys;
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

mod utility;
use crate::invalidation::{
    after_commit, definitions, foreign, last_callback, own_writes, publication, targets, track_counts, write_set,
};
use crate::lookup::known;
use crate::lookup::{Call, Pending, Planning};
use crate::pg::compat;
use crate::pg::compat::{ExecutorRunHook, executor_run_hook};
use crate::pg::error_passing::{direct, edge, with_cleanup, with_outcome};
use crate::pg::lists::oids;
use crate::pg::query_desc::QueryDesc;
use crate::pg::{error_memory, server, server_settings};
use crate::{capture, copy, lookup, serve, session, settings, shmem};

/// The hooks that were installed before ours. Written once by `install`, in the postmaster.
struct Previous {
    request: pg_sys::shmem_request_hook_type,
    startup: pg_sys::shmem_startup_hook_type,
    planner: pg_sys::planner_hook_type,
    start: pg_sys::ExecutorStart_hook_type,
    run: Option<ExecutorRunHook>,
    finish: pg_sys::ExecutorFinish_hook_type,
    end: pg_sys::ExecutorEnd_hook_type,
    utility: pg_sys::ProcessUtility_hook_type,
    access: pg_sys::object_access_hook_type,
    counting: pg_sys::GucBoolAssignHook,
}

static mut PREVIOUS: Previous = Previous {
    request: None,
    startup: None,
    planner: None,
    start: None,
    run: None,
    finish: None,
    end: None,
    utility: None,
    access: None,
    counting: None,
};

/// Installs all hooks and callbacks. Called once, while the postmaster preloads libraries.
pub fn install() {
    // SAFETY: the postmaster is single-threaded and no hook runs while libraries are preloaded;
    // afterwards PREVIOUS is only read.
    unsafe {
        PREVIOUS = Previous {
            request: pg_sys::shmem_request_hook,
            startup: pg_sys::shmem_startup_hook,
            planner: pg_sys::planner_hook,
            start: pg_sys::ExecutorStart_hook,
            run: pg_sys::ExecutorRun_hook,
            finish: pg_sys::ExecutorFinish_hook,
            end: pg_sys::ExecutorEnd_hook,
            utility: pg_sys::ProcessUtility_hook,
            access: pg_sys::object_access_hook,
            counting: None,
        };
        if let Some(place) = server_settings::counting_hook().as_mut() {
            PREVIOUS.counting = place.replace(counting_set);
            track_counts::watch();
        }
        pg_sys::shmem_request_hook = Some(shmem_request);
        pg_sys::shmem_startup_hook = Some(shmem_startup);
        pg_sys::planner_hook = Some(planner);
        pg_sys::ExecutorStart_hook = Some(executor_start);
        pg_sys::ExecutorRun_hook = Some(executor_run);
        pg_sys::ExecutorFinish_hook = Some(executor_finish);
        pg_sys::ExecutorEnd_hook = Some(executor_end);
        pg_sys::ProcessUtility_hook = Some(process_utility);
        pg_sys::object_access_hook = Some(object_access);
        pg_sys::RegisterResourceReleaseCallback(Some(resources_released), std::ptr::null_mut());
    }
    serve::register();
}

/// Set once the transaction callbacks are in place.
static CALLBACKS_REGISTERED: OnceLock<()> = OnceLock::new();

/// Is this a process whose statements we look at, with the cache switched on?
fn active() -> bool {
    // SAFETY: a plain global, set before a parallel worker runs anything.
    let worker = unsafe { pg_sys::ParallelWorkerNumber } >= 0;
    !worker && settings::enabled() && shmem::preloaded()
}

unsafe extern "C-unwind" fn shmem_request() {
    // SAFETY: the next hook in line, called as PostgreSQL called us.
    unsafe {
        if let Some(hook) = PREVIOUS.request {
            direct!(hook());
        }
        edge(shmem::request);
    }
}

unsafe extern "C-unwind" fn shmem_startup() {
    // SAFETY: the next hook in line, called as PostgreSQL called us.
    unsafe {
        if let Some(hook) = PREVIOUS.startup {
            direct!(hook());
        }
        edge(|| {
            shmem::startup();
            // After a crash of a backend the postmaster comes here again, with its callbacks in place.
            if CALLBACKS_REGISTERED.set(()).is_ok() {
                last_callback::register(transaction_event);
            }
        });
    }
}

unsafe extern "C-unwind" fn planner(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    params: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: PostgreSQL's own arguments, passed on unchanged.
    unsafe { plan(Call { query, text, options, params }) }
}

/// Plans a query, or finds that it need not be planned. What planning raises jumps over this frame.
///
/// # Safety
/// The call must be one of a planner hook.
unsafe fn plan(call: Call) -> *mut pg_sys::PlannedStmt {
    // SAFETY: as the caller promises; what is kept over the calls is plain data.
    unsafe {
        let planning = if session::plans_matter() && active() {
            edge(|| lookup::before_planning(&call))
        } else {
            Planning::Unjudged
        };
        if let Planning::Ready { plan, locks } = planning {
            // Before the snapshot is taken, so that whoever holds a lock is waited for and then seen.
            for relation in oids(locks) {
                direct!(server::LockRelationOid(relation, pg_sys::AccessShareLock as _));
            }
            return plan;
        }
        let next = PREVIOUS.planner.unwrap_or(server::standard_planner);
        let plan = direct!(next(call.query, call.text, call.options, call.params));
        match planning {
            Planning::Judged(judgement) => edge(|| lookup::after_planning(plan, judgement)),
            Planning::Refused(reason) => edge(|| lookup::refuse(plan, reason)),
            Planning::Unjudged | Planning::Ready { .. } => {}
        }
        plan
    }
}

/// Serves the answer that a placeholder stands for, or puts the real plan in its place.
///
/// # Safety
/// The arguments must be those of an ExecutorStart hook, `pending` what its placeholder stands for.
unsafe fn settle(query_desc: *mut pg_sys::QueryDesc, flags: c_int, pending: *const Pending) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        let served = active() && edge(|| lookup::serve_pending(query_desc, flags, pending));
        if served {
            capture::prepare(query_desc, None);
        } else {
            // By way of all planner hooks, since some libraries' come before ours.
            let Call { query, text, options, params } = (*pending).call;
            // A plan shares parts with its query, and a portal that was bound outlives the message that holds the query.
            let query = edge(|| pg_sys::copyObjectImpl(query.cast())).cast();
            session::set_must_plan(true);
            with_cleanup(
                || (*query_desc).plannedstmt = direct!(server::planner(query, text, options, params)),
                || session::set_must_plan(false),
            );
        }
        served
    }
}

unsafe extern "C-unwind" fn executor_start(query_desc: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: PostgreSQL's own arguments; the plan may be swapped before the executor sees it.
    unsafe {
        let planned = (*query_desc).plannedstmt;
        let pending = lookup::pending(query_desc);
        if pending.is_some_and(|pending| settle(query_desc, flags, pending)) {
            let next = PREVIOUS.start.unwrap_or(server::standard_ExecutorStart);
            direct!(next(query_desc, flags));
            return;
        }
        edge(|| {
            let miss = if copy::claims(query_desc) {
                copy::before_start(query_desc);
                None
            } else if active() {
                lookup::at_start(query_desc, planned, flags)
            } else {
                lookup::skip(query_desc)
            };
            capture::prepare(query_desc, miss);
        });
        let next = PREVIOUS.start.unwrap_or(server::standard_ExecutorStart);
        direct!(next(query_desc, flags));
        // Permissions have been checked: who was refused has changed nothing.
        if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY == 0 && !(*(*query_desc).plannedstmt).resultRelations.is_null()
        {
            edge(|| targets::note_plan(QueryDesc::of_hook(query_desc).plan()));
        }
        if capture::is_prepared() {
            edge(|| capture::begin(query_desc));
        }
        if copy::is_deciding() {
            edge(|| copy::after_start(query_desc));
        }
    }
}

/// # Safety
/// The arguments must be those of an ExecutorRun hook.
unsafe fn run(query_desc: *mut pg_sys::QueryDesc, direction: pg_sys::ScanDirection::Type, count: u64, once: bool) {
    if !copy::exports(query_desc) {
        // SAFETY: as the caller promises.
        return unsafe { run_plan(query_desc, direction, count, once) };
    }
    // SAFETY: as the caller promises. COPY runs its query once, and asks for all rows.
    unsafe {
        let (direction, count) = edge(|| copy::before_run(query_desc));
        run_plan(query_desc, direction, count, once);
        edge(|| copy::after_run(query_desc));
    }
}

/// # Safety
/// As `run`.
unsafe fn run_plan(query_desc: *mut pg_sys::QueryDesc, direction: pg_sys::ScanDirection::Type, count: u64, once: bool) {
    // SAFETY: as the caller promises; what is kept over the calls is plain data.
    unsafe {
        if serve::is_served(query_desc) {
            edge(|| serve::note_run(query_desc, direction, count));
        }
        if capture::idle() {
            session::enter_level();
            with_cleanup(
                || compat::call_executor_run(PREVIOUS.run, query_desc, direction, count, once),
                session::leave_level,
            );
            known::note_timed();
            return;
        }
        let pass = edge(|| capture::before_run(query_desc, direction, count));
        if pass.runs_plan {
            session::enter_level();
            with_cleanup(
                || {
                    let count = pass.count;
                    compat::call_executor_run(PREVIOUS.run, query_desc, direction, count, once);
                },
                || {
                    session::leave_level();
                    pass.restore(query_desc);
                },
            );
            edge(|| capture::after_run(query_desc, pass));
        }
        if pass.replays {
            session::enter_level();
            with_cleanup(|| capture::replay(query_desc, count), session::leave_level);
        }
    }
}

executor_run_hook!(executor_run, run);

unsafe extern "C-unwind" fn executor_finish(query_desc: *mut pg_sys::QueryDesc) {
    // SAFETY: PostgreSQL's own argument, passed on unchanged.
    unsafe {
        let query = QueryDesc::of_hook(query_desc);
        if targets::has_routed(query) {
            edge(|| targets::note_routed(query));
        }
        let next = PREVIOUS.finish.unwrap_or(server::standard_ExecutorFinish);
        if targets::leaves_work(query) {
            session::enter_level();
            with_cleanup(|| direct!(next(query_desc)), session::leave_level);
        } else {
            direct!(next(query_desc));
        }
    }
}

unsafe extern "C-unwind" fn executor_end(query_desc: *mut pg_sys::QueryDesc) {
    // SAFETY: PostgreSQL's own argument, passed on unchanged.
    unsafe {
        if !capture::idle() {
            edge(|| capture::end(query_desc));
        }
        let next = PREVIOUS.end.unwrap_or(server::standard_ExecutorEnd);
        direct!(next(query_desc));
    }
}

unsafe extern "C-unwind" fn process_utility(
    plan: *mut pg_sys::PlannedStmt,
    text: *const c_char,
    read_only: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    receiver: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: PostgreSQL's own arguments, passed on unchanged; a scope is plain data.
    unsafe {
        let next = PREVIOUS.utility.unwrap_or(server::standard_ProcessUtility);
        if utility::only_steers_transaction(plan) {
            edge(|| utility::note_steering(plan));
            direct!(next(plan, text, read_only, context, params, environment, receiver, completion));
            return;
        }
        let scope = edge(|| utility::enter(plan, text));
        with_outcome(
            || {
                let plan = scope.statement(plan);
                direct!(next(plan, text, read_only, context, params, environment, receiver, completion));
            },
            |raised| utility::leave(scope, raised),
        );
        if scope.has_aftermath() {
            edge(|| utility::succeed(scope));
        }
    }
}

unsafe extern "C-unwind" fn object_access(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    part: c_int,
    arg: *mut c_void,
) {
    // SAFETY: PostgreSQL's own arguments, passed on unchanged.
    unsafe {
        if let Some(hook) = PREVIOUS.access {
            direct!(hook(access, class, object, part, arg));
        }
        // The server also tells of each function that a plan calls.
        if !definitions::changes_definition(access) {
            return;
        }
        edge(session::note_definition_change);
        let drops_relation =
            access == pg_sys::ObjectAccessType::OAT_DROP && class == pg_sys::RelationRelationId && part == 0;
        if drops_relation {
            edge(|| definitions::note_drop(object));
        }
        let creates_relation =
            access == pg_sys::ObjectAccessType::OAT_POST_CREATE && class == pg_sys::RelationRelationId && part == 0;
        if creates_relation {
            edge(|| definitions::note_creation(object));
        }
    }
}

/// Called with each value of `track_counts` before the setting takes it, at any moment; must not raise.
unsafe extern "C-unwind" fn counting_set(on: bool, extra: *mut c_void) {
    // SAFETY: the server's own arguments, passed on unchanged.
    unsafe {
        if let Some(hook) = PREVIOUS.counting {
            direct!(hook(on, extra));
        }
    }
    track_counts::note(on);
}

/// Called twice per transaction, and after the commit too, where only flags may be cleared.
unsafe extern "C-unwind" fn transaction_event(event: pg_sys::XactEvent::Type, arg: *mut c_void) {
    if !last_callback::is_last(arg) {
        return;
    }
    match event {
        pg_sys::XactEvent::XACT_EVENT_PRE_COMMIT | pg_sys::XactEvent::XACT_EVENT_PRE_PREPARE => {
            let preparing = event == pg_sys::XactEvent::XACT_EVENT_PRE_PREPARE;
            if own_writes::has_transaction_id() {
                // SAFETY: no frame above this one has destructors.
                unsafe { edge(|| publication::publish(preparing)) };
            }
        }
        pg_sys::XactEvent::XACT_EVENT_COMMIT | pg_sys::XactEvent::XACT_EVENT_PREPARE => {
            foreign::committed();
            write_set::forget();
            // SAFETY: an error that ends a transaction has left our functions; one that they caught is over.
            unsafe { error_memory::recover() };
        }
        pg_sys::XactEvent::XACT_EVENT_ABORT => {
            foreign::rolled_back();
            write_set::forget();
            // SAFETY: an error that ends a transaction has left our functions; one that they caught is over.
            unsafe { error_memory::recover() };
        }
        _ => {}
    }
}

/// Called many times per transaction, and after the commit, where nothing may raise or wait.
unsafe extern "C-unwind" fn resources_released(
    phase: pg_sys::ResourceReleasePhase::Type,
    _is_commit: bool,
    is_top_level: bool,
    _arg: *mut c_void,
) {
    if is_top_level && phase == pg_sys::ResourceReleasePhase::RESOURCE_RELEASE_AFTER_LOCKS {
        after_commit::bump_definitions_again();
    }
}
