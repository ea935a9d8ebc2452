//! A tee: a DestReceiver that hands each row to the receiver that was there before and then to a sink of ours. It belongs to one query of
//! one process.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::pg::error_passing::{direct, edge};
use crate::pg::row::Row;

/// Takes the rows of a query, one by one.
pub trait RowSink {
    /// Adds a row.
    ///
    /// # Errors
    /// Why no further rows are wanted.
    fn append(&mut self, row: Row<'_>) -> Result<(), Reason>;

    /// Should the executor go on? If not, it pauses after the row that was added last.
    fn wants_more(&self) -> bool {
        true
    }
}

/// A receiver as the server knows it, with our part behind it.
#[repr(C)]
pub struct Tee<S: RowSink> {
    receiver: pg_sys::DestReceiver,
    inner: *mut pg_sys::DestReceiver,
    /// Where the rows go besides.
    pub sink: S,
    /// Detoasted copies of the current row.
    row_context: pg_sys::MemoryContext,
    /// Why the sink has not taken all rows; `None` if it has.
    pub failure: Option<Reason>,
}

impl<S: RowSink> Tee<S> {
    /// A tee for the rows of a query. It must not move while it is in place.
    ///
    /// # Safety
    /// `query_desc` must be a started query that outlives the tee. The sink must have been made for rows of its result.
    pub unsafe fn new(query_desc: *const pg_sys::QueryDesc, sink: S) -> Self {
        // SAFETY: a started query has a state; the context ends with it.
        unsafe {
            let row_context = pg_sys::AllocSetContextCreateInternal(
                (*(*query_desc).estate).es_query_cxt,
                c"pg_arrow_cache row".as_ptr(),
                pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
                pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            );
            Self {
                receiver: pg_sys::DestReceiver {
                    receiveSlot: Some(receive::<S>),
                    rStartup: Some(startup::<S>),
                    rShutdown: Some(shutdown::<S>),
                    rDestroy: None,
                    mydest: pg_sys::CommandDest::DestNone,
                },
                inner: std::ptr::null_mut(),
                sink,
                row_context,
                failure: None,
            }
        }
    }

    /// Puts the tee in front of the query's receiver, which it returns.
    ///
    /// # Safety
    /// `query_desc` must be the query the tee was made for; the receiver must be put back before
    /// the tee moves or ends.
    pub unsafe fn install(&mut self, query_desc: *mut pg_sys::QueryDesc) -> *mut pg_sys::DestReceiver {
        // SAFETY: the query is valid and has a receiver, which outlives its run.
        unsafe {
            self.inner = (*query_desc).dest;
            self.receiver.mydest = (*self.inner).mydest;
            (*query_desc).dest = (&raw mut *self).cast();
        }
        self.inner
    }
}

unsafe extern "C-unwind" fn startup<S: RowSink>(
    receiver: *mut pg_sys::DestReceiver,
    operation: i32,
    descriptor: pg_sys::TupleDesc,
) {
    // SAFETY: `receiver` is the head of a Tee; the inner one is called as the executor would.
    unsafe {
        let inner = (*receiver.cast::<Tee<S>>()).inner;
        if let Some(startup) = (*inner).rStartup {
            direct!(startup(inner, operation, descriptor));
        }
    }
}

unsafe extern "C-unwind" fn shutdown<S: RowSink>(receiver: *mut pg_sys::DestReceiver) {
    // SAFETY: as in `startup`.
    unsafe {
        let inner = (*receiver.cast::<Tee<S>>()).inner;
        if let Some(shutdown) = (*inner).rShutdown {
            direct!(shutdown(inner));
        }
    }
}

unsafe extern "C-unwind" fn receive<S: RowSink>(
    slot: *mut pg_sys::TupleTableSlot,
    receiver: *mut pg_sys::DestReceiver,
) -> bool {
    // SAFETY: as in `startup`; the slot holds a row until the executor asks for the next one.
    unsafe {
        let tee = receiver.cast::<Tee<S>>();
        let inner = (*tee).inner;
        let go_on = match (*inner).receiveSlot {
            Some(receive) => direct!(receive(slot, inner)),
            None => true,
        };
        if !go_on {
            (*tee).failure = Some(Reason::IncompleteRead);
        } else if (*tee).failure.is_none() {
            edge(|| (*tee).failure = capture_row(&mut *tee, slot).err());
        }
        go_on && (*tee).sink.wants_more()
    }
}

/// Gives the row of a slot to the sink. Copies that detoasting makes go into the row context, which is emptied after each row that made any.
///
/// # Safety
/// `slot` must hold a row of the tee's query.
unsafe fn capture_row<S: RowSink>(tee: &mut Tee<S>, slot: *mut pg_sys::TupleTableSlot) -> Result<(), Reason> {
    // SAFETY: a slot has one valid value per attribute once all are deformed, and `Tee::new` was promised that the sink takes such rows.
    unsafe {
        let natts = (*(*slot).tts_tupleDescriptor).natts;
        if i32::from((*slot).tts_nvalid) < natts {
            pg_sys::slot_getsomeattrs_int(slot, natts);
        }
        if natts == 0 {
            return tee.sink.append(Row::new(&[], &[]));
        }
        let values = std::slice::from_raw_parts((*slot).tts_values, natts as usize);
        let nulls = std::slice::from_raw_parts((*slot).tts_isnull, natts as usize);
        let caller = pg_sys::MemoryContextSwitchTo(tee.row_context);
        let appended = tee.sink.append(Row::new(values, nulls));
        pg_sys::MemoryContextSwitchTo(caller);
        if !(*tee.row_context).isReset {
            pg_sys::MemoryContextReset(tee.row_context);
        }
        appended
    }
}
