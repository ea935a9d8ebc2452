//! `arrow_cache.query`: the whole stream as one value.

use std::ffi::CStr;

use arrow_cache_core::{ExportOptions, RoomyVec};
use pgrx::pg_sys;

use super::arguments::{self, Argument};
use super::inner::{self, Pace};
use super::run::{self, Export};
use super::stream::Output;
use super::{END_OF_STREAM, LARGEST_BYTEA};
use crate::error::{CacheError, or_raise};
use crate::lookup::Question;
use crate::pg::error_passing::kept;
use crate::pg::query_desc::QueryDesc;
use crate::pg::sql_function::sql_function;
use crate::pg::{compat, server};

/// Runs a query and returns its result as one Arrow IPC stream.
fn query(call: pg_sys::FunctionCallInfo) -> Option<Vec<u8>> {
    // SAFETY: `call` is the call of this function, with a text first.
    unsafe {
        let text = arguments::text(call)?;
        let arguments = arguments::parameters(call);
        Some(collect(&text, &arguments))
    }
}

sql_function!(arrow_cache_query, pg_finfo_arrow_cache_query, query);

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
        // Without so much memory at once, it will do or not as the bytes come.
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

/// # Safety
/// Called from a SQL function.
unsafe fn collect(text: &CStr, arguments: &[Argument]) -> Vec<u8> {
    let store = run::store();
    let run = || {
        // SAFETY: the steps that PostgreSQL itself takes with a query; after an error the abort of the transaction cleans up
        // snapshots, portals and memory.
        unsafe {
            inner::push_callers_snapshot();
            let query_desc = inner::prepare(text, arguments, Pace::Whole);
            let decision = run::decide(&store, query_desc, &Question::of(QueryDesc::of_hook(query_desc)));
            kept!(server::ExecutorStart(query_desc, 0));
            let output = Collected { bytes: Vec::new() };
            let export = &mut *Export::begin(query_desc, decision, &ExportOptions::default(), output);
            let (direction, count) = export.before_run(query_desc);
            compat::executor_run(query_desc, direction, count, true);
            export.after_run(query_desc);
            let bytes = std::mem::take(&mut export.output().bytes);
            kept!(server::ExecutorFinish(query_desc));
            kept!(server::ExecutorEnd(query_desc));
            pg_sys::FreeQueryDesc(query_desc);
            pg_sys::PopActiveSnapshot();
            bytes
        }
    };
    inner::within(text, run)
}
