//! A tee: a DestReceiver that hands each row to the receiver that was there before and to a sink of ours. The receiver
//! comes first, unless the sink itself sends the row to where the receiver would. It belongs to one query of one
//! process.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::pg::error_passing::edge;
use crate::pg::memory_context::context_below;
use crate::pg::query_desc::QueryDesc;
use crate::pg::row::Row;

/// Takes the rows of a query, one by one.
pub trait RowSink {
    /// Adds a row.
    ///
    /// # Errors
    /// Why no further rows are wanted.
    fn append(&mut self, row: Row<'_>) -> Result<(), Reason>;

    /// A run begins, whose rows go to this receiver, which has been started.
    fn begin_run(&mut self, _receiver: *mut pg_sys::DestReceiver) {}

    /// The run has ended.
    fn end_run(&mut self) {}

    /// Returns true if the next row is to be sent by `send` in the place of the receiver. To be asked before the row is
    /// added.
    fn sends(&mut self) -> bool {
        false
    }

    /// Sends the row that was added last. False if the receiver has to take it. Raises what making its bytes raises.
    ///
    /// # Safety
    /// `this` must be valid and stay in its place, `sends` have said yes, and this row have been added. No frame
    /// between here and PostgreSQL may have pending destructors.
    unsafe fn send(_this: *mut Self, _row: Row<'_>) -> bool {
        false
    }

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
    /// The query must have been started and outlive the tee. The sink must have been made for rows of its result.
    pub unsafe fn new(query: QueryDesc<'_>, sink: S) -> Self {
        let Some(parent) = query.memory() else { unreachable!("a tee is made for a query that has been started") };
        // SAFETY: the memory of a query is valid until it ends; the new context ends with it.
        let row_context = unsafe { context_below(parent, c"pg_arrow_cache row") };
        let receiver = pg_sys::DestReceiver {
            receiveSlot: Some(receive::<S>),
            rStartup: Some(startup::<S>),
            rShutdown: Some(shutdown::<S>),
            rDestroy: None,
            mydest: pg_sys::CommandDest::DestNone,
        };
        Self { receiver, inner: std::ptr::null_mut(), sink, row_context, failure: None }
    }

    /// Puts the tee in front of the query's receiver, which it returns.
    ///
    /// # Safety
    /// The query must be the one that the tee was made for. The receiver must be put back before the tee moves or ends.
    pub unsafe fn install(&mut self, query: QueryDesc<'_>) -> *mut pg_sys::DestReceiver {
        self.inner = query.receiver();
        // SAFETY: a query that runs has a receiver, which outlives its run. The caller puts it back before the tee is
        // gone.
        unsafe {
            self.receiver.mydest = (*self.inner).mydest;
            query.set_receiver((&raw mut *self).cast());
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
        let tee = receiver.cast::<Tee<S>>();
        let inner = (*tee).inner;
        if let Some(startup) = (*inner).rStartup {
            direct!(startup(inner, operation, descriptor));
        }
        edge(|| (*tee).sink.begin_run(inner));
    }
}

unsafe extern "C-unwind" fn shutdown<S: RowSink>(receiver: *mut pg_sys::DestReceiver) {
    // SAFETY: as in `startup`.
    unsafe {
        let tee = receiver.cast::<Tee<S>>();
        let inner = (*tee).inner;
        edge(|| (*tee).sink.end_run());
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
        let natts = (*(*slot).tts_tupleDescriptor).natts;
        if i32::from((*slot).tts_nvalid) < natts {
            direct!(pg_sys::slot_getsomeattrs_int(slot, natts));
        }
        let sends = (*tee).failure.is_none()
            && edge(|| {
                let sends = (*tee).sink.sends();
                if sends {
                    (*tee).failure = capture_row(&mut *tee, slot).err();
                }
                sends
            });
        if sends && (*tee).failure.is_none() && S::send(&raw mut (*tee).sink, row_of(slot)) {
            return (*tee).sink.wants_more();
        }
        let go_on = match (*inner).receiveSlot {
            Some(receive) => direct!(receive(slot, inner)),
            None => true,
        };
        if !go_on {
            (*tee).failure = Some(Reason::IncompleteRead);
        } else if !sends && (*tee).failure.is_none() {
            edge(|| (*tee).failure = capture_row(&mut *tee, slot).err());
        }
        go_on && (*tee).sink.wants_more()
    }
}

/// The row of a slot.
///
/// # Safety
/// `slot` must hold a row of the tee's query, deformed to its last attribute, and be left as it is while the row is
/// used.
unsafe fn row_of<'r>(slot: *mut pg_sys::TupleTableSlot) -> Row<'r> {
    // SAFETY: a slot has one valid value per attribute once all are deformed, and `Tee::new` was promised that the sink
    // takes such rows.
    unsafe {
        let natts = (*(*slot).tts_tupleDescriptor).natts as usize;
        if natts == 0 {
            return Row::new(&[], &[]);
        }
        let values = std::slice::from_raw_parts((*slot).tts_values, natts);
        let nulls = std::slice::from_raw_parts((*slot).tts_isnull, natts);
        Row::new(values, nulls)
    }
}

/// Gives the row of a slot to the sink. Copies that detoasting makes go into the row context, which is emptied after
/// each row that made any.
///
/// # Safety
/// As `row_of`.
unsafe fn capture_row<S: RowSink>(tee: &mut Tee<S>, slot: *mut pg_sys::TupleTableSlot) -> Result<(), Reason> {
    // SAFETY: the caller's promise.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(tee.row_context);
        let appended = tee.sink.append(row_of(slot));
        pg_sys::MemoryContextSwitchTo(caller);
        if !(*tee.row_context).isReset {
            kept!(pg_sys::MemoryContextReset(tee.row_context));
        }
        appended
    }
}
