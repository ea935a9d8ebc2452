//! An export that a set-returning function makes batch by batch, as its rows are asked for.
//!
//! The inner query stays open between the calls, as that of a SQL function does: under the resource owner of the portal
//! that calls, with its snapshot active only while it runs. Whatever ends the outer query ends it, too: the last row, a
//! LIMIT outside, or an error, after which there is nothing left to do but to free memory.

use std::ffi::CStr;

use arrow_cache_core::ExportOptions;
use pgrx::{PgMemoryContexts, pg_sys};

use super::inner::{self, Pace};
use super::run::{self, Export};
use super::stream::Output;
use crate::lookup::Question;
use crate::pg::error_passing::{edge, kept};
use crate::pg::query_desc::QueryDesc;
use crate::pg::{compat, server};

/// The inner query of a set-returning function.
struct Inner {
    query_desc: *mut pg_sys::QueryDesc,
    /// The expression context of the call, which tells when it is not asked for any more.
    caller: *mut pg_sys::ExprContext,
    /// It is started and not ended.
    open: bool,
}

/// An export that pauses whenever its output wants no more.
pub struct Paused<O: Output + Default + 'static> {
    inner: *mut Inner,
    /// Null when the export is over, and its output taken.
    export: *mut Export<O>,
    rest: O,
}

impl<O: Output + Default + 'static> Paused<O> {
    /// Starts an export.
    ///
    /// # Safety
    /// `call` must be the first call of a set-returning function, in the memory context that lives through all of them.
    pub unsafe fn start(call: pg_sys::FunctionCallInfo, text: &CStr, options: &ExportOptions, output: O) -> Self {
        let store = run::store();
        // SAFETY: the steps that PostgreSQL itself takes with a query; a set-returning function is called with a ReturnSetInfo.
        unsafe {
            let context = pg_sys::CurrentMemoryContext;
            let text = CStr::from_ptr(pg_sys::pstrdup(text.as_ptr()));
            inner::push_callers_snapshot();
            let (query_desc, export) = inner::within(text, || {
                let query_desc = inner::prepare(text, &[], Pace::Paused);
                let question = Question::of(QueryDesc::of_hook(query_desc)).staying_open();
                let decision = run::decide(&store, query_desc, &question);
                kept!(server::ExecutorStart(query_desc, 0));
                (query_desc, Export::begin(query_desc, decision, options, output))
            });
            pg_sys::PopActiveSnapshot();
            let caller = (*(*call).resultinfo.cast::<pg_sys::ReturnSetInfo>()).econtext;
            let inner =
                PgMemoryContexts::For(context).leak_and_drop_on_delete(Inner { query_desc, caller, open: true });
            pg_sys::RegisterExprContextCallback(caller, Some(caller_gone), pg_sys::Datum::from(inner));
            Self { inner, export, rest: O::default() }
        }
    }

    /// The output, with what could be delivered so far. Each call runs the query on until the output wants no more. The
    /// second value says whether all has been delivered.
    pub fn advance(&mut self) -> (&mut O, bool) {
        if self.export.is_null() {
            return (&mut self.rest, true);
        }
        // SAFETY: the export lives until the executor is ended, which is done here or by `caller_gone`; after that nobody
        // asks for more.
        unsafe {
            let export = &mut *self.export;
            if !export.output().wants_more() {
                return (export.output(), false);
            }
            let query_desc = (*self.inner).query_desc;
            pg_sys::PushActiveSnapshot((*query_desc).snapshot);
            inner::within((*self.inner).text(), || {
                let (direction, count) = export.before_run(query_desc);
                compat::executor_run(query_desc, direction, count, false);
                export.after_run(query_desc);
            });
            pg_sys::PopActiveSnapshot();
            if !export.is_done() {
                return (export.output(), false);
            }
            self.rest = std::mem::take(export.output());
            self.export = std::ptr::null_mut();
            pg_sys::UnregisterExprContextCallback(
                (*self.inner).caller,
                Some(caller_gone),
                pg_sys::Datum::from(self.inner),
            );
            (*self.inner).end();
        }
        (&mut self.rest, true)
    }
}

impl Inner {
    /// The query's text.
    ///
    /// # Safety
    /// As `end`.
    unsafe fn text<'a>(&self) -> &'a CStr {
        // SAFETY: the text was copied to where this lies.
        unsafe { CStr::from_ptr((*self.query_desc).sourceText) }
    }

    /// Ends the query, once.
    ///
    /// # Safety
    /// Called in the portal that started it.
    unsafe fn end(&mut self) {
        if !std::mem::replace(&mut self.open, false) {
            return;
        }
        // SAFETY: as the caller promises.
        unsafe {
            let query_desc = self.query_desc;
            pg_sys::PushActiveSnapshot((*query_desc).snapshot);
            inner::within(self.text(), || {
                kept!(server::ExecutorFinish(query_desc));
                kept!(server::ExecutorEnd(query_desc));
            });
            pg_sys::PopActiveSnapshot();
            pg_sys::FreeQueryDesc(query_desc);
        }
    }
}

/// The outer query is over before the inner one.
unsafe extern "C-unwind" fn caller_gone(inner: pg_sys::Datum) {
    // SAFETY: registered with an `Inner`, which lives as long as the function's calls; the executor calls this before it
    // frees that memory.
    unsafe { edge(|| (*inner.cast_mut_ptr::<Inner>()).end()) };
}
