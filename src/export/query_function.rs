//! `arrow_cache.query`: the whole stream as one value.

use std::ffi::CStr;

use arrow_cache_core::{ExportOptions, RoomyVec};
use pgrx::pg_sys;

use super::arguments::{self, Argument};
use super::decision::decide;
use super::error_context::within;
use super::export_run::Export;
use super::inner_query::{InnerQuery, Pace, under_callers_snapshot};
use super::ipc_stream::{END_OF_STREAM, LARGEST_BYTEA, Output};
use crate::error::{CacheError, or_raise};
use crate::pg::function_call::FunctionCall;
use crate::pg::signature::Signature;
use crate::pg::sql_function::sql_function;
use crate::shmem;

/// Runs a query and returns its result as one Arrow IPC stream.
fn query(call: FunctionCall<'_>) -> Option<Vec<u8>> {
    let text = arguments::text(call)?;
    Some(collect(&text, &arguments::parameters(call)))
}

sql_function!(
    query,
    Signature::value(&[pg_sys::TEXTOID], pg_sys::BYTEAOID).with_any_more().with_nulls(),
    "arrow_cache_query_0_2",
    "arrow_cache_query"
);

/// A stream that is gathered in memory.
struct Collected {
    bytes: Vec<u8>,
}

impl Collected {
    fn add(&mut self, bytes: &[u8]) {
        let total = self.bytes.len() + bytes.len();
        if total > LARGEST_BYTEA {
            CacheError::StreamTooLarge { bytes: total }.raise();
        }
        or_raise(self.bytes.add_all(bytes));
    }
}

impl Output for Collected {
    fn expect(&mut self, bytes: usize) {
        // If there is not that much memory at once, it is taken as the bytes come.
        let _ = self.bytes.make_exact_room(bytes.min(LARGEST_BYTEA));
    }

    fn schema(&mut self, message: &[u8]) {
        self.add(message);
    }

    fn batch(&mut self, _rows: usize, parts: &[&[u8]]) {
        for part in parts {
            self.add(part);
        }
    }

    fn end(&mut self) {
        self.add(&END_OF_STREAM);
    }
}

fn collect(text: &CStr, arguments: &[Argument<'_>]) -> Vec<u8> {
    let store = shmem::required();
    within(text, || {
        under_callers_snapshot(|| {
            let query = InnerQuery::prepare(text, arguments, Pace::Whole);
            let decision = decide(&store, query.desc(), None, false);
            query.start();
            let output = Collected { bytes: Vec::new() };
            let export = Export::begin(query.desc(), decision, &ExportOptions::default(), output);
            // SAFETY: the export lives until the executor is ended.
            let export = unsafe { &mut *export };
            let (direction, count) = export.before_run();
            query.run(direction, count, true);
            export.after_run();
            let bytes = std::mem::take(&mut export.output().bytes);
            query.finish();
            query.free();
            bytes
        })
    })
}
