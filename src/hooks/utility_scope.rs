//! What a utility statement means to us while it runs: most hide whatever they execute (it is
//! nested), some are mere wrappers around a query of the client (EXECUTE, DECLARE CURSOR, FETCH, COPY),
//! EXPLAIN shows a query without running it for its rows, and COMMIT PREPARED makes the changes
//! of another session visible. Keeps nothing: what is to be undone lies on the frame of the hook.

use std::ffi::c_char;

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, NodeTag};

use super::previous::active;
use crate::functions::policy_label;
use crate::invalidation::{foreign, redefinition, rows, targets};
use crate::lookup::portal;
use crate::pg::compat;
use crate::pg::server;
use crate::pg::tree::{Tree, child, children};
use crate::report::{decision_log, tally};
use crate::session::{self, Outside, Status, WrappedText, Wrapper, Wrapping};
use crate::{copy, shmem};

/// A utility statement of a hook, valid for `'s`.
#[derive(Clone, Copy)]
pub struct Utility<'s> {
    plan: Tree<'s, pg_sys::PlannedStmt>,
    statement: Tree<'s, pg_sys::Node>,
    /// The text that it is part of, which ends in NUL.
    source: *const c_char,
}

impl Utility<'_> {
    /// The statement of a hook.
    ///
    /// # Safety
    /// The arguments must be those of a ProcessUtility hook, and the value must not be used once the server has run the
    /// statement, which may change it.
    pub unsafe fn of_hook(plan: *const pg_sys::PlannedStmt, source: *const c_char) -> Self {
        // SAFETY: the caller promises that the plan is valid, so it is not null.
        let plan = unsafe { Tree::enter(plan).unwrap_unchecked() };
        // SAFETY: the plan of a utility statement has that statement.
        let statement = unsafe { Tree::enter(plan.utilityStmt).unwrap_unchecked() };
        Self { plan, statement, source }
    }

    /// Returns true if the statement only tells the transaction where to go. BEGIN, COMMIT, SAVEPOINT and the like run
    /// nothing inside: the server acts on them when they are over. So there is nothing to undo, and every transaction
    /// is spared the effort.
    #[inline]
    pub fn only_steers_transaction(self) -> bool {
        use pg_sys::TransactionStmtKind::{TRANS_STMT_COMMIT_PREPARED, TRANS_STMT_ROLLBACK_PREPARED};
        self.statement.as_a::<pg_sys::TransactionStmt>().is_some_and(|statement| {
            !matches!(statement.kind, TRANS_STMT_COMMIT_PREPARED | TRANS_STMT_ROLLBACK_PREPARED)
        })
    }

    /// Where its text lies.
    fn text(self) -> WrappedText {
        WrappedText { source: self.source, location: self.plan.stmt_location, length: self.plan.stmt_len }
    }

    /// What DECLARE CURSOR is to its query.
    fn cursor(self) -> Wrapper {
        let is_held_at_once = self.statement.as_a::<pg_sys::DeclareCursorStmt>().is_some_and(|it| holds_at_once(&it));
        Wrapper::Cursor { text: self.text(), is_held_at_once }
    }

    /// What COPY is to its query; `None` if it does not copy the rows of a query to somewhere.
    fn copy(self) -> Option<Wrapper> {
        let copy = self.statement.as_a::<pg_sys::CopyStmt>()?;
        child!(copy.query).filter(|query| query.tag() == NodeTag::T_SelectStmt)?;
        Some(Wrapper::Copy { text: self.text(), to_client: copy::shape_for_client(copy) })
    }

    /// The statement for the server, in the place of one that copies to Arrow.
    fn without_arrow(self) -> Option<*mut pg_sys::PlannedStmt> {
        if self.statement.tag() == NodeTag::T_CopyStmt { copy::enter(self.plan) } else { None }
    }
}

/// Returns true if the cursor is WITH HOLD, and its message over with the statement, so that the commit that follows
/// reads it to its end. A message of the extended protocol leaves open whether more follow before the commit.
fn holds_at_once(cursor: &pg_sys::DeclareCursorStmt) -> bool {
    // Several statements of one message are a transaction block (postgres.c, `exec_simple_query`).
    cursor.options & pg_sys::CURSOR_OPT_HOLD as i32 != 0
        && portal::is_of_simple_protocol()
        && !server::IsTransactionBlock()
}

