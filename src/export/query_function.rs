//! `arrow_cache.query`: the whole stream as one value.

use std::ffi::CStr;

use arrow_cache_core::ExportOptions;
use pgrx::pg_sys;

use super::arguments::{self, Argument};
use super::decision::decide;
use super::error_context::within;
use super::export_run::Export;
use super::inner_query::{InnerQuery, Pace, under_callers_snapshot};
use super::stream_value::GatheredStream;
use crate::pg::function_call::FunctionCall;
use crate::pg::signature::Signature;
use crate::pg::sql_function::sql_function;
use crate::{serve, shmem};

/// Runs a query and returns its result as one Arrow IPC stream.
fn query(call: FunctionCall<'_>) -> Option<GatheredStream> {
    let text = arguments::text(call)?;
    Some(collect(&text, &arguments::parameters(call)))
}

sql_function!(query, Signature::of(&[pg_sys::TEXTOID]).with_any_more().with_nulls(), "arrow_cache_query");

fn collect(text: &CStr, arguments: &[Argument<'_>]) -> GatheredStream {
    let store = shmem::required();
    within(text, || {
        under_callers_snapshot(|| {
            let query = InnerQuery::prepare(text, arguments, Pace::Whole);
            let decision = decide(&store, query.desc(), false);
            query.start();
            let output = GatheredStream::default();
            let export = Export::begin(query.desc(), decision, &ExportOptions::default(), output);
            // SAFETY: the export lives until the executor is ended.
            let export = unsafe { &mut *export };
            let (direction, count) = export.before_run();
            query.run(direction, count, true);
            export.after_run();
            let stream = std::mem::take(export.output());
            if stream.reads_entry()
                && let Some(served) = serve::served(query.desc())
            {
                served.keep_entry();
            }
            query.finish();
            query.free();
            stream
        })
    })
}
