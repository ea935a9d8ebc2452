//! A query that is executed, as the executor's hooks get it. The hook vouches for it once (`QueryDesc::of_hook`); from there on its
//! parts are read and replaced without vouching again. The executor owns it; only the process that executes it sees it.

use std::ffi::c_char;
use std::marker::PhantomData;
use std::ptr::NonNull;

use pgrx::pg_sys;

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
    /// `desc` must be the argument of an executor hook, used for as long as that hook runs; or otherwise valid for `'q`.
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

    /// What it does.
    pub fn operation(self) -> pg_sys::CmdType::Type {
        // SAFETY: `of_hook` was promised that it is valid.
        unsafe { (*self.as_ptr()).operation }
    }

    /// Its plan.
    pub fn plan(self) -> Tree<'q, pg_sys::PlannedStmt> {
        // SAFETY: `of_hook` was promised that it is valid; a query that reached the executor has a plan, which lives as long.
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
        // SAFETY: `of_hook` was promised that it is valid.
        unsafe { (*self.as_ptr()).sourceText }
    }

    /// Its parameters, or null.
    pub fn params(self) -> pg_sys::ParamListInfo {
        // SAFETY: `of_hook` was promised that it is valid.
        unsafe { (*self.as_ptr()).params }
    }

    /// The snapshot that it runs under, which stays registered as long as the query is valid; `None` for utility statements.
    pub fn snapshot(self) -> Option<&'q pg_sys::SnapshotData> {
        // SAFETY: `of_hook` was promised that it is valid, and a query has registered its snapshot.
        unsafe { (*self.as_ptr()).snapshot.as_ref() }
    }

    /// Does it run beside relations that only it knows: the transition tables of a trigger?
    pub fn has_transition_tables(self) -> bool {
        // SAFETY: `of_hook` was promised that it is valid.
        unsafe { !(*self.as_ptr()).queryEnv.is_null() }
    }

    /// Where its rows go.
    pub fn receiver(self) -> *mut pg_sys::DestReceiver {
        // SAFETY: `of_hook` was promised that it is valid.
        unsafe { (*self.as_ptr()).dest }
    }

    /// The state of its execution; `None` before it was started.
    pub fn estate(self) -> Option<NonNull<pg_sys::EState>> {
        // SAFETY: `of_hook` was promised that it is valid.
        NonNull::new(unsafe { (*self.as_ptr()).estate })
    }
}

/// A query that is about to be started: its plan may still be replaced.
pub struct Unstarted<'q>(QueryDesc<'q>);

impl<'q> Unstarted<'q> {
    /// The query of a hook.
    ///
    /// # Safety
    /// `desc` must be the argument of an ExecutorStart hook, or otherwise valid for `'q`. The value must not be used once the executor has
    /// seen the query.
    pub unsafe fn of_start_hook(desc: *mut pg_sys::QueryDesc) -> Self {
        // SAFETY: the caller promises that it is valid.
        Self(unsafe { QueryDesc::of_hook(desc) })
    }

    /// The query.
    pub fn query(&self) -> QueryDesc<'q> {
        self.0
    }
}

impl<'q> std::ops::Deref for Unstarted<'q> {
    type Target = QueryDesc<'q>;

    fn deref(&self) -> &QueryDesc<'q> {
        &self.0
    }
}