/// What to undo when the statement is over. Plain data, so that an error may jump over it.
#[derive(Clone, Copy)]
pub struct Scope {
    nested: Option<Outside>,
    wrapping: Option<Wrapping>,
    /// It is COMMIT PREPARED, and this was the end of what the session had written to WAL before.
    commits_prepared: Option<u64>,
    /// A statement that changes relations by their names; else null. What the names stand for was asked before the
    /// server has locked it, so it is asked again afterwards.
    changes_names: *const pg_sys::Node,
    /// The statement for the server, in the place of one that copies to Arrow; else null.
    replaced: *mut pg_sys::PlannedStmt,
    /// It copies rows to a table, and they are noted.
    notes_rows: bool,
}

impl Scope {
    /// Nothing to undo.
    const NONE: Self = Self {
        nested: None,
        wrapping: None,
        commits_prepared: None,
        changes_names: std::ptr::null(),
        replaced: std::ptr::null_mut(),
        notes_rows: false,
    };

    /// The statement that the server is to run: `plan`, or what stands in its place.
    pub fn statement(self, plan: *mut pg_sys::PlannedStmt) -> *mut pg_sys::PlannedStmt {
        if self.replaced.is_null() { plan } else { self.replaced }
    }

    /// Returns true if there is anything to do once the statement has succeeded.
    pub fn has_aftermath(self) -> bool {
        !self.changes_names.is_null()
    }
}

/// A statement of the client has begun, and is bypassed.
#[inline]
fn begin_bypass(utility: Utility<'_>, reason: Reason) {
    session::begin_statement(reason);
    let query_id = compat::query_id(&utility.plan);
    if active()
        && !decision_log::is_wanted()
        && tally::is_counted_once(reason, query_id)
        && let Some(counters) = shmem::own_counters()
    {
        tally::count_once(counters, reason);
    } else {
        tell_bypass(utility, reason);
    }
}

/// Counts and logs that a statement is bypassed.
#[inline(never)]
fn tell_bypass(utility: Utility<'_>, reason: Reason) {
    if active()
        && let Some(store) = shmem::store()
    {
        tally::count_bypass(&store, reason, compat::query_id(&utility.plan));
    }
    decision_log::note(Status::Bypass(reason), &utility.plan);
}

/// Notes a statement that only steers its transaction.
#[inline]
pub fn note_steering(utility: Utility<'_>) {
    if session::at_top_level() {
        begin_bypass(utility, Reason::UtilityStatement);
    }
}

/// Enters a utility statement. `leave` is to be called on every path out.
pub fn enter(utility: Utility<'_>) -> Scope {
    let mut scope = Scope::NONE;
    if let Some(statement) = utility.without_arrow() {
        if session::at_top_level() {
            session::begin_statement(Reason::NotSelect);
        }
        scope.replaced = statement;
        scope.wrapping = Some(session::enter_wrapping(Wrapper::Arrow));
        return scope;
    }
    match utility.statement.tag() {
        // What it wraps is the function's that runs it, not the client's.
        NodeTag::T_ExecuteStmt | NodeTag::T_DeclareCursorStmt | NodeTag::T_ExplainStmt if !session::at_top_level() => {
            scope.nested = Some(session::enter_utility());
        }
        NodeTag::T_ExecuteStmt => scope.wrapping = Some(session::enter_wrapping(Wrapper::Execute)),
        NodeTag::T_FetchStmt | NodeTag::T_PrepareStmt | NodeTag::T_DeallocateStmt | NodeTag::T_ClosePortalStmt => {}
        NodeTag::T_DeclareCursorStmt => {
            scope.wrapping = Some(session::enter_wrapping(utility.cursor()));
        }
        NodeTag::T_ExplainStmt => {
            begin_bypass(utility, Reason::Explain);
            if makes_a_table(utility.statement) {
                // Without EXPLAIN the query is nested, too.
                scope.nested = Some(session::enter_utility());
                return scope;
            }
            scope.wrapping = Some(session::enter_wrapping(Wrapper::Explain(utility.text())));
        }
        tag => match utility.copy().filter(|_| session::at_top_level()) {
            Some(copy) => scope.wrapping = Some(session::enter_wrapping(copy)),
            None => enter_nesting(utility, tag, &mut scope),
        },
    }
    scope
}

/// Returns true for an EXPLAIN of CREATE TABLE AS and its like.
fn makes_a_table(explain: Tree<'_, pg_sys::Node>) -> bool {
    let explained = explain.as_a::<pg_sys::ExplainStmt>().and_then(|explain| child!(explain.query));
    let query = explained.and_then(|query| query.as_a::<pg_sys::Query>());
    let utility = query.and_then(|query| child!(query.utilityStmt));
    utility.is_some_and(|utility| utility.tag() == NodeTag::T_CreateTableAsStmt)
}

