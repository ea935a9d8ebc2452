//! Tells all rooms that ask of relations whose definition may have changed. The server has few places for such
//! listeners in a backend, for all libraries together, so this file takes one for all of ours. State of this backend;
//! no lock.

use std::cell::RefCell;

use pgrx::pg_sys;

use super::backend_local::Local;

/// Called with the OID of a relation; InvalidOid stands for all relations. It may be called in the middle of an abort,
/// so it must not call PostgreSQL.
pub type Listener = fn(pg_sys::Oid);

static LISTENERS: Local<RefCell<Vec<Listener>>> = Local::new(RefCell::new(Vec::new()));

/// From now on, `listener` is called for changed relations. Further calls with the same listener change nothing.
pub fn listen(listener: Listener) {
    let first = LISTENERS.with_borrow(Vec::is_empty);
    if first {
        // SAFETY: the callback is a function without an argument of its own, called on this thread.
        unsafe { kept!(pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), pg_sys::Datum::from(0))) };
    }
    LISTENERS.with_borrow_mut(|listeners| {
        if !listeners.iter().any(|known| std::ptr::fn_addr_eq(*known, listener)) {
            listeners.push(listener);
        }
    });
}

unsafe extern "C-unwind" fn relation_changed(_arg: pg_sys::Datum, relation: pg_sys::Oid) {
    LISTENERS.with_borrow(|listeners| listeners.iter().for_each(|listener| listener(relation)));
}
