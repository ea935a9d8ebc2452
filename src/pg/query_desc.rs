//! A query that is executed, as the executor's hooks get it. The hook vouches for it once (`QueryDesc::of_hook`); from
//! there on its parts are read and replaced without vouching again. The executor owns it; only the process that
//! executes it sees it.

use std::ffi::c_char;
use std::marker::PhantomData;
use std::ptr::NonNull;

use pgrx::pg_sys;

use super::row_type::RowType;
use super::tree::Tree;

/// A query that is about to be started, or is under way, valid for `'q`.
#[derive(Clone, Copy)]
pub struct QueryDesc<'q> {
    desc: NonNull<pg_sys::QueryDesc>,
    valid: PhantomData<&'q pg_sys::QueryDesc>,
}

impl<'q> QueryDesc<'q> {
    /// The query of a hook.
    ///
    /// # Safety
    /// `desc` must be the argument of an executor hook, used for as long as that hook runs; or otherwise valid for
    /// `'q`.
    pub unsafe fn of_hook(desc: *mut pg_sys::QueryDesc) -> Self {
        // SAFETY: the caller promises that it is valid, so it is not null.
        Self { desc: unsafe { NonNull::new_unchecked(desc) }, valid: PhantomData }
    }

    /// As the server knows it.
    pub fn as_ptr(self) -> *mut pg_sys::QueryDesc {
        self.desc.as_ptr()
    }

    /// What tells it from every other query under way.
    pub fn address(self) -> usize {
        self.desc.as_ptr() as usize
    }

    fn fields(&self) -> &pg_sys::QueryDesc {
        // SAFETY: `of_hook` was promised that it is valid.
        unsafe { self.desc.as_ref() }
    }

    /// What it does.
    pub fn operation(self) -> pg_sys::CmdType::Type {
        self.fields().operation
    }

    /// Its plan.
    pub fn plan(self) -> Tree<'q, pg_sys::PlannedStmt> {
        // SAFETY: `of_hook` was promised that it is valid; a query that reached the executor has a plan, which lives as
        // long.
        unsafe { Tree::enter((*self.as_ptr()).plannedstmt).unwrap_unchecked() }
    }

    /// Puts another plan in the place of its own, before the executor sees it.
    ///
    /// # Safety
    /// The query must not have been started; the plan must be valid as long as the query.
    pub unsafe fn set_plan(self, plan: *mut pg_sys::PlannedStmt) {
        // SAFETY: `of_hook` was promised that it is valid.
        unsafe { (*self.as_ptr()).plannedstmt = plan }
    }

    /// The text that it is part of.
    pub fn source(self) -> *const c_char {
        self.fields().sourceText
    }

    /// Its parameters, or null.
    pub fn params(self) -> pg_sys::ParamListInfo {
        self.fields().params
    }

    /// The snapshot that it runs under.
    pub fn snapshot(self) -> pg_sys::Snapshot {
        self.fields().snapshot
    }

    /// What the snapshot says; `None` if it runs under none.
    pub fn snapshot_data(self) -> Option<&'q pg_sys::SnapshotData> {
        // SAFETY: a query has registered its snapshot.
        unsafe { self.snapshot().as_ref() }
    }

    /// Returns true if it runs beside relations that only it knows: the transition tables of a trigger.
    pub fn has_transition_tables(self) -> bool {
        !self.fields().queryEnv.is_null()
    }

    /// Where its rows go.
    pub fn receiver(self) -> *mut pg_sys::DestReceiver {
        self.fields().dest
    }

    /// Puts another receiver in the place of its own.
    ///
    /// # Safety
    /// The receiver must be valid for as long as it stays there.
    pub unsafe fn set_receiver(self, receiver: *mut pg_sys::DestReceiver) {
        // SAFETY: `of_hook` was promised that the query is valid.
        unsafe { (*self.as_ptr()).dest = receiver }
    }

    /// The memory context that the descriptor itself lies in. It outlives the execution.
    pub fn own_context(self) -> pg_sys::MemoryContext {
        // SAFETY: the server allocates descriptors with palloc (tcop/pquery.c, `CreateQueryDesc`).
        unsafe { pg_sys::GetMemoryChunkContext(self.as_ptr().cast()) }
    }

    /// The state of its execution; `None` before it was started.
    pub fn estate(self) -> Option<NonNull<pg_sys::EState>> {
        NonNull::new(self.fields().estate)
    }

    /// Returns true if the executor has started it, and has not ended it since.
    pub fn is_started(self) -> bool {
        self.estate().is_some()
    }

    /// The type of its rows, once it is started.
    pub fn row_type(self) -> Option<RowType<'q>> {
        // SAFETY: a query that is started has a descriptor of its rows, which lives until the query ends.
        self.is_started().then(|| unsafe { RowType::of((*self.as_ptr()).tupDesc) })
    }

    /// The memory that goes when it ends, once it is started.
    pub fn memory(self) -> Option<pg_sys::MemoryContext> {
        // SAFETY: the state of a query that is started is valid.
        self.estate().map(|state| unsafe { (*state.as_ptr()).es_query_cxt })
    }

    /// The topmost node of its execution; null before it was started.
    pub fn plan_state(self) -> *mut pg_sys::PlanState {
        self.fields().planstate
    }

    /// The rows that its plan has given in the present run; 0 before it is started.
    pub fn processed(self) -> u64 {
        // SAFETY: the state of a query that is started is valid.
        self.estate().map_or(0, |state| unsafe { (*state.as_ptr()).es_processed })
    }
}
