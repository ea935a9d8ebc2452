//! A statement as far as the cache is concerned: its plan, with the verdict in it, and what it runs with. Whoever makes
//! a question vouches for its parts (`QueryDesc`, `Tree`), so they are read without vouching again. A plain value.

use std::ffi::{CStr, c_char};

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::fingerprint::Fingerprint;
use super::portal;
use crate::arrow::column::{self, Column, Records};
use crate::pg::query_desc::QueryDesc;
use crate::pg::row_type::RowType;
use crate::pg::server;
use crate::pg::tree::{Tree, child, children};
use crate::query::statement_text::{Text, begins_with_select};
use crate::session;

/// A statement that asks the cache, valid for `'q`.
pub struct Question<'q> {
    /// The plan.
    pub plan: Tree<'q, pg_sys::PlannedStmt>,
    /// The values of its parameters, if it has any.
    pub params: Option<Tree<'q, pg_sys::ParamListInfoData>>,
    /// The snapshot that it runs under.
    pub snapshot: Option<&'q pg_sys::SnapshotData>,
    /// Where its own text lies.
    pub own_text: Text,
    /// It will not be executed, so that it does not count as a run.
    pub only_asked: bool,
    /// Other statements may run between its start and its end, whatever its portal says.
    pub stays_open: bool,
    /// A client has started it: it is not looked up if such statements have always been too quick to be stored.
    pub started_by_client: bool,
    /// Its fingerprint, if it was planned for this execution.
    pub planned_as: Option<Fingerprint>,
}

impl<'q> Question<'q> {
    /// The question that a query asks that is about to be started.
    pub fn of(desc: QueryDesc<'q>) -> Self {
        Self {
            // SAFETY: the parameters of a query are null or valid as long as it.
            params: unsafe { Tree::enter(desc.params()) },
            only_asked: session::explaining(),
            ..Self::of_plan(desc.plan(), desc.source(), desc.snapshot_data())
        }
    }

    /// The question of a query without parameters that will not be executed. The plan's relations are locked, and the
    /// snapshot is registered or active.
    pub fn only_asked(
        plan: Tree<'q, pg_sys::PlannedStmt>,
        source: &'q CStr,
        snapshot: Option<&'q pg_sys::SnapshotData>,
    ) -> Self {
        Self::of_plan(plan, source.as_ptr(), snapshot)
    }

    /// As `only_asked`. The source, a text that the query is part of, must end in NUL and stay as long as the question.
    #[inline(always)]
    fn of_plan(
        plan: Tree<'q, pg_sys::PlannedStmt>,
        source: *const c_char,
        snapshot: Option<&'q pg_sys::SnapshotData>,
    ) -> Self {
        // The plan knows where its text lies, except for a query inside a utility statement, whose own place stands in.
        let (mut location, mut length) = (plan.stmt_location, plan.stmt_len);
        if location <= 0 && length <= 0 {
            (location, length) = session::wrapped_text(source).unwrap_or((location, length));
        }
        Self {
            plan,
            params: None,
            snapshot,
            // SAFETY: both callers have such a source.
            own_text: unsafe { Text::of(source, location, length) },
            only_asked: true,
            stays_open: false,
            started_by_client: false,
            planned_as: None,
        }
    }

    /// Returns true if it is started, and its rows are read, within one message of the client. A bound portal is
    /// started by one and read by another.
    pub fn runs_in_one_message(&self) -> bool {
        !self.stays_open && !portal::may_be_read_later() && (!portal::is_bound() || session::executing_prepared())
    }

    /// Returns true if it is to be left alone when such statements are too quick. One that was planned for this
    /// execution was asked about then.
    pub fn may_be_skipped(&self) -> bool {
        self.started_by_client && self.planned_as.is_none()
    }

    /// By what its speed is remembered: the fingerprint of its text, if it was planned for this execution; else `form`
    /// stands in.
    pub fn fingerprint(&self, form: Fingerprint) -> Fingerprint {
        self.planned_as.unwrap_or(form)
    }

    /// Returns true if the text that a query is part of begins with its own, and that with the word SELECT. Then no
    /// hint stands before it.
    #[inline]
    pub fn begins_with_select(desc: QueryDesc<'_>) -> bool {
        let plan = desc.plan();
        // SAFETY: the text of a query ends in NUL, and stays as long as the query.
        begins_with_select(&unsafe { Text::of(desc.source(), plan.stmt_location, plan.stmt_len) })
    }

    /// Returns true if the answer has these columns.
    pub fn has_columns(&self, columns: &[Column]) -> bool {
        let plan = self.plan;
        let Some(top) = child!(plan.planTree) else { return false };
        let mut rest = columns.iter();
        let mut targets = children!(top.targetlist as TargetEntry).filter(|target| !target.resjunk);
        targets.all(|target| {
            // SAFETY: an expression of a valid plan.
            let own = unsafe { (server::exprType(target.expr.cast()), server::exprTypmod(target.expr.cast())) };
            rest.next().is_some_and(|column| (column.type_oid, column.typmod) == own)
        }) && rest.next().is_none()
    }

    /// The columns of the answer.
    ///
    /// # Errors
    /// There is a type among them whose values are not stored.
    pub fn columns(&self) -> Result<Vec<Column>, Reason> {
        // SAFETY: a question's plan is valid, with a tree of its own; the row type is made here.
        let row_type = unsafe { RowType::of(kept!(pg_sys::ExecCleanTypeFromTL((*self.plan.planTree).targetlist))) };
        column::columns_of(row_type, Records::Stored)
    }
}
