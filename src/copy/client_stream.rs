//! The Arrow stream of a COPY as CopyData messages, and how far it is in `pg_stat_progress_copy`.

use arrow_cache_core::RoomyVec;

use crate::error::or_raise;
use crate::export::{END_OF_STREAM, Output};
use crate::pg::error_passing::keeping;
use crate::pg::{client, progress};

/// Parts of a stream with fewer bytes are gathered: a message of their own would cost more than a copy.
const SMALL: usize = 16 * 1024;

/// Sends a stream as CopyData messages of at most `size` bytes, and shows in `pg_stat_progress_copy` how far it is.
pub struct ToClient {
    size: usize,
    rows: i64,
    bytes: i64,
    /// Small parts that are gathered.
    open: Vec<u8>,
}

impl ToClient {
    /// A stream in messages of at most `size` bytes.
    pub fn new(size: usize) -> Self {
        Self { size, rows: 0, bytes: 0, open: Vec::new() }
    }

    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if bytes.len() < SMALL.min(self.size) {
                if self.open.len() + bytes.len() > self.size {
                    self.flush();
                }
                or_raise(self.open.add_all(bytes));
                return;
            }
            self.flush();
            let (now, later) = bytes.split_at(bytes.len().min(self.size));
            send(now);
            bytes = later;
        }
    }

    fn flush(&mut self) {
        if !self.open.is_empty() {
            send(&self.open);
            self.open.clear();
        }
    }
}

impl Output for ToClient {
    fn schema(&mut self, message: &[u8]) {
        self.add(message);
    }

    fn batch(&mut self, rows: usize, parts: &[&[u8]]) {
        for part in parts {
            self.add(part);
            self.bytes += part.len() as i64;
        }
        self.rows += rows as i64;
        progress::note_copied(self.rows, self.bytes);
    }

    fn end(&mut self) {
        self.add(&END_OF_STREAM);
        self.flush();
    }
}

/// Sends one CopyData message, as it lies. Raises on a cancel, or when the client is gone.
fn send(bytes: &[u8]) {
    // The length counts itself.
    let [a, b, c, d] = (4 + bytes.len() as u32).to_be_bytes();
    let message = &[&[b'd', a, b, c, d][..], bytes];
    // SAFETY: messages go to the socket (`copy_statement`). What is raised jumps over plain frames only.
    unsafe { keeping(|| client::send(message)) };
}
