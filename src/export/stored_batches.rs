//! The stored batches of an answer on their way out: as the stream makes messages of them, or as it has made them before. What takes work to make is
//! kept beside the entry (`serve/rendition.rs`), by the hold of the query: so whatever ends the export, it is given up before the entry is let go.

use std::vec::IntoIter;

use arrow_cache_core::Hash128;

use super::ipc_stream::{Output, Stream};
use crate::arrow::chunk::Chunk;
use crate::arrow::delivery::text_output::LabelSource;
use crate::lookup::portal;
use crate::pg::log_line;
use crate::pg::query_desc::QueryDesc;
use crate::serve::{self, ServedQuery};
use crate::session;

/// Stored batches, of which some have been delivered.
pub struct StoredBatches {
    query: QueryDesc<'static>,
    chunks: Vec<&'static [u8]>,
    next: usize,
    way: Way,
    /// The definitions that are known when the messages are made or found.
    known: Known,
}

/// What this backend knows of definitions. While it is the same, labels that are read again are the same.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Known {
    own_changes: u64,
    messages: u64,
}

impl Known {
    fn now() -> Self {
        Self { own_changes: session::definition_changes(), messages: portal::messages_received() }
    }
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
    /// All batches of an answer, which serves the query. The query is started, and these are its chunks. `make_stream` has made the stream, and can make it
    /// again.
    pub fn new(
        query: QueryDesc<'static>,
        chunks: Vec<&'static [u8]>,
        stream: &mut Stream,
        make_stream: impl FnOnce() -> Stream,
    ) -> Self {
        let mut batches = Self { query, chunks, next: 0, way: Way::Made, known: Known::now() };
        let rows = batches.chunks().map(|chunk| chunk.rows() as u64).sum();
        if let (Some(key), Some(served)) = (stream.rendition_key(rows), serve::served(query)) {
            batches.way = batches.way(served, key, stream, || {
                let fresh = make_stream();
                (fresh.rendition_key(rows) == Some(key), fresh)
            });
            batches.known = Known::now();
        }
        batches
    }

    /// `make_again` makes the stream again, and says whether its key is still this one.
    fn way(
        &self,
        served: ServedQuery<'_>,
        key: Hash128,
        stream: &mut Stream,
        make_again: impl FnOnce() -> (bool, Stream),
    ) -> Way {
        if let Some(messages) = served.exported(key) {
            let expected: usize = self.chunks().map(|chunk| stream.messages_of(chunk)).sum();
            if messages.len() == expected {
                return Way::MadeBefore(messages.into_iter());
            }
        }
        if !served.begin_export(key) {
            return Way::Made;
        }
        if stream.has_labels() {
            // All labels are read before the first batch, so that all batches have the same. Reading them accepts changes of definitions: the stream is
            // made of those that are known then, and no batch meets a type that has changed since.
            let labels = stream.read_labels();
            let (is_same, fresh) = make_again();
            *stream = fresh;
            if !is_same {
                served.give_up_export();
                return Way::Made;
            }
            stream.take_labels_from(labels);
        }
        Way::Kept
    }

    /// Makes the rest as if nothing were kept, if definitions may have changed since the beginning: other batches of this export tell of the change.
    fn look_at_definitions(&mut self, stream: &mut Stream) {
        if matches!(self.way, Way::Made) || self.known == Known::now() {
            return;
        }
        if let Some(served) = serve::served(self.query) {
            served.give_up_export();
        }
        stream.take_labels_from(LabelSource::Remembered);
        self.way = Way::Made;
    }

    fn chunk(&self, number: usize) -> Option<Chunk<'static>> {
        // SAFETY: stored chunks come from our encoder and have the entry's columns; the serving plan holds them in place.
        self.chunks.get(number).map(|chunk| unsafe { Chunk::new(chunk) })
    }

    fn chunks(&self) -> impl Iterator<Item = Chunk<'static>> {
        (0..self.chunks.len()).filter_map(|number| self.chunk(number))
    }

    /// Bytes of the batches, if messages have to be made of them.
    pub fn bytes_to_make(&self, stream: &Stream) -> Option<usize> {
        let is_there = stream.is_verbatim() || matches!(self.way, Way::MadeBefore(_));
        (!is_there).then(|| self.chunks.iter().map(|chunk| chunk.len()).sum())
    }

    /// Delivers batches until the output wants no more. As a plan does, which fills a batch before it pauses: so a result of one batch is over, and its
    /// tables closed, at the same moment. True if nothing is left.
    pub fn deliver(&mut self, stream: &mut Stream, output: &mut impl Output) -> bool {
        self.look_at_definitions(stream);
        while stream.rows_left() > 0
            && let Some(chunk) = self.chunk(self.next)
        {
            match &mut self.way {
                Way::Made => stream.stored(chunk, output),
                Way::Kept => stream.stored(chunk, &mut Keeping { query: self.query, output }),
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
                    served.end_export(rows);
                }
            }
            Way::MadeBefore(_) => log_line::debug(|| format!("{rows} rows went into the stream as they lay")),
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
            served.keep_message(parts);
        }
        self.output.batch(rows, parts);
    }
}
