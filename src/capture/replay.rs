//! `debug_serve_fills`: the whole result is captured first, then the client is answered from the
//! entry just stored, so that one execution exercises encoding, storing, decoding and serving.
//! A tuplestore keeps the rows as well, for results that could not be stored.

use pgrx::pg_sys;

use super::{Capture, RunNext};
use crate::compat::{self, guarded};
use crate::serve::{Hold, Rows};
use crate::shmem;

/// Where the rows come from, and the slot that carries them.
pub struct Replay {
    source: Source,
    slot: *mut pg_sys::TupleTableSlot,
}

enum Source {
    Entry(*mut Hold),
    Store(*mut pg_sys::Tuplestorestate),
}

impl Replay {
    /// Runs the query to its end and prepares to deliver its rows.
    ///
    /// # Safety
    /// `query_desc` must be a started query, `capture` its own and still filling.
    pub unsafe fn fill(
        capture: &mut Capture,
        query_desc: *mut pg_sys::QueryDesc,
        once: bool,
        next: RunNext,
    ) -> Self {
        // SAFETY: as the caller promises. Everything lives in the query's own context, which
        // ExecutorEnd frees.
        unsafe {
            let context = (*(*query_desc).estate).es_query_cxt;
            let caller = pg_sys::MemoryContextSwitchTo(context);
            let rows = pg_sys::tuplestore_begin_heap(false, false, pg_sys::work_mem);
            let receiver = pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestTuplestore);
            compat::receive_into_tuplestore(receiver, rows, context);
            pg_sys::MemoryContextSwitchTo(caller);

            let client = (*query_desc).dest;
            (*query_desc).dest = receiver;
            capture.fill(query_desc, 0, once, next);
            (*query_desc).dest = client;

            let entry = capture.finish(query_desc).and_then(|pin| {
                let store = shmem::store()?;
                match Hold::register(pin, context) {
                    Ok(hold) => {
                        let columns = capture.miss.columns.clone();
                        let pin = (*hold).pin()?;
                        (*hold).set_rows(Rows::new(columns, store.view(&pin).chunks()));
                        Some(hold)
                    }
                    Err(pin) => {
                        store.unpin(pin);
                        None
                    }
                }
            });
            let (source, operations) = match entry {
                Some(hold) => (Source::Entry(hold), &raw const pg_sys::TTSOpsVirtual),
                None => (Source::Store(rows), &raw const pg_sys::TTSOpsMinimalTuple),
            };
            let caller = pg_sys::MemoryContextSwitchTo(context);
            let slot = pg_sys::MakeSingleTupleTableSlot((*query_desc).tupDesc, operations);
            pg_sys::MemoryContextSwitchTo(caller);
            Self { source, slot }
        }
    }

    /// Sends up to `count` rows (0: all) to the query's receiver, as ExecutorRun would.
    ///
    /// # Safety
    /// `query_desc` must be the query this was made for.
    pub unsafe fn deliver(&mut self, query_desc: *mut pg_sys::QueryDesc, count: u64) {
        // SAFETY: as the caller promises; the receiver is called as the executor would.
        unsafe {
            let receiver = (*query_desc).dest;
            if let Some(startup) = (*receiver).rStartup {
                let descriptor = (*query_desc).tupDesc;
                let operation = (*query_desc).operation as i32;
                guarded!(startup(receiver, operation, descriptor));
            }
            let mut sent = 0;
            while (count == 0 || sent < count) && self.next() {
                if let Some(receive) = (*receiver).receiveSlot {
                    let slot = self.slot;
                    if !guarded!(receive(slot, receiver)) {
                        break;
                    }
                }
                sent += 1;
            }
            pg_sys::ExecClearTuple(self.slot);
            if let Some(shutdown) = (*receiver).rShutdown {
                guarded!(shutdown(receiver));
            }
            compat::set_processed((*query_desc).estate, sent);
        }
    }

    /// Puts the next row into the slot.
    ///
    /// # Safety
    /// As `deliver`.
    unsafe fn next(&mut self) -> bool {
        // SAFETY: as the caller promises.
        unsafe {
            match self.source {
                Source::Store(rows) => {
                    pg_sys::tuplestore_gettupleslot(rows, true, false, self.slot)
                }
                Source::Entry(hold) => {
                    pg_sys::ExecClearTuple(self.slot);
                    let natts = (*(*self.slot).tts_tupleDescriptor).natts as usize;
                    let (values, nulls) = crate::serve::slot_values(self.slot, natts);
                    let filled = (*hold).rows().is_some_and(|rows| rows.next(values, nulls));
                    if filled {
                        pg_sys::ExecStoreVirtualTuple(self.slot);
                    }
                    filled
                }
            }
        }
    }
}
