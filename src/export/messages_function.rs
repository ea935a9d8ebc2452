//! `arrow_cache.messages`: the stream as one encapsulated message per row, to be fetched in parts or spread over
//! readers.

use std::collections::VecDeque;

use arrow_cache_core::{OutOfMemory, Room, RoomyVec};

use super::ipc_stream::Output;
use super::paused_export::PausedExport;
use super::{arguments, options};
use crate::error::or_raise;
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::Set;
use crate::pg::sql_function::sql_function;

/// One message: whether it is the schema, its rows, its bytes.
type Message = (bool, i64, Vec<u8>);

/// Runs a query and returns its result as Arrow IPC messages: the schema, then the batches.
fn messages(call: FunctionCall<'_>) -> Set<(i32, bool, i64, Vec<u8>)> {
    let (text, options) = (arguments::text(call), options::from_json(arguments::json(call, 1)));
    let mut export = PausedExport::start(call, &text.unwrap_or_default(), &options, Messages::default());
    let all = std::iter::from_fn(move || export.next(|messages| messages.ready.pop_front()));
    Set::new((1..).zip(all).map(|(number, (header, rows, bytes))| (number, header, rows, bytes)))
}

sql_function!(messages, "arrow_cache_messages");

/// Messages that wait to be asked for.
#[derive(Default)]
struct Messages {
    ready: VecDeque<Message>,
}

impl Messages {
    fn add(&mut self, header: bool, rows: i64, parts: &[&[u8]]) -> Result<(), OutOfMemory> {
        let mut bytes = Vec::with_room(parts.iter().map(|part| part.len()).sum())?;
        parts.iter().try_for_each(|part| bytes.add_all(part))?;
        self.ready.make_room(1)?;
        self.ready.push_back((header, rows, bytes));
        Ok(())
    }
}

impl Output for Messages {
    fn schema(&mut self, message: &[u8]) {
        or_raise(self.add(true, 0, &[message]));
    }

    fn batch(&mut self, rows: usize, parts: &[&[u8]]) {
        or_raise(self.add(false, rows as i64, parts));
    }

    fn wants_more(&self) -> bool {
        self.ready.is_empty()
    }
}
