//! An export that a set-returning function makes batch by batch, as its rows are asked for.
//!
//! The inner query stays open between the calls, as that of a SQL function does: under the resource owner of the portal
//! that calls, with its snapshot active only while it runs. Whatever ends the outer query ends it, too: the last row, a
//! LIMIT outside, or an error, after which only memory is left to be freed.

use std::ffi::CStr;

use arrow_cache_core::ExportOptions;
use pgrx::pg_sys;

use super::decision::decide;
use super::error_context::within;
use super::export_run::Export;
use super::inner_query::{InnerQuery, Pace, under_callers_snapshot};
use super::ipc_stream::Output;
use crate::pg::compat::RunArguments;
use crate::pg::error_passing::edge;
use crate::pg::function_call::FunctionCall;
use crate::pg::memory_context::leak;
use crate::shmem;

/// The inner query of a set-returning function.
struct Inner {
    /// Started; `None` once it has ended.
    query: Option<InnerQuery<'static>>,
    /// The expression context of the call, which tells when the function's rows are not asked for any more.
    caller: *mut pg_sys::ExprContext,
}

/// An export that pauses whenever its output wants no more.
pub struct PausedExport<O: Output + Default + 'static> {
    inner: *mut Inner,
    /// Null when the export is over, and its output taken.
    export: *mut Export<O>,
    rest: O,
}

impl<O: Output + Default + 'static> PausedExport<O> {
    /// Starts an export in the first call of a set-returning function, in the memory context that lives through all of
    /// its calls.
    pub fn start(call: FunctionCall<'_>, text: &CStr, options: &ExportOptions, output: O) -> Self {
        let store = shmem::required();
        let Some(caller) = call.expression_context() else { unreachable!("the function returns a set") };
        // SAFETY: the copy lives in the current memory context, as all that is made here, and is freed with it.
        let text: &'static CStr = unsafe { CStr::from_ptr(kept!(pg_sys::pstrdup(text.as_ptr()))) };
        // SAFETY: reads which memory context is the current one.
        let context = unsafe { pg_sys::CurrentMemoryContext };
        let (query, export) = under_callers_snapshot(|| {
            within(text, || {
                let query = InnerQuery::prepare(text, &[], Pace::Paused);
                let decision = decide(&store, query.desc(), true);
                query.start();
                let export = Export::begin(query.desc(), decision, options, output);
                (query, export)
            })
        });
        // SAFETY: the executor calls back before it frees the memory that `inner` lies in.
        let inner = unsafe {
            let inner = leak(context, Inner { query: Some(query), caller });
            kept!(pg_sys::RegisterExprContextCallback(caller, Some(caller_gone), pg_sys::Datum::from(inner)));
            inner
        };
        Self { inner, export, rest: O::default() }
    }

    /// The next that `take` finds in the output, which is filled by running the query on. `None` at the end of the
    /// stream.
    pub fn next<T>(&mut self, take: impl Fn(&mut O) -> Option<T>) -> Option<T> {
        loop {
            let (output, done) = self.advance();
            let next = take(output);
            if next.is_some() || done {
                return next;
            }
        }
    }

    /// The output, with what could be delivered so far. Each call runs the query on until the output wants no more. The
    /// second value tells whether all has been delivered.
    fn advance(&mut self) -> (&mut O, bool) {
        if self.export.is_null() {
            return (&mut self.rest, true);
        }
        // SAFETY: the export lives until the executor is ended, which is done here or by `caller_gone`; after that
        // nobody asks for more.
        let (inner, export) = unsafe { (&mut *self.inner, &mut *self.export) };
        if !export.output().wants_more() {
            return (export.output(), false);
        }
        if let Some(query) = &inner.query {
            query.within(|| {
                let (direction, count) = export.before_run();
                query.run(RunArguments { direction, count, once: false });
                export.after_run();
            });
        }
        if !export.is_done() {
            return (export.output(), false);
        }
        self.rest = std::mem::take(export.output());
        self.export = std::ptr::null_mut();
        // SAFETY: the expression context outlives the calls; the callback was registered with this.
        unsafe {
            kept!(pg_sys::UnregisterExprContextCallback(
                inner.caller,
                Some(caller_gone),
                pg_sys::Datum::from(self.inner)
            ));
        }
        inner.end();
        (&mut self.rest, true)
    }
}

impl Inner {
    /// Ends the query, once.
    fn end(&mut self) {
        if let Some(query) = self.query.take() {
            query.finish();
        }
    }
}

/// The outer query is over before the inner one.
unsafe extern "C-unwind" fn caller_gone(inner: pg_sys::Datum) {
    // SAFETY: registered with an `Inner`, which lives as long as the function's calls; the executor calls this before
    // it frees that memory.
    unsafe { edge(|| (*inner.cast_mut_ptr::<Inner>()).end()) };
}
