//! The query inside an export function: planned, started, run and ended like one that a client sends. It belongs to one
//! call of the function, in one process.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::arguments::Argument;
use super::error_context::within;
use super::one_select::{self, OwnQuery, command_name, node_of};
use super::parameters::Parameters;
use crate::error::CacheError;
use crate::pg::compat::{self, RunArguments};
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::Tree;
use crate::session::StartingExport;

/// How an export function runs its query.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At once, to its end.
    Whole,
    /// A batch at a time, which parallel workers cannot do.
    Paused,
}

/// Runs code under the snapshot of the statement that calls the function, so that a query inside sees what that
/// statement sees. It does not see what the statement itself changes, and in a STABLE function sees no more than that
/// may. After an error the abort of the transaction takes the snapshot away.
pub fn under_callers_snapshot<R>(code: impl FnOnce() -> R) -> R {
    // SAFETY: a transaction has one of the two snapshots.
    let snapshot = unsafe {
        if kept!(pg_sys::ActiveSnapshotSet()) {
            kept!(pg_sys::GetActiveSnapshot())
        } else {
            kept!(pg_sys::GetTransactionSnapshot())
        }
    };
    under_snapshot(snapshot, code)
}

fn under_snapshot<R>(snapshot: pg_sys::Snapshot, code: impl FnOnce() -> R) -> R {
    // SAFETY: the snapshot is active or registered, and stays so meanwhile. What is pushed is popped.
    unsafe {
        kept!(pg_sys::PushActiveSnapshot(snapshot));
        let result = code();
        kept!(pg_sys::PopActiveSnapshot());
        result
    }
}

/// A query of our own.
pub struct InnerQuery<'q> {
    desc: QueryDesc<'q>,
    text: &'q CStr,
}

impl<'q> InnerQuery<'q> {
    /// Makes a query ready to be started, under the active snapshot, in the current memory context. Raises what is
    /// wrong with its text.
    pub fn prepare(text: &'q CStr, arguments: &[Argument<'q>], pace: Pace) -> Self {
        let (plan, parameters) = plan(text, arguments, pace);
        Self::of_plan(plan, text, parameters)
    }

    /// The query that runs the plan of `text`, under the active snapshot.
    fn of_plan(plan: Tree<'q, pg_sys::PlannedStmt>, text: &'q CStr, parameters: Parameters<'q>) -> Self {
        let (instrument, no_environment) = (0, std::ptr::null_mut());
        // SAFETY: a snapshot is active; the plan, the text and the parameters live as long as the query, whose
        // descriptor is new.
        let desc = unsafe {
            QueryDesc::of_hook(kept!(pg_sys::CreateQueryDesc(
                plan.as_ptr(),
                text.as_ptr(),
                kept!(pg_sys::GetActiveSnapshot()),
                std::ptr::null_mut(),
                pg_sys::None_Receiver,
                parameters.as_ptr(),
                no_environment,
                instrument,
            )))
        };
        Self { desc, text }
    }

    /// What the executor's hooks get. Borrowed, so that nobody has it any more when the query is freed.
    pub fn desc(&self) -> QueryDesc<'_> {
        self.desc
    }

    /// Starts it.
    pub fn start(&self) {
        self.start_with(0);
    }

    fn start_with(&self, flags: u32) {
        assert!(!self.desc.is_started(), "a query is started once");
        let (desc, flags) = (self.desc.as_ptr(), flags as i32);
        let _counted = StartingExport::enter();
        // SAFETY: the query is ours, and not started.
        unsafe { kept!(pg_sys::ExecutorStart(desc, flags)) };
    }

    /// Runs it, once it is started.
    pub fn run(&self, run: RunArguments) {
        assert!(self.desc.is_started(), "a query is started before it runs");
        // SAFETY: the query is ours, and started.
        unsafe { compat::executor_run(self.desc.as_ptr(), run) };
    }

    /// Runs code that executes it: its own snapshot is active, and errors are told to come from it.
    pub fn within<R>(&self, code: impl FnOnce() -> R) -> R {
        under_snapshot(self.desc.snapshot(), || within(self.text, code))
    }

    /// Ends and frees it, once it is started and has been run as far as is wanted.
    pub fn finish(self) {
        assert!(self.desc.is_started(), "a query is started before it ends");
        let desc = self.desc.as_ptr();
        // SAFETY: the query is ours, started, and used no more.
        unsafe {
            self.within(|| {
                kept!(pg_sys::ExecutorFinish(desc));
                kept!(pg_sys::ExecutorEnd(desc));
            });
            kept!(pg_sys::FreeQueryDesc(desc));
        }
    }
}

/// Starts the query of a plan as EXPLAIN does, which runs nothing, and ends it: raises what would keep it from running,
/// above all a lack of permissions.
pub fn check_permitted<'q>(plan: Tree<'q, pg_sys::PlannedStmt>, text: &'q CStr, parameters: Parameters<'q>) {
    let query = InnerQuery::of_plan(plan, text, parameters);
    query.start_with(pg_sys::EXEC_FLAG_EXPLAIN_ONLY);
    let desc = query.desc.as_ptr();
    // SAFETY: the query is ours, started, and used no more.
    unsafe {
        kept!(pg_sys::ExecutorEnd(desc));
        kept!(pg_sys::FreeQueryDesc(desc));
    }
}

/// Parses, rewrites and plans one SELECT under the active snapshot, which will not be run. Raises what is wrong with
/// it.
pub fn plan<'q>(
    text: &'q CStr,
    arguments: &[Argument<'q>],
    pace: Pace,
) -> (Tree<'q, pg_sys::PlannedStmt>, Parameters<'q>) {
    let refuse = |found: String| -> ! { CacheError::not_one_select(found).raise() };
    let raw = one_select::parse_one(text).unwrap_or_else(|found| refuse(format!("{found} statements")));
    let (query, types) = OwnQuery::analyze(raw, text, arguments.iter().map(|argument| argument.type_oid));
    let given = arguments.len();
    if types.len() > given {
        CacheError::missing_parameter(given as i32 + 1, given).raise();
    }
    let parameters = Parameters::bind(arguments, &types);
    if let Some(found) = not_a_select(node_of(raw), &query) {
        refuse(found);
    }
    let options = if pace == Pace::Whole { pg_sys::CURSOR_OPT_PARALLEL_OK } else { 0 };
    let plan = query.rewrite().plan(options, parameters);
    // Rows may not be locked in a function that only reads, and the kind of the calling function is not known here.
    if !plan.rowMarks.is_null() {
        refuse("one that locks rows".into());
    }
    (plan, parameters)
}

/// What a statement is, if it is not a SELECT that only reads.
fn not_a_select(statement: Tree<'_, pg_sys::Node>, analyzed: &OwnQuery<'_>) -> Option<String> {
    if analyzed.has_modifying_with() {
        return Some("a WITH clause that changes data".into());
    }
    if statement.tag() != pg_sys::NodeTag::T_SelectStmt {
        return Some(command_name(statement));
    }
    (analyzed.command() != pg_sys::CmdType::CMD_SELECT).then(|| "SELECT INTO".into())
}
