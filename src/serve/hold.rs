//! A pin that the server's own clean-up releases: on success, error and subtransaction abort alike a memory context is
//! reset or deleted, and its callbacks run. Rust's Drop does not run on all of those paths. At the end of the process
//! we reset the context of the last message, which may outlive the transaction (`shmem`). A hold belongs to one query
//! of this backend.

use std::rc::Rc;

use arrow_cache_core::{Counter, Hash128, Pin, Reason};
use pgrx::pg_sys;

use super::bound_portal_guard::Guard;
use super::hit::note_hit;
use super::rendition::Draft;
use super::row_messages::RowMessages;
use super::rows::Rows;
use super::stored_chunks::StoredChunks;
use crate::arrow::column::Column;
use crate::error::is_about_memory;
use crate::pg::error_passing::unless;
use crate::pg::memory_context::{context_below, try_leak};
use crate::pg::query_desc::QueryDesc;
use crate::session::{self, Status};
use crate::shmem;

/// A pinned entry and what reads it. Lives in a memory context, and is released with it at the latest.
pub struct Hold {
    pin: Option<Pin>,
    rows: Option<Rows>,
    guard: Option<Box<Guard>>,
    /// How many microseconds ago the entry was right, if it is outdated.
    stale: Option<i64>,
    direct: Option<Box<RowMessages>>,
    /// The rendition that an export is making.
    exported: Option<Draft>,
}

impl Hold {
    /// Holds an entry for as long as the query's descriptor lives, beyond ExecutorEnd and whatever other libraries do
    /// there, ready to be read from its first row.
    ///
    /// # Errors
    /// There is no memory for that, or the entry cannot be read. The pin was given back.
    ///
    /// # Safety
    /// `columns` must be those of the entry.
    pub unsafe fn new(query: QueryDesc<'_>, pin: Pin, columns: Rc<[Column]>) -> Result<*mut Self, Reason> {
        // SAFETY: the caller's promise; a context that was made just now.
        unsafe { Self::of(child_context(query), pin, columns) }
    }

    /// As `new`, for as long as a memory context lives.
    ///
    /// # Errors
    /// As `new`.
    ///
    /// # Safety
    /// `columns` must be those of the entry, and the context a live one.
    pub unsafe fn in_context(
        context: pg_sys::MemoryContext,
        pin: Pin,
        columns: Rc<[Column]>,
    ) -> Result<*mut Self, Reason> {
        // SAFETY: the caller's promise.
        unsafe { Self::of(Some(context), pin, columns) }
    }

    /// As `in_context`, if there was memory for the context.
    ///
    /// # Errors
    /// As `new`.
    ///
    /// # Safety
    /// As `in_context`.
    unsafe fn of(context: Option<pg_sys::MemoryContext>, pin: Pin, columns: Rc<[Column]>) -> Result<*mut Self, Reason> {
        let store = shmem::store().ok_or(Reason::OutOfMemory)?;
        // SAFETY: the hold keeps the entry pinned as long as it has the rows, whose columns the caller vouches for.
        let rows = unsafe { StoredChunks::of(&store, &store.view(&pin)).map(|chunks| Rows::new(columns, chunks)) };
        // A hold that is dropped lets the entry go.
        let mut hold = Self { pin: Some(pin), rows: None, guard: None, stale: None, direct: None, exported: None };
        hold.rows = Some(rows?);
        let context = context.ok_or(Reason::OutOfMemory)?;
        // SAFETY: a live context, by the caller's promise.
        unsafe { try_leak(context, hold) }.map_err(|_| Reason::OutOfMemory)
    }

    /// The pin, for reading the entry; `None` once it was released.
    pub fn pin(&self) -> Option<&Pin> {
        self.pin.as_ref()
    }

    /// Where reading stands; `None` once the entry was released.
    pub fn rows(&mut self) -> Option<&mut Rows> {
        self.rows.as_mut()
    }

    /// The pin, where reading stands, and what sends the rows to the client if they go there directly. All stay in
    /// their places until the end of the run, or until the entry is released.
    pub fn reading(&mut self) -> Option<(&Pin, &mut Rows, &mut Option<Box<RowMessages>>)> {
        Some((self.pin.as_ref()?, self.rows.as_mut()?, &mut self.direct))
    }

    /// Begins a rendition of this key that an export makes. False if there will be none.
    pub fn begin_rendition(&mut self, key: Hash128) -> bool {
        self.exported = self.pin.as_ref().and_then(|pin| Draft::begin(pin, key));
        self.exported.is_some()
    }

    /// The rendition that an export is making.
    pub fn rendition(&mut self) -> &mut Option<Draft> {
        &mut self.exported
    }

    /// Makes the reader check something before the first row, and says how old the answer is.
    pub fn set_terms(&mut self, guard: Option<Box<Guard>>, stale: Option<i64>) {
        self.guard = guard;
        self.stale = stale;
    }

    /// The server has asked for the rights: from now on the statement is a hit. One that is guarded is counted when its
    /// guard has been asked.
    pub fn note_start(&self, query_id: i64) {
        session::set_status(self.stale.map_or(Status::Hit, Status::StaleHit));
        if let (Some(true), Some(counters)) = (self.rows.as_ref().map(Rows::are_in_file), shmem::own_counters()) {
            counters.add(Counter::FileHits, 1);
        }
        if let (None, Some(pin), Some(store)) = (&self.guard, &self.pin, shmem::store()) {
            note_hit(&store, pin, self.stale, query_id);
        }
    }

    /// What is still to be checked, if anything.
    pub fn guard(&mut self) -> Option<&mut Guard> {
        self.guard.as_deref_mut()
    }

    /// Takes what is to be checked: it is checked once.
    pub fn take_guard(&mut self) -> Option<Box<Guard>> {
        self.guard.take()
    }

    /// Lets the entry go. May be called again, without effect.
    pub fn release(&mut self) {
        // Gives up a rendition that is being made, while the entry is pinned.
        self.direct = None;
        self.exported = None;
        self.rows = None;
        self.guard = None;
        if let (Some(pin), Some(store)) = (self.pin.take(), shmem::store()) {
            store.unpin(pin);
        }
    }
}

/// A memory context below the one of the query's descriptor. A child, because children are deleted as soon as the query
/// fails, the context itself only when the failed transaction is rolled back. `None` when there is no memory.
fn child_context(query: QueryDesc<'_>) -> Option<pg_sys::MemoryContext> {
    let parent = query.own_context();
    // SAFETY: a live parent and a literal name.
    unsafe { unless(is_about_memory, || context_below(parent, c"pg_arrow_cache scan")) }
}

impl Drop for Hold {
    /// The memory context goes away. This runs in the middle of error recovery: it touches atomics, frees Rust memory,
    /// and does nothing else.
    fn drop(&mut self) {
        self.release();
    }
}
