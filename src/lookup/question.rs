//! A statement as far as the cache is concerned: its plan, with the verdict in it, and what it runs with. Whoever makes a question
//! vouches for its parts (`QueryDesc`, `Tree`), so they are read without vouching again. A plain value.

use std::ffi::{CStr, c_char};

use arrow_cache_core::{CacheKey, Reason};
use pgrx::pg_sys;

use super::fingerprint::Fingerprint;
use crate::arrow::column::{self, Column, Records};
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::Tree;
use crate::query::hint::Terms;
use crate::query::key::{self, Asked, HashedText};
use crate::query::statement_text::Text;
use crate::query::{Verdict, parameters, plan_marker, relations};
use crate::session;

/// A statement that asks the cache, valid for `'q`.
pub struct Question<'q> {
    plan: Tree<'q, pg_sys::PlannedStmt>,
    /// The text that it is part of, which ends in NUL.
    source: *const c_char,
    /// Its parameters, or null.
    params: pg_sys::ParamListInfo,
    snapshot: Option<&'q pg_sys::SnapshotData>,
    /// The text that stands for it, when that is not part of `source`.
    text: Option<&'q CStr>,
    only_asked: bool,
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
            params: desc.params(),
            snapshot: desc.snapshot(),
            text: None,
            only_asked: session::explaining(),
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
            params: std::ptr::null_mut(),
            snapshot,
            text: None,
            only_asked: true,
            stays_open: false,
            started_by_client: false,
            planned_as: None,
        }
    }

    /// The question, with a text that stands for it in the place of its own, if there is one.
    pub fn with_text(self, text: Option<&'q CStr>) -> Self {
        Self { text, ..self }
    }

    /// The question of a query between whose start and end other statements may run, whatever its portal says.
    pub fn staying_open(self) -> Self {
        Self { stays_open: true, ..self }
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

    /// The snapshot that it runs under.
    pub fn snapshot(&self) -> Option<&'q pg_sys::SnapshotData> {
        self.snapshot
    }

    /// Will it not be executed? Then it does not count as a run.
    pub fn is_only_asked(&self) -> bool {
        self.only_asked
    }

    /// May other statements run between its start and its end, whatever its portal says?
    pub fn stays_open(&self) -> bool {
        self.stays_open
    }

    /// Does a text stand for it that is not its own?
    pub fn has_other_text(&self) -> bool {
        self.text.is_some()
    }

    /// Is it to be left alone if such statements are too quick? One that was planned for this execution was asked about then.
    pub fn may_be_skipped(&self) -> bool {
        self.started_by_client && self.planned_as.is_none()
    }

    /// By what its speed is remembered: the fingerprint of its text, if it was planned for this execution; else `form` stands in.
    pub fn fingerprint(&self, form: Fingerprint) -> Fingerprint {
        self.planned_as.unwrap_or(form)
    }

    /// Does it run without values of parameters?
    pub fn has_no_parameters(&self) -> bool {
        // SAFETY: a question's parameters are null or valid.
        unsafe { parameters::count(self.params) == 0 }
    }

    /// The verdict that its plan carries.
    pub fn verdict(&self) -> Verdict {
        // SAFETY: a question's plan is valid.
        unsafe { plan_marker::read(self.plan.as_ptr()) }
    }

    /// Where its own text lies. The plan knows, except for a query inside a utility statement, whose own place stands in for it.
    pub fn own_text(&self) -> Text {
        let (mut location, mut length) = (self.plan.stmt_location, self.plan.stmt_len);
        if location <= 0 && length <= 0 {
            (location, length) = session::wrapped_text(self.source).unwrap_or((location, length));
        }
        Text { source: self.source, location, length }
    }

    /// The terms that a text of the question asks for.
    ///
    /// # Errors
    /// The text asks to be left alone.
    pub fn terms(&self, text: Text) -> Result<Terms, Reason> {
        // SAFETY: a question's text ends in NUL.
        unsafe { Terms::of(text) }
    }

    /// The normalized text by which the answer is found. `own` is its own text.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn hashed_text(&self, own: Text, seed: u64) -> Result<HashedText, Reason> {
        let text = self.text.map_or(own, |text| Text { source: text.as_ptr(), location: 0, length: 0 });
        // SAFETY: a question's text ends in NUL.
        Ok(unsafe { HashedText::of(text, seed) }?)
    }

    /// The key of the answer.
    ///
    /// # Errors
    /// The reason to bypass.
    pub fn key(&self, asked: &Asked, text: &HashedText, seed: u64) -> Result<CacheKey, Reason> {
        // SAFETY: a question's parameters are null or valid.
        unsafe { key::of(asked, text, self.params, seed) }
    }

    /// The relations of its plan and `others`, each once, in ascending order.
    pub fn relations(&self, others: Vec<u32>) -> Vec<u32> {
        // SAFETY: a question's plan is valid.
        unsafe { relations::of_plan(self.plan.as_ptr(), others) }
    }

    /// Are all of these relations its plan's own?
    pub fn reads_all(&self, relations: &[u32]) -> bool {
        // SAFETY: a question's plan is valid.
        unsafe { relations::are_of_plan(relations, self.plan.as_ptr()) }
    }

    /// The columns of the answer.
    ///
    /// # Errors
    /// There is a type among them whose values are not stored.
    pub fn columns(&self) -> Result<Vec<Column>, Reason> {
        // SAFETY: a question's plan is valid, with a tree of its own.
        unsafe {
            let descriptor = pg_sys::ExecCleanTypeFromTL((*self.plan.planTree).targetlist);
            column::columns_of(descriptor, Records::Refused)
        }
    }
}
