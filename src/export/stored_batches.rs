//! The stored batches of an answer on their way out: as the stream makes messages of them, or as it has made them
//! before. What takes work to make is kept beside the entry (`serve/rendition.rs`), by the hold of the query: so
//! whatever ends the export, it is given up before the entry is let go.

use std::vec::IntoIter;

use super::ipc_stream::{Output, Stream};
use crate::arrow::chunk::Chunk;
use crate::pg::client;
use crate::pg::query_desc::QueryDesc;
use crate::serve::{self, StoredChunks};

/// Stored batches, of which some have been delivered.
pub struct StoredBatches {
    query: QueryDesc<'static>,
    chunks: StoredChunks,
    next: usize,
    way: Way,
}

/// Where the messages come from.
enum Way {
    /// The stream makes them.
    Made,
    /// The stream makes them, and they are kept.
    Kept,
    /// They were kept before. Those of the batches that were delivered are gone.
    MadeBefore(IntoIter<&'static [u8]>),
}

impl StoredBatches {
    /// All batches of an answer, which serves the query. The query is started, and these are its chunks.
    pub fn new(query: QueryDesc<'static>, chunks: StoredChunks, stream: &Stream) -> Self {
        let mut batches = Self { query, chunks, next: 0, way: Way::Made };
        // No messages are kept of what lies in a file.
        if matches!(batches.chunks, StoredChunks::InFile(_)) {
            return batches;
        }
        let rows = batches.all(|chunk| chunk.rows()) as u64;
        if let (Some(key), Some(served)) = (stream.rendition_key(rows), serve::served(query)) {
            let expected = batches.all(|chunk| stream.messages_of(chunk));
            batches.way = match served.exported(key) {
                Some(messages) if messages.len() == expected => Way::MadeBefore(messages.into_iter()),
                _ if served.begin_export(key) => Way::Kept,
                _ => Way::Made,
            };
        }
        batches
    }

    /// About how many bytes the batches have as they are stored.
    pub fn bytes(&self) -> usize {
        self.chunks.bytes()
    }

    /// A batch, which may take the place of the one before.
    fn chunk(&mut self, number: usize) -> Option<Chunk<'static>> {
        // SAFETY: stored chunks come from our encoder and have the entry's columns; the serving plan holds the entry in
        // place. Each is used before the next one is asked for.
        unsafe { self.chunks.get(number).map(|chunk| Chunk::new(chunk)) }
    }

    /// The sum over all batches.
    fn all(&mut self, of: impl Fn(Chunk<'_>) -> usize) -> usize {
        (0..self.chunks.len()).filter_map(|number| self.chunk(number).map(&of)).sum()
    }

    /// Delivers batches until the output wants no more. As a plan does, which fills a batch before it pauses: so a
    /// result of one batch is over, and its tables closed, at the same moment. True if nothing is left.
    pub fn deliver(&mut self, stream: &mut Stream, output: &mut impl Output) -> bool {
        while stream.rows_left() > 0
            && let Some(chunk) = self.chunk(self.next)
        {
            match &mut self.way {
                Way::Made => stream.batch(chunk, output),
                Way::Kept => stream.batch(chunk, &mut Keeping { query: self.query, output }),
                Way::MadeBefore(messages) => stream.made_before(chunk, messages, output),
            }
            self.next += 1;
            if !output.wants_more() {
                break;
            }
        }
        let is_done = stream.rows_left() == 0 || self.next == self.chunks.len();
        if is_done {
            self.end(stream.rows());
        }
        is_done
    }

    fn end(&mut self, rows: u64) {
        match std::mem::replace(&mut self.way, Way::Made) {
            Way::Made => {}
            Way::Kept => {
                if let Some(served) = serve::served(self.query) {
                    served.with_export(Option::take).into_iter().for_each(|kept| kept.publish(rows));
                }
            }
            Way::MadeBefore(_) => {
                client::note_sent("into the stream as they lay", rows);
            }
        }
    }
}

/// An output whose messages are kept, too.
struct Keeping<'o, O> {
    query: QueryDesc<'static>,
    output: &'o mut O,
}

impl<O: Output> Output for Keeping<'_, O> {
    fn schema(&mut self, message: &[u8]) {
        self.output.schema(message);
    }

    fn batch(&mut self, rows: usize, parts: &[&[u8]]) {
        if let Some(served) = serve::served(self.query) {
            // There may be no room for more.
            served.with_export(|kept| {
                kept.take_if(|kept| !kept.append(parts));
            });
        }
        self.output.batch(rows, parts);
    }
}
