//! Rows that go to the client in the place of COPY's own receiver, which is told how many these are. So the
//! tag of the statement and `pg_stat_progress_copy` tell what they always tell. Plain data; one run of this backend.

use arrow_cache_core::formats::wire::{RowShape, count_messages};
use pgrx::pg_sys;

use super::column_formats::keeps_text;
use crate::pg::{copy_receiver, progress};
use crate::session;

/// The COPY that the rows of a run are of, if there is one.
#[derive(Clone, Copy)]
pub struct CopiedRows {
    /// Where COPY counts its rows, as long as it runs; null if the rows are not those of a COPY to the client.
    count: *mut u64,
    /// What it makes of a row.
    shape: RowShape,
}

/// Bytes of a message beside its body.
const HEADER: i64 = 5;

impl CopiedRows {
    /// None.
    pub const NONE: Self = Self { count: std::ptr::null_mut(), shape: RowShape::DataRow };

    /// The COPY of this receiver, if it is known what it makes of a row for the client.
    ///
    /// # Safety
    /// The receiver must be that of the run under way.
    pub unsafe fn of(receiver: *mut pg_sys::DestReceiver) -> Self {
        // SAFETY: the caller's promise.
        let Some(count) = (unsafe { copy_receiver::count_of(receiver) }) else { return Self::NONE };
        let shape = session::copying_to_client().filter(|shape| !shape.is_line() || keeps_text());
        shape.map_or(Self::NONE, |shape| Self { count, shape })
    }

    /// Returns true if there is one.
    pub fn is_any(self) -> bool {
        !self.count.is_null()
    }

    /// What it makes of a row, if there is one.
    pub fn shape(self) -> Option<RowShape> {
        self.is_any().then_some(self.shape)
    }

    /// Returns true if COPY's receiver has had no row yet: it sends the header of the binary format with the first one.
    pub fn wants_first_row(self) -> bool {
        // SAFETY: the receiver outlives the run.
        self.is_any() && unsafe { *self.count } == 0
    }

    /// Rows of the answer that COPY's receiver has had before any was sent in its place.
    pub fn rows_before(self) -> u64 {
        u64::from(self.is_any())
    }

    /// Tells COPY of rows that were sent in its place, if there is one.
    pub fn note_sent(self, messages: &[u8]) {
        if !self.is_any() {
            return;
        }
        let rows = count_messages(messages);
        // SAFETY: as above. The count is the receiver's own.
        let rows_in_all = unsafe {
            *self.count += rows;
            *self.count
        };
        let bytes = messages.len() as i64 - HEADER * rows as i64;
        progress::note_copied(rows_in_all as i64, progress::copied_bytes() + bytes);
    }
}
