//! A statement as far as the cache is concerned: its plan, with the verdict in it, and what it runs with. Whoever makes a question
//! vouches for its parts (`QueryDesc`, `Tree`), so they are read without vouching again. A plain value.

use std::ffi::{CStr, c_char};

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::fingerprint::Fingerprint;
use super::portal;
use super::row_bounds::Effort;
use crate::arrow::column::{self, Column, Records};
use crate::pg::query_desc::QueryDesc;
use crate::pg::row_type::RowType;
use crate::pg::tree::Tree;
use crate::query::statement_text::{Text, begins_with_select};
use crate::session;

/// A statement that asks the cache, valid for `'q`.
pub struct Question<'q> {
    plan: Tree<'q, pg_sys::PlannedStmt>,
    /// The text that it is part of, which ends in NUL.
    source: *const c_char,
    params: Option<Tree<'q, pg_sys::ParamListInfoData>>,
    snapshot: Option<&'q pg_sys::SnapshotData>,
    /// The text that stands for it, when that is not part of `source`.
    text: Option<&'q CStr>,
    only_asked: bool,
    effort: Effort,
    stays_open: bool,
    started_by_client: bool,
    planned_as: Option<Fingerprint>,
}

impl<'q> Question<'q> {
    /// The question that a query asks that is about to be started.
    pub fn of(desc: QueryDesc<'q>) -> Self {
        Self {
            plan: desc.plan(),
            source: desc.source(),
            // SAFETY: the parameters of a query are null or valid as long as it.
            params: unsafe { Tree::enter(desc.params()) },
            snapshot: desc.snapshot_data(),
            text: None,
            only_asked: session::explaining(),
            // EXPLAIN may run it, but shows what there is.
            effort: if session::explaining() { Effort::Look } else { Effort::Read },
            stays_open: false,
            started_by_client: false,
            planned_as: None,
        }
    }

    /// The question of a query without parameters that will not be executed: it does not count as a run. The plan's relations are
    /// locked, and the snapshot is registered or active.
    pub fn only_asked(
        plan: Tree<'q, pg_sys::PlannedStmt>,
        source: &'q CStr,
        snapshot: Option<&'q pg_sys::SnapshotData>,
    ) -> Self {
        Self {
            plan,
            source: source.as_ptr(),
            params: None,
            snapshot,
            text: None,
            only_asked: true,
            effort: Effort::Look,
            stays_open: false,
            started_by_client: false,
            planned_as: None,
        }
    }

    /// The question, and what may be done to find canonical bounds for it.
    pub fn with_effort(self, effort: Effort) -> Self {
        Self { effort, ..self }
    }

    /// The question, with the values of its parameters.
    pub fn with_params(self, params: Option<Tree<'q, pg_sys::ParamListInfoData>>) -> Self {
        Self { params, ..self }
    }

    /// The question, with a text that stands for it in the place of its own, if there is one.
    pub fn with_text(self, text: Option<&'q CStr>) -> Self {
        Self { text, ..self }
    }

    /// The question, and whether other statements may run between the start and the end of its query, whatever its portal says.
    pub fn staying_open(self, stays_open: bool) -> Self {
        Self { stays_open, ..self }
    }

    /// The question of a statement that a client has started: it is not looked up if such statements have always been too quick to be
    /// stored. `planned_as` is its fingerprint if it was planned for this execution.
    pub fn started_by_client(self, planned_as: Option<Fingerprint>) -> Self {
        Self { started_by_client: true, planned_as, ..self }
    }

    /// The plan.
    pub fn plan(&self) -> Tree<'q, pg_sys::PlannedStmt> {
        self.plan
    }

    /// The values of its parameters, if it has any.
    pub fn params(&self) -> Option<Tree<'q, pg_sys::ParamListInfoData>> {
        self.params
    }

    /// The snapshot that it runs under.
    pub fn snapshot(&self) -> Option<&'q pg_sys::SnapshotData> {
        self.snapshot
    }

    /// Will it not be executed? Then it does not count as a run.
    pub fn is_only_asked(&self) -> bool {
        self.only_asked
    }

    /// What may be done to find canonical bounds.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// May other statements run between its start and its end, whatever its portal says?
    pub fn stays_open(&self) -> bool {
        self.stays_open
    }

    /// Is it started, and are its rows read, within one message of the client? A bound portal is started by one and read by another.
    pub fn runs_in_one_message(&self) -> bool {
        !self.stays_open && !portal::may_be_read_later() && (!portal::is_bound() || session::executing_prepared())
    }

    /// Is it to be left alone if such statements are too quick? One that was planned for this execution was asked about then.
    pub fn may_be_skipped(&self) -> bool {
        self.started_by_client && self.planned_as.is_none()
    }

    /// By what its speed is remembered: the fingerprint of its text, if it was planned for this execution; else `form` stands in.
    pub fn fingerprint(&self, form: Fingerprint) -> Fingerprint {
        self.planned_as.unwrap_or(form)
    }

    /// Where its own text lies. The plan knows, except for a query inside a utility statement, whose own place stands in for it.
    pub fn own_text(&self) -> Text {
        let (mut location, mut length) = (self.plan.stmt_location, self.plan.stmt_len);
        if location <= 0 && length <= 0 {
            (location, length) = session::wrapped_text(self.source).unwrap_or((location, length));
        }
        // SAFETY: a question's text ends in NUL, and stays as long as the question.
        unsafe { Text::of(self.source, location, length) }
    }

    /// Does the text that a query is part of begin with its own, and that with the word SELECT? Then no hint stands before it.
    #[inline]
    pub fn begins_with_select(desc: QueryDesc<'_>) -> bool {
        let plan = desc.plan();
        // SAFETY: the text of a query ends in NUL, and stays as long as the query.
        begins_with_select(&unsafe { Text::of(desc.source(), plan.stmt_location, plan.stmt_len) })
    }

    /// The text that stands for it in the place of its own, if there is one.
    pub fn other_text(&self) -> Option<Text> {
        // SAFETY: a C string that stays as long as the question.
        self.text.map(|text| unsafe { Text::of(text.as_ptr(), 0, 0) })
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
