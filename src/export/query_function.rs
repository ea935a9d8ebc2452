//! `arrow_cache.query`: the whole stream as one value.

use std::ffi::CStr;

use arrow_cache_core::ExportOptions;
use pgrx::pg_sys;

use super::arguments::{self, Argument};
use super::decision::decide;
use super::error_context::within;
use super::export_run::Export;
use super::inner_query::{InnerQuery, Pace, under_callers_snapshot};
use super::ipc_stream::{END_OF_STREAM, LARGEST_BYTEA, Output};
use crate::error::CacheError;
use crate::pg::compat::RunArguments;
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::Column;
use crate::pg::sql_function::sql_function;
use crate::pg::varlena;
use crate::shmem;

/// Runs a query and returns its result as one Arrow IPC stream.
fn query(call: FunctionCall<'_>) -> Option<WholeStream> {
    let text = arguments::text(call)?;
    Some(collect(&text, &arguments::parameters(call)))
}

sql_function!(query, "arrow_cache_query");

fn collect(text: &CStr, arguments: &[Argument<'_>]) -> WholeStream {
    let store = shmem::required();
    within(text, || {
        under_callers_snapshot(|| {
            let query = InnerQuery::prepare(text, arguments, Pace::Whole);
            let decision = decide(&store, query.desc(), false);
            query.start();
            let stream = WholeStream::new();
            let export = Export::begin(query.desc(), decision, &ExportOptions::default(), stream);
            // SAFETY: the export lives until the executor is ended.
            let export = unsafe { &mut *export };
            let (direction, count) = export.before_run();
            query.run(RunArguments { direction, count, once: true });
            export.after_run();
            query.finish();
            stream
        })
    })
}

/// A stream that is gathered in one piece, in the memory context in which it was begun: a text of the server, which
/// begins with the header of a bytea.
#[derive(Clone, Copy)]
struct WholeStream(pg_sys::StringInfo);

/// Bytes that the schema and the end of a stream usually take.
const SCHEMA_BYTES: usize = 1024;

impl WholeStream {
    fn new() -> Self {
        // SAFETY: the server makes an empty text in the current memory context.
        let stream = Self(unsafe { kept!(pg_sys::makeStringInfo()) });
        stream.add(&[0; varlena::HEADER]);
        stream
    }

    fn length(self) -> usize {
        // SAFETY: the text lives as long as the memory context that the function was called in.
        unsafe { (*self.0).len as usize - varlena::HEADER }
    }

    fn add(self, bytes: &[u8]) {
        // SAFETY: as in `length`. As many bytes are copied as there are.
        unsafe { kept!(pg_sys::appendBinaryStringInfo(self.0, bytes.as_ptr().cast(), bytes.len() as i32)) };
    }

    fn add_some(self, bytes: &[u8]) {
        let length = self.length() + bytes.len();
        if length > LARGEST_BYTEA - varlena::HEADER - 1 {
            CacheError::stream_too_large(length).raise();
        }
        self.add(bytes);
    }
}

impl Output for WholeStream {
    /// Makes room at once: a value that doubles as it grows is copied, and leaves half of its memory unused.
    fn expect(&mut self, bytes: usize) {
        let room = bytes + SCHEMA_BYTES;
        if room < LARGEST_BYTEA - varlena::HEADER {
            // SAFETY: as in `length`; the server makes texts of less than that.
            unsafe { kept!(pg_sys::enlargeStringInfo(self.0, room as i32)) };
        }
    }

    fn schema(&mut self, message: &[u8]) {
        self.add_some(message);
    }

    fn batch(&mut self, _rows: usize, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.add_some(part));
    }

    fn end(&mut self) {
        self.add_some(&END_OF_STREAM);
    }
}

impl Column for WholeStream {
    const TYPE: pg_sys::Oid = pg_sys::BYTEAOID;

    fn datum(self) -> Option<pg_sys::Datum> {
        // SAFETY: as in `length`; the text begins with room for the header.
        unsafe {
            let data = (*self.0).data;
            data.cast::<u32>().write_unaligned(varlena::header(self.length()));
            Some(pg_sys::Datum::from(data))
        }
    }
}
