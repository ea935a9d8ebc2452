//! `arrow_cache.fetch`: the stream in slices of `chunk_bytes`.

use std::collections::VecDeque;

use arrow_cache_core::{OutOfMemory, Room, RoomyVec};

use super::ipc_stream::{END_OF_STREAM, Output};
use super::paused_export::PausedExport;
use super::{arguments, options};
use crate::error::or_raise;
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::Set;
use crate::pg::sql_function::sql_function;

/// Runs a query and returns its result as an Arrow IPC stream in slices: joined in order, they are the stream.
fn fetch(call: FunctionCall<'_>) -> Set<Vec<u8>> {
    let (text, options) = (arguments::text(call), options::from_json(arguments::json(call, 1)));
    let output = SlicedStream { size: options.chunk_bytes, ..SlicedStream::default() };
    let mut export = PausedExport::start(call, &text.unwrap_or_default(), &options, output);
    Set::new(std::iter::from_fn(move || export.next(|slices| slices.ready.pop_front())))
}

sql_function!(fetch, "arrow_cache_fetch");

/// A stream that is cut into slices of one size.
#[derive(Default)]
struct SlicedStream {
    /// Bytes of a slice.
    size: usize,
    ready: VecDeque<Vec<u8>>,
    /// The slice that is not full yet.
    open: Vec<u8>,
}

impl SlicedStream {
    fn add(&mut self, mut bytes: &[u8]) -> Result<(), OutOfMemory> {
        while !bytes.is_empty() {
            if self.open.capacity() == 0 {
                self.open.make_exact_room(self.size.min(bytes.len().max(4096)))?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.size - self.open.len()));
            self.open.add_all(now)?;
            bytes = later;
            if self.open.len() == self.size {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), OutOfMemory> {
        self.ready.make_room(1)?;
        self.ready.push_back(std::mem::take(&mut self.open));
        Ok(())
    }
}

impl Output for SlicedStream {
    fn schema(&mut self, message: &[u8]) {
        or_raise(self.add(message));
    }

    fn batch(&mut self, _rows: usize, parts: &[&[u8]]) {
        for part in parts {
            or_raise(self.add(part));
        }
    }

    fn end(&mut self) {
        or_raise(self.add(&END_OF_STREAM));
        if !self.open.is_empty() {
            or_raise(self.hand_over());
        }
    }

    fn wants_more(&self) -> bool {
        self.ready.is_empty()
    }
}
