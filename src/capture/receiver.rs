//! A DestReceiver that hands each row on to the real one and then to a sink.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::compat::guarded;

/// Takes the rows of a query, one by one.
pub trait RowSink {
    /// Adds a row.
    ///
    /// # Errors
    /// Why no further rows are wanted.
    ///
    /// # Safety
    /// `values` and `nulls` must hold one value per column of the result.
    unsafe fn append(&mut self, values: &[pg_sys::Datum], nulls: &[bool]) -> Result<(), Reason>;
}

/// PostgreSQL's part first, ours behind it. On the stack of `with_tee`.
#[repr(C)]
struct Tee<S: RowSink> {
    receiver: pg_sys::DestReceiver,
    inner: *mut pg_sys::DestReceiver,
    sink: *mut S,
    /// Detoasted copies of the current row.
    row_context: pg_sys::MemoryContext,
    failure: Option<Reason>,
}

/// Puts the real receiver back, on the error path too.
struct Restore {
    query_desc: *mut pg_sys::QueryDesc,
    receiver: *mut pg_sys::DestReceiver,
    row_context: pg_sys::MemoryContext,
}

impl Drop for Restore {
    fn drop(&mut self) {
        // SAFETY: the query descriptor outlives the run, and so does its receiver.
        unsafe { (*self.query_desc).dest = self.receiver };
        if !std::thread::panicking() {
            // SAFETY: created by `with_tee`, deleted once; after an error its parent deletes it.
            unsafe { pg_sys::MemoryContextDelete(self.row_context) };
        }
    }
}

/// Runs `run` with a receiver in place that hands rows to `sink` too. Returns why the sink
/// has not taken all of them, if so.
///
/// # Safety
/// `query_desc` must be a started query that `run` runs.
pub unsafe fn with_tee<S: RowSink>(
    query_desc: *mut pg_sys::QueryDesc,
    sink: &mut S,
    run: impl FnOnce(),
) -> Option<Reason> {
    // SAFETY: as the caller promises; the tee lives on this frame until the run is over.
    unsafe {
        let inner = (*query_desc).dest;
        let row_context = pg_sys::AllocSetContextCreateInternal(
            (*(*query_desc).estate).es_query_cxt,
            c"pg_arrow_cache row".as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        let mut tee = Tee {
            receiver: pg_sys::DestReceiver {
                receiveSlot: Some(receive::<S>),
                rStartup: Some(startup::<S>),
                rShutdown: Some(shutdown::<S>),
                rDestroy: None,
                mydest: (*inner).mydest,
            },
            inner,
            sink,
            row_context,
            failure: None,
        };
        let restore = Restore { query_desc, receiver: inner, row_context };
        (*query_desc).dest = (&raw mut tee).cast();
        run();
        drop(restore);
        tee.failure
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn startup<S: RowSink>(
    receiver: *mut pg_sys::DestReceiver,
    operation: i32,
    descriptor: pg_sys::TupleDesc,
) {
    // SAFETY: `receiver` is the head of a Tee; the inner one is called as the executor would.
    unsafe {
        let inner = (*receiver.cast::<Tee<S>>()).inner;
        if let Some(startup) = (*inner).rStartup {
            guarded!(startup(inner, operation, descriptor));
        }
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn shutdown<S: RowSink>(receiver: *mut pg_sys::DestReceiver) {
    // SAFETY: as in `startup`.
    unsafe {
        let inner = (*receiver.cast::<Tee<S>>()).inner;
        if let Some(shutdown) = (*inner).rShutdown {
            guarded!(shutdown(inner));
        }
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn receive<S: RowSink>(
    slot: *mut pg_sys::TupleTableSlot,
    receiver: *mut pg_sys::DestReceiver,
) -> bool {
    // SAFETY: as in `startup`; the slot holds a row until the executor asks for the next one.
    unsafe {
        let tee = &mut *receiver.cast::<Tee<S>>();
        let inner = tee.inner;
        let go_on = match (*inner).receiveSlot {
            Some(receive) => guarded!(receive(slot, inner)),
            None => true,
        };
        if !go_on {
            tee.failure.get_or_insert(Reason::IncompleteRead);
        } else if tee.failure.is_none() {
            tee.failure = capture_row(tee, slot).err();
        }
        go_on
    }
}

/// # Safety
/// As `receive`.
unsafe fn capture_row<S: RowSink>(tee: &Tee<S>, slot: *mut pg_sys::TupleTableSlot) -> Result<(), Reason> {
    // SAFETY: as the caller promises. A slot has one value per attribute once all are deformed.
    // Detoasted copies go into the row context, which is emptied after each row that made any.
    unsafe {
        let natts = (*(*slot).tts_tupleDescriptor).natts;
        if i32::from((*slot).tts_nvalid) < natts {
            pg_sys::slot_getsomeattrs_int(slot, natts);
        }
        if natts == 0 {
            return (*tee.sink).append(&[], &[]);
        }
        let values = std::slice::from_raw_parts((*slot).tts_values, natts as usize);
        let nulls = std::slice::from_raw_parts((*slot).tts_isnull, natts as usize);
        let caller = pg_sys::MemoryContextSwitchTo(tee.row_context);
        let appended = (*tee.sink).append(values, nulls);
        pg_sys::MemoryContextSwitchTo(caller);
        if !(*tee.row_context).isReset {
            pg_sys::MemoryContextReset(tee.row_context);
        }
        appended
    }
}
