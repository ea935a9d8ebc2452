//! State of this backend: how deep we are in nested statements, and what became of the last statement. Never shared, so
//! no lock; one thread.
//!
//! Nesting is counted around ExecutorRun, ExecutorFinish and utility statements; the hooks undo it
//! on the error path too (`chain::with_cleanup`). Functions also run outside of these: for the arguments of an EXECUTE, while
//! a plan is made, at the commit. They are told by the error context.

use std::cell::Cell;
use std::ffi::{CStr, c_char};

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::pg::backend_local::Local;

/// What became of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Answered from the cache.
    Hit,
    /// Executed; a result for it was looked up and not found. The reason, if any, says why the
    /// new result was not stored.
    Miss(Option<Reason>),
    /// Executed, because the stored result was out of date.
    Stale(Option<Reason>),
    /// Executed without a look-up, or in spite of one.
    Bypass(Reason),
}

impl Status {
    /// The word that `arrow_cache.last_status()` returns.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "HIT",
            Self::Miss(_) => "MISS",
            Self::Stale(_) => "STALE",
            Self::Bypass(_) => "BYPASS",
        }
    }

    /// Why the statement was bypassed or its result not stored.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Hit => None,
            Self::Miss(reason) | Self::Stale(reason) => reason,
            Self::Bypass(reason) => Some(reason),
        }
    }
}

static DEPTH: Local<Cell<u32>> = Local::new(Cell::new(0));
static EXPLAINING: Local<Cell<bool>> = Local::new(Cell::new(false));
static PLANNING_EXPORT: Local<Cell<bool>> = Local::new(Cell::new(false));
static WRAPPED: Local<Cell<Option<WrappedText>>> = Local::new(Cell::new(None));
static CONTEXT: Local<Cell<Option<usize>>> = Local::new(Cell::new(None));
static EXECUTING_PREPARED: Local<Cell<bool>> = Local::new(Cell::new(false));
static PLANS: Local<Cell<u64>> = Local::new(Cell::new(0));
static DEFINITION_CHANGES: Local<Cell<u64>> = Local::new(Cell::new(0));
static STATEMENT: Local<Cell<u64>> = Local::new(Cell::new(0));
static CURRENT: Local<Cell<Option<Status>>> = Local::new(Cell::new(None));
static PREVIOUS: Local<Cell<Option<Status>>> = Local::new(Cell::new(None));
static TIMED: Local<Cell<Option<u64>>> = Local::new(Cell::new(None));
static SHAPE: Local<Cell<Option<u64>>> = Local::new(Cell::new(None));
static MUST_PLAN: Local<Cell<bool>> = Local::new(Cell::new(false));
static ASKED_STATUS: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Enters a level of nested statements. Every path out must leave it again.
pub fn enter_level() {
    DEPTH.set(DEPTH.get() + 1);
}

/// Leaves a level of nested statements.
pub fn leave_level() {
    DEPTH.set(DEPTH.get().saturating_sub(1));
}

/// Where the text of a query lies that a utility statement wraps: the parser does not say.
#[derive(Clone, Copy)]
pub struct WrappedText {
    /// The text the utility statement is part of.
    pub source: *const c_char,
    /// Its place in that text.
    pub location: i32,
    /// Its length.
    pub length: i32,
}

/// What the innermost utility statement that runs means to the queries inside it.
#[derive(Clone, Copy)]
pub struct Wrapping {
    context: Option<usize>,
    wrapped: Option<WrappedText>,
    explaining: bool,
    executing_prepared: bool,
}

/// Enters a utility statement of the client that wraps a query of the client. Returns what to give to
/// `leave_wrapping` on every path out.
pub fn enter_wrapping(text: Option<WrappedText>, explaining: bool) -> Wrapping {
    Wrapping {
        context: CONTEXT.replace(Some(error_context() as usize)),
        wrapped: WRAPPED.replace(text),
        explaining: EXPLAINING.replace(explaining),
        executing_prepared: EXECUTING_PREPARED.replace(false),
    }
}

/// Enters an EXECUTE of the client. Returns what to give to `leave_wrapping` on every path out.
pub fn enter_execute() -> Wrapping {
    Wrapping {
        context: CONTEXT.replace(Some(error_context() as usize)),
        wrapped: WRAPPED.get(),
        explaining: EXPLAINING.get(),
        executing_prepared: EXECUTING_PREPARED.replace(true),
    }
}

/// Is an EXECUTE under way?
pub fn executing_prepared() -> bool {
    EXECUTING_PREPARED.get()
}

/// A number for a plan that no other plan has.
pub fn next_plan_number() -> u64 {
    let last = match PLANS.get() {
        0 => {
            let mut bytes = [0; 8];
            // SAFETY: fills as many bytes as it is told; a plain global of the backend.
            let (random, started) =
                unsafe { (pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()), pg_sys::MyStartTimestamp) };
            if random { u64::from_le_bytes(bytes) } else { started.cast_unsigned() }
        }
        last => last,
    };
    PLANS.set(last.wrapping_add(1));
    PLANS.get()
}

