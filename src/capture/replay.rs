//! `debug_serve_fills`: the whole result is captured first, then the client is answered from the
//! entry just stored, so that one execution exercises encoding, storing, decoding and serving.
//! A tuplestore keeps the rows as well, for results that could not be stored.

use arrow_cache_core::Pin;
use pgrx::pg_sys;

use super::{Stage, running};
use crate::error::or_raise;
use crate::lookup::Miss;
use crate::pg::error_passing::{direct, edge};
use crate::pg::tuplestore;
use crate::serve::{Hold, Rows, slot_values};
use crate::shmem;

/// Where the rows come from, and the slot that carries them.
pub struct Replay {
    source: Source,
    slot: *mut pg_sys::TupleTableSlot,
}

enum Source {
    Entry(*mut Hold),
    Tuples(*mut pg_sys::Tuplestorestate),
}

/// Directs a query's rows into a tuplestore, which it returns.
///
/// # Safety
/// `query_desc` must be a started query.
pub unsafe fn keep_rows(query_desc: *mut pg_sys::QueryDesc) -> *mut pg_sys::Tuplestorestate {
    // SAFETY: as the caller promises. Everything lives as long as the query.
    unsafe {
        let context = (*(*query_desc).estate).es_query_cxt;
        let caller = pg_sys::MemoryContextSwitchTo(context);
        let tuples = pg_sys::tuplestore_begin_heap(false, false, pg_sys::work_mem);
        let receiver = pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestTuplestore);
        tuplestore::receive_into_tuplestore(receiver, tuples, context);
        pg_sys::MemoryContextSwitchTo(caller);
        (*query_desc).dest = receiver;
        tuples
    }
}

impl Replay {
    /// Prepares to deliver the rows of a query that was run to its end: from its entry if there is
    /// one, else from the tuplestore.
    ///
    /// # Safety
    /// `query_desc` must be a started query, and `miss` its own, with the rows kept.
    pub unsafe fn new(query_desc: *mut pg_sys::QueryDesc, miss: &Miss, entry: Option<Pin>) -> Self {
        // SAFETY: as the caller promises. Everything lives in the query's own context, which
        // ExecutorEnd frees.
        unsafe {
            let context = (*(*query_desc).estate).es_query_cxt;
            let hold = entry.and_then(|pin| {
                let store = shmem::store()?;
                match Hold::register(pin, context) {
                    Ok(hold) => {
                        let pin = (*hold).pin()?;
                        match Rows::new(miss.columns.clone(), store.view(&pin).chunks()) {
                            Ok(rows) => (*hold).set_rows(rows),
                            Err(_) => {
                                (*hold).release();
                                return None;
                            }
                        }
                        Some(hold)
                    }
                    Err(pin) => {
                        store.unpin(pin);
                        None
                    }
                }
            });
            let (source, operations) = match hold {
                Some(hold) => (Source::Entry(hold), &raw const pg_sys::TTSOpsVirtual),
                None => (Source::Tuples(miss.tuples), &raw const pg_sys::TTSOpsMinimalTuple),
            };
            let caller = pg_sys::MemoryContextSwitchTo(context);
            let slot = pg_sys::MakeSingleTupleTableSlot((*query_desc).tupDesc, operations);
            pg_sys::MemoryContextSwitchTo(caller);
            Self { source, slot }
        }
    }

    /// The slot with the next row in it; null at the end.
    ///
    /// # Safety
    /// The query must still run.
    unsafe fn next(&mut self) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: as the caller promises.
        let filled = unsafe {
            match self.source {
                Source::Tuples(tuples) => pg_sys::tuplestore_gettupleslot(tuples, true, false, self.slot),
                Source::Entry(hold) => {
                    pg_sys::ExecClearTuple(self.slot);
                    let natts = (*(*self.slot).tts_tupleDescriptor).natts as usize;
                    let (values, nulls) = slot_values(self.slot, natts);
                    let filled = (*hold).rows().is_some_and(|rows| or_raise(rows.next(values, nulls)));
                    if filled {
                        pg_sys::ExecStoreVirtualTuple(self.slot);
                    }
                    filled
                }
            }
        };
        if filled { self.slot } else { std::ptr::null_mut() }
    }
}

/// The next row of a query that replays; null at the end.
///
/// # Safety
/// `query_desc` must be a running query.
unsafe fn next_row(query_desc: *const pg_sys::QueryDesc) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as the caller promises; see `running`.
    unsafe {
        match running(query_desc).map(|capture| &mut (*capture).stage) {
            Some(Stage::Replaying(replay)) => replay.next(),
            _ => std::ptr::null_mut(),
        }
    }
}

/// Sends up to `count` rows (0: all) to the query's receiver, as ExecutorRun would. What the
/// receiver raises jumps over this frame.
///
/// # Safety
/// `query_desc` must be a running query that replays.
pub unsafe fn replay(query_desc: *mut pg_sys::QueryDesc, count: u64) {
    // SAFETY: as the caller promises; the receiver is called as the executor would.
    unsafe {
        let receiver = (*query_desc).dest;
        if let Some(startup) = (*receiver).rStartup {
            direct!(startup(receiver, (*query_desc).operation as i32, (*query_desc).tupDesc));
        }
        let mut sent = 0;
        while count == 0 || sent < count {
            let slot = edge(|| next_row(query_desc));
            if slot.is_null() {
                break;
            }
            if let Some(receive) = (*receiver).receiveSlot
                && !direct!(receive(slot, receiver))
            {
                break;
            }
            sent += 1;
        }
        (*(*query_desc).estate).es_processed = sent;
        if let Some(shutdown) = (*receiver).rShutdown {
            direct!(shutdown(receiver));
        }
    }
}
