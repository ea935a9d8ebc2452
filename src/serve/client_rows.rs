//! The rows of a run that is being stored, to the client. Messages are made of the values that were just encoded for
//! the store, so no value is printed twice. A run that was let go because its rows are quick goes on in the same way.
//! Each row is sent before the next one is computed, as the server does it: what else goes to the client, errors
//! included, keeps its place among the rows.
//!
//! The server's own receiver gets the rows that are sent another way: all, if they do not go to the client's socket;
//! those that have a value that the core does not write; those that are not encoded.
//!
//! State of one query of this backend; nothing is locked.

use arrow_cache_core::formats::wire::{Outcome, StoredValue};
use pgrx::pg_sys;

use super::client_formats::ClientFormats;
use super::column_formats::OutputSettings;
use super::copied_rows::CopiedRows;
use super::output_functions::OutputFunctions;
use super::row_messages::RowMessages;
use crate::arrow::column::Column;
use crate::pg::client;
use crate::pg::error_passing::edge;
use crate::pg::row::Row;

/// How the rows of a query go to where they go.
pub struct ClientRows {
    way: Way,
    /// Where the rows of the run go; null before the first one.
    receiver: *mut pg_sys::DestReceiver,
    /// The COPY that the rows are of, if there is one.
    copy: CopiedRows,
    /// Rows of the run that were sent.
    sent: u64,
}

#[derive(Default)]
enum Way {
    /// The receiver takes them.
    #[default]
    Receiver,
    /// Nobody has looked yet what this receiver is: a run without rows needs not.
    Undecided,
    /// They are sent here, in formats that were chosen under these settings.
    Direct(Box<RowMessages>, OutputSettings),
}

impl Default for ClientRows {
    /// Of a query that has not run.
    fn default() -> Self {
        Self { way: Way::Receiver, receiver: std::ptr::null_mut(), copy: CopiedRows::NONE, sent: 0 }
    }
}

impl ClientRows {
    /// A run begins, whose rows go to this receiver, which has been started.
    pub fn begin_run(&mut self, receiver: *mut pg_sys::DestReceiver) {
        self.end_run();
        (self.way, self.receiver) = (Way::Undecided, receiver);
    }

    /// The run has ended.
    pub fn end_run(&mut self) {
        if let Way::Direct(messages, _) = std::mem::take(&mut self.way) {
            RowMessages::put_away(&mut Some(messages));
            client::note_sent("to the client as they were encoded", self.sent);
        }
        self.sent = 0;
    }

    /// Returns true if the next row of these columns is sent here. The query may have changed settings since the last
    /// one, by a function that somebody vouched for; the server reads them for each row.
    #[inline]
    pub fn are_sent(&mut self, columns: &[Column]) -> bool {
        match &self.way {
            Way::Direct(messages, settings) if messages.fit_zone() && *settings == OutputSettings::current() => true,
            Way::Receiver => false,
            Way::Direct(..) | Way::Undecided => {
                self.decide(columns);
                matches!(self.way, Way::Direct(..))
            }
        }
    }

    /// Finds how rows go from now on.
    #[cold]
    fn decide(&mut self, columns: &[Column]) {
        if let Way::Direct(messages, _) = std::mem::take(&mut self.way) {
            RowMessages::put_away(&mut Some(messages));
        }
        // SAFETY: the receiver is that of the run under way, whose rows have these columns.
        let formats = unsafe {
            self.copy = CopiedRows::of(self.receiver);
            if self.copy.wants_first_row() {
                self.way = Way::Undecided;
                return;
            }
            ClientFormats::of(self.receiver, self.copy, columns.len()).filter(|_| client::is_socket())
        };
        let settings = OutputSettings::current();
        let messages = formats.and_then(|formats| RowMessages::ready(columns, &settings, &formats, None).ok());
        self.way = messages.map_or(Way::Receiver, |messages| Way::Direct(messages, settings));
    }

    /// Returns true if they were found to be sent so, without the server's functions for any of their values. Then that
    /// is quicker than the receiver.
    pub fn need_no_functions(&self) -> bool {
        matches!(&self.way, Way::Direct(messages, _) if !messages.has_functions)
    }

    /// Sends a row, the values of which were encoded as `values`. False if the receiver has to take it. Raises what
    /// making its bytes raises.
    ///
    /// # Safety
    /// `this` must be valid and stay in its place, `are_sent` have been asked of this row, and the current memory
    /// context outlive the run. No frame between here and PostgreSQL may have pending destructors.
    pub unsafe fn send<V: StoredValue, I: Iterator<Item = Option<V>>>(
        this: *mut Self,
        row: Row<'_>,
        values: impl Fn() -> I,
    ) -> bool {
        // SAFETY: the caller keeps `this` in its place; the messages lie in a box of its own. Nothing here has a
        // destructor outside of `edge`.
        unsafe {
            let Way::Direct(messages, _) = &mut (*this).way else { return false };
            let messages: *mut RowMessages = &raw mut **messages;
            if (*messages).has_functions {
                let functions = &raw mut (*messages).functions;
                edge(|| (*functions).take(row));
                OutputFunctions::call(functions);
            }
            let outcome = edge(|| {
                let RowMessages { encoder, functions, block, .. } = &mut *messages;
                let outcome = encoder.append_values(values(), functions, block);
                if outcome == Outcome::Full && block.grow(encoder.size_of_values(values(), functions)).is_ok() {
                    return encoder.append_values(values(), functions, block);
                }
                outcome
            });
            if outcome != Outcome::Appended {
                return false;
            }
            client::queue((*messages).block.messages());
            edge(|| (*this).copy.note_sent((*messages).block.messages()));
            (*messages).block.clear();
            (*this).sent += 1;
            true
        }
    }
}