/// Notes that this session changes a definition. Only ever counts up, whatever is rolled back.
pub fn note_definition_change() {
    DEFINITION_CHANGES.set(DEFINITION_CHANGES.get() + 1);
}

/// How often this session has changed a definition, or may have.
pub fn definition_changes() -> u64 {
    DEFINITION_CHANGES.get()
}

/// Leaves a utility statement that wraps a query.
pub fn leave_wrapping(outer: Wrapping) {
    CONTEXT.set(outer.context);
    WRAPPED.set(outer.wrapped);
    EXPLAINING.set(outer.explaining);
    EXECUTING_PREPARED.set(outer.executing_prepared);
}

/// Location and length of the wrapping utility statement, if `source` is its text.
pub fn wrapped_text(source: *const c_char) -> Option<(i32, i32)> {
    let wrapped = WRAPPED.get()?;
    // SAFETY: both are query strings that live as long as their statements. DECLARE CURSOR runs on a copy, so the
    // texts are compared, not the pointers.
    let same = wrapped.source == source || unsafe { CStr::from_ptr(wrapped.source) == CStr::from_ptr(source) };
    same.then_some((wrapped.location, wrapped.length))
}

/// Is a DECLARE CURSOR under way?
pub fn declaring_cursor() -> bool {
    WRAPPED.get().is_some() && !EXPLAINING.get()
}

/// Marks that an export function is planning its query, as long as the value lives.
pub struct PlanningExport(());

impl PlanningExport {
    /// Enters planning.
    pub fn enter() -> Self {
        PLANNING_EXPORT.set(true);
        Self(())
    }
}

impl Drop for PlanningExport {
    fn drop(&mut self) {
        PLANNING_EXPORT.set(false);
    }
}

/// Could the plan that is made now be answered from the cache?
pub fn plans_matter() -> bool {
    at_top_level() || PLANNING_EXPORT.get()
}

/// How many statements the present one is nested in.
pub fn depth() -> u32 {
    DEPTH.get()
}

/// Is the statement that starts now the one the client sent?
pub fn at_top_level() -> bool {
    DEPTH.get() == 0 && !in_function()
}

/// Where the functions under way have noted how to describe themselves in an error, the innermost first.
fn error_context() -> *mut pg_sys::ErrorContextCallback {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::error_context_stack }
}

/// Does a function run, though no statement is being executed? SPI, the procedural languages and SQL functions tell the error
/// context where they are before they run a query, as long as it runs. The server itself says at most one thing there, of the
/// parameters of a message, and nothing between a statement that wraps a query and that query.
fn in_function() -> bool {
    let innermost = error_context();
    match CONTEXT.get() {
        Some(own) => innermost as usize != own,
        // SAFETY: notes live on the stack of the functions that are under way.
        None => unsafe { innermost.as_ref() }.is_some_and(|note| !note.previous.is_null()),
    }
}

/// Is the statement that starts now the subject of a top-level EXPLAIN?
pub fn explaining() -> bool {
    EXPLAINING.get() && at_top_level()
}

/// A new top-level statement has begun; until more is known it counts as bypassed for `reason`.
pub fn begin_statement(reason: Reason) {
    if !ASKED_STATUS.replace(false) {
        PREVIOUS.set(CURRENT.get());
    }
    CURRENT.set(Some(Status::Bypass(reason)));
    STATEMENT.set(STATEMENT.get() + 1);
}

/// As `begin_statement`, for one of which all is known.
pub fn begin_statement_as(status: Status) {
    begin_statement(Reason::NotSelect);
    SHAPE.set(None);
    CURRENT.set(Some(status));
}

/// Has the run of the statement that starts now timed, for others of its shape. Nothing else is done with it.
pub fn time_shape(shape: Option<u64>) {
    TIMED.set(shape);
    SHAPE.set(None);
}

/// Notes the shape of the statement that is planned now and executed next.
pub fn note_shape(shape: Option<u64>) {
    TIMED.set(None);
    SHAPE.set(shape);
}

/// The shape of the statement that starts now, if it was planned for this execution.
pub fn take_shape() -> Option<u64> {
    SHAPE.take()
}

/// The shape whose statement is timed, if one is at this level; it is no longer then.
pub fn take_timed() -> Option<u64> {
    if at_top_level() { TIMED.take() } else { None }
}

/// From here on a query must be planned, whatever is stored; or no longer so.
pub fn set_must_plan(must: bool) {
    MUST_PLAN.set(must);
}

/// Must the query that is planned now really be planned?
pub fn must_plan() -> bool {
    MUST_PLAN.get()
}

/// Number of the current top-level statement.
pub fn statement_number() -> u64 {
    STATEMENT.get()
}

/// What became of the current top-level statement.
pub fn set_status(status: Status) {
    CURRENT.set(Some(status));
}

/// What became of statement `number`, unless another one has begun since (a cursor's rows may be
/// fetched much later).
pub fn set_status_of(number: u64, status: Status) {
    if STATEMENT.get() == number {
        CURRENT.set(Some(status));
    }
}

/// The status of the last top-level statement that did not itself ask for it.
pub fn last_status() -> Option<Status> {
    ASKED_STATUS.set(true);
    PREVIOUS.get()
}
