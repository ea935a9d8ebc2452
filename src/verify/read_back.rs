//! Stored answers that are read back: at the rate at which hits are drawn, an answer that has just been stored is
//! compared with the rows that it was made of. Belongs to one execution; nothing is shared.

use std::rc::Rc;

use arrow_cache_core::{OutOfMemory, Pin};

use super::comparison::drop_different;
use super::conditions::is_drawn;
use super::row_digest::RowDigest;
use crate::arrow::column::Column;
use crate::pg::query_desc::QueryDesc;
use crate::pg::row::Row;
use crate::serve::Hold;
use crate::shmem;

/// The rows of an answer that is being stored, and will be read back.
pub struct ReadBack {
    columns: Rc<[Column]>,
    executed: RowDigest,
}

impl ReadBack {
    /// Draws whether the answer with these columns that is about to be stored is read back.
    pub fn draw(columns: &Rc<[Column]>) -> Option<Self> {
        is_drawn().then(|| Self { columns: Rc::clone(columns), executed: RowDigest::new(columns) })
    }

    /// Adds a row of these columns.
    ///
    /// # Errors
    /// There is no memory for the text of a value.
    pub fn add(&mut self, row: Row<'_>) -> Result<(), OutOfMemory> {
        // SAFETY: a row has one value per column; the fill that it is added to has these columns.
        unsafe { self.executed.add(row.values(), row.nulls()) }
    }

    /// Compares the rows with the entry that was made of them, and lets that go. A difference is told, and the entry is
    /// dropped. Accepts interrupts.
    pub fn compare(self, query: QueryDesc<'_>, pin: Pin, query_id: i64) {
        // SAFETY: the entry was made of these columns. The hold lies in the memory of the query, which is under way;
        // nobody else knows it.
        let hold = unsafe { Hold::new(query, pin, self.columns).map(|hold| &mut *hold) };
        let (Ok(hold), Some(store)) = (hold, shmem::store()) else { return };
        if let Some(Ok(stored)) = hold.rows().map(RowDigest::of_stored) {
            drop_different(&store, hold, query_id, (stored, self.executed.finish()));
        }
        hold.release();
    }
}