/// Enters a statement in which whatever it executes is nested.
fn enter_nesting(utility: Utility<'_>, tag: NodeTag, scope: &mut Scope) {
    let statement = utility.statement;
    if session::at_top_level() {
        begin_bypass(utility, Reason::UtilityStatement);
    }
    if may_redefine(tag) {
        session::note_definition_change();
    }
    // What may raise comes before there is something to undo.
    announce_effects(statement);
    scope.notes_rows = statement.as_a::<pg_sys::CopyStmt>().and_then(target_of).is_some_and(rows::begin_copy);
    if matches!(tag, NodeTag::T_CopyStmt | NodeTag::T_TruncateStmt) {
        scope.changes_names = statement.as_ptr();
    }
    let kind = statement.as_a::<pg_sys::TransactionStmt>().map(|statement| statement.kind);
    if kind == Some(pg_sys::TransactionStmtKind::TRANS_STMT_COMMIT_PREPARED) {
        scope.commits_prepared = Some(end_of_written());
        // It has no transaction of its own that writes; what it commits is as good as written by this session.
        session::note_writing();
        redefinition::begin_commit_prepared();
    }
    scope.nested = Some(session::enter_utility());
}

/// Returns true if a statement of this kind may change a definition by itself. What others run inside comes here as
/// well.
fn may_redefine(tag: NodeTag) -> bool {
    !matches!(
        tag,
        NodeTag::T_TransactionStmt
            | NodeTag::T_VariableSetStmt
            | NodeTag::T_VariableShowStmt
            | NodeTag::T_CopyStmt
            | NodeTag::T_DoStmt
            | NodeTag::T_CallStmt
            | NodeTag::T_LockStmt
            | NodeTag::T_ListenStmt
            | NodeTag::T_UnlistenStmt
            | NodeTag::T_NotifyStmt
            | NodeTag::T_ConstraintsSetStmt
            | NodeTag::T_VacuumStmt
            | NodeTag::T_CheckPointStmt
            | NodeTag::T_LoadStmt
    )
}

/// Prepares for what some statements do that no later hook tells.
fn announce_effects(statement: Tree<'_, pg_sys::Node>) {
    if let Some(label) = statement.as_a::<pg_sys::SecLabelStmt>() {
        policy_label::before_security_label(label);
    } else if let Some(copy) = statement.as_a::<pg_sys::CopyStmt>() {
        if let Some(relation) = target_of(copy) {
            targets::note_named(relation);
        }
    } else if let Some(truncate) = statement.as_a::<pg_sys::TruncateStmt>() {
        for name in children!(truncate.relations as RangeVar) {
            if let Some(relation) = targets::changeable(Some(name), pg_sys::ACL_TRUNCATE) {
                foreign::note_reached(relation);
            }
        }
    }
}

/// The table that COPY FROM will be allowed to write to.
fn target_of(copy: Tree<'_, pg_sys::CopyStmt>) -> Option<pg_sys::Oid> {
    if copy.is_from { targets::changeable(child!(copy.relation), pg_sys::ACL_INSERT) } else { None }
}

/// Leaves a utility statement, after an error too, if it has `raised` one. Nothing here can raise.
pub fn leave(scope: Scope, raised: bool) {
    if scope.notes_rows {
        rows::end_copy(raised);
    }
    if let Some(outside) = scope.nested {
        session::leave_utility(outside);
    }
    if !scope.replaced.is_null() {
        copy::leave();
    }
    if let Some(outer) = scope.wrapping {
        session::leave_wrapping(outer);
    }
    if let Some(written_before) = scope.commits_prepared {
        // What it has redefined is known only to the session that prepared it. An error may come after its end as well,
        // but whoever was refused has ended nothing: an end is written to WAL.
        if raised && end_of_written() == written_before {
            redefinition::give_up();
        } else {
            redefinition::end();
        }
    }
}

/// The end of what this session has written to WAL.
fn end_of_written() -> u64 {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::XactLastRecEnd }
}

/// The statement has succeeded: what its names stand for is asked again.
pub fn succeed(scope: Scope) {
    // SAFETY: null, or the statement that has just been executed, which is still there.
    if let Some(statement) = unsafe { Tree::enter(scope.changes_names) } {
        announce_effects(statement);
    }
}
