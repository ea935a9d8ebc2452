//! `debug_serve_fills`: the whole result is stored first, then the client gets the rows of the entry just stored. So one execution
//! encodes, stores, decodes and serves. A tuplestore keeps the rows as well, for results that could not be stored. Everything lives as
//! long as the query.

use std::rc::Rc;

use arrow_cache_core::Pin;
use pgrx::pg_sys;

use crate::arrow::column::Column;
use crate::error::or_raise;
use crate::pg::query_desc::QueryDesc;
use crate::pg::row_type::RowType;
use crate::pg::tuplestore;
use crate::serve::{Hold, slot_values};

/// Where the rows come from, and the slot that carries them. Exists only while its query is on the list of queries under way.
pub struct Replay {
    origin: Origin,
    slot: *mut pg_sys::TupleTableSlot,
}

enum Origin {
    Entry(*mut Hold),
    Tuples(*mut pg_sys::Tuplestorestate),
}

/// Directs the rows of a query under way into a tuplestore, which it returns.
pub fn keep_rows(query: QueryDesc<'_>) -> *mut pg_sys::Tuplestorestate {
    let Some(context) = query.memory() else { return std::ptr::null_mut() };
    // SAFETY: the context is that of the query. Tuplestore and receiver live in it, as long as the query.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(context);
        let tuples = kept!(pg_sys::tuplestore_begin_heap(false, false, pg_sys::work_mem));
        let receiver = kept!(pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestTuplestore));
        tuplestore::receive_into_tuplestore(receiver, tuples, context);
        pg_sys::MemoryContextSwitchTo(caller);
        query.set_receiver(receiver);
        tuples
    }
}

/// Frees what `keep_rows` has kept, at the query's end. After an error nobody comes here, and the transaction's abort closes the file.
pub fn free_rows(tuples: *mut pg_sys::Tuplestorestate) {
    if !tuples.is_null() {
        // SAFETY: made by `keep_rows` for this query, whose context is still there at its end; nobody finds them after this.
        unsafe { kept!(pg_sys::tuplestore_end(tuples)) };
    }
}

impl Replay {
    /// Prepares to deliver the rows of a query that was run to its end: from its entry if there is one, else from the tuplestore.
    pub fn new(
        query: QueryDesc<'_>,
        columns: &Rc<[Column]>,
        tuples: *mut pg_sys::Tuplestorestate,
        entry: Option<Pin>,
    ) -> Self {
        // SAFETY: the entry was made of these columns.
        let hold = entry.and_then(|pin| unsafe { Hold::new(query, pin, Rc::clone(columns)) });
        let (origin, operations) = match hold {
            Some(hold) => (Origin::Entry(hold), &raw const pg_sys::TTSOpsVirtual),
            None => (Origin::Tuples(tuples), &raw const pg_sys::TTSOpsMinimalTuple),
        };
        // SAFETY: the query is under way: it has a context, in which the slot lives, and a descriptor of its rows.
        let slot = unsafe {
            let caller = pg_sys::MemoryContextSwitchTo(query.memory().unwrap_or(pg_sys::CurrentMemoryContext));
            let slot = kept!(pg_sys::MakeSingleTupleTableSlot(
                query.row_type().map_or(std::ptr::null_mut(), RowType::as_ptr),
                operations,
            ));
            pg_sys::MemoryContextSwitchTo(caller);
            slot
        };
        Self { origin, slot }
    }

    /// The slot with the next row in it; null at the end.
    pub fn next(&mut self) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: the query is under way, so its context has the slot, and the hold or the tuplestore. A slot for entries is a virtual one
        // with one value per column of the entry.
        let filled = unsafe {
            match self.origin {
                Origin::Tuples(tuples) => kept!(pg_sys::tuplestore_gettupleslot(tuples, true, false, self.slot)),
                Origin::Entry(hold) => {
                    pg_sys::ExecClearTuple(self.slot);
                    let (values, nulls) = slot_values(self.slot);
                    let filled = (*hold).rows().is_some_and(|rows| or_raise(rows.next(values, nulls)));
                    if filled {
                        kept!(pg_sys::ExecStoreVirtualTuple(self.slot));
                    }
                    filled
                }
            }
        };
        if filled { self.slot } else { std::ptr::null_mut() }
    }
}
