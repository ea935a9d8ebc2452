//! `arrow_cache.fetch`: the stream in pieces of `chunk_bytes`.

use std::collections::VecDeque;

use arrow_cache_core::{OutOfMemory, Room, RoomyVec};
use pgrx::iter::SetOfIterator;
use pgrx::pg_sys;

use super::paused::Paused;
use super::stream::Output;
use super::{END_OF_STREAM, arguments, options};
use crate::error::or_raise;
use crate::pg::sql_function::sql_function;

/// Runs a query and returns its result as an Arrow IPC stream in pieces: joined in order, they are the stream.
fn fetch(call: pg_sys::FunctionCallInfo) -> SetOfIterator<'static, Vec<u8>> {
    // SAFETY: `call` is the first call of this function, with a text and a jsonb.
    let mut export = unsafe {
        let (text, options) = (arguments::text(call), arguments::json(call, 1));
        let options = options::from_json(options);
        let output = Pieces { size: options.chunk_bytes, ..Pieces::default() };
        Paused::start(call, &text.unwrap_or_default(), &options, output)
    };
    SetOfIterator::new(std::iter::from_fn(move || {
        loop {
            let (pieces, done) = export.advance();
            let piece = pieces.ready.pop_front();
            if piece.is_some() || done {
                return piece;
            }
        }
    }))
}

sql_function!(arrow_cache_fetch, pg_finfo_arrow_cache_fetch, fetch);

/// Cuts a stream into pieces of one size.
#[derive(Default)]
struct Pieces {
    size: usize,
    ready: VecDeque<Vec<u8>>,
    /// The piece that is not full yet.
    open: Vec<u8>,
}

impl Pieces {
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

impl Output for Pieces {
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
