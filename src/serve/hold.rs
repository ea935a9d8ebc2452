//! A pin that the server's own clean-up releases: on success, error, subtransaction abort and
//! FATAL alike a memory context is reset or deleted, and its callbacks run. Rust's Drop does not
//! run on all of those paths.

use std::ffi::c_void;
use std::rc::Rc;

use arrow_cache_core::{EntryId, Pin};
use pgrx::pg_sys;

use super::rerun::Guard;
use super::rows::Rows;
use super::straight::Straight;
use super::template::Template;
use crate::shmem;

/// A pinned entry and what reads it. Lives in a memory context, released with it at the latest.
pub struct Hold {
    callback: pg_sys::MemoryContextCallback,
    pin: Option<EntryId>,
    rows: Option<Box<Rows>>,
    guard: Option<Box<Guard>>,
    straight: Option<Box<Straight>>,
    /// What the serving plan points into.
    template: Option<Rc<Template>>,
}

impl Hold {
    /// Hands a pin over to a memory context. Gives it back when there is no memory.
    ///
    /// # Errors
    /// The pin.
    ///
    /// # Safety
    /// `context` must be a live memory context.
    pub unsafe fn register(pin: Pin, context: pg_sys::MemoryContext) -> Result<*mut Self, Pin> {
        // SAFETY: as the caller promises; with NO_OOM a lack of memory gives null. The callback
        // is part of the struct, so it lives as long as it is registered.
        unsafe {
            let hold: *mut Self = pg_sys::MemoryContextAllocExtended(
                context,
                std::mem::size_of::<Self>(),
                pg_sys::MCXT_ALLOC_NO_OOM as i32,
            )
            .cast();
            if hold.is_null() {
                return Err(pin);
            }
            hold.write(Self {
                callback: pg_sys::MemoryContextCallback {
                    func: Some(context_gone),
                    arg: hold.cast(),
                    next: std::ptr::null_mut(),
                },
                pin: Some(pin.entry()),
                rows: None,
                guard: None,
                straight: None,
                template: None,
            });
            pg_sys::MemoryContextRegisterResetCallback(context, &raw mut (*hold).callback);
            Ok(hold)
        }
    }

    /// The pin, for reading the entry; it stays the hold's.
    ///
    /// # Safety
    /// The result must not be given to `unpin`, nor used once the hold is released.
    pub unsafe fn pin(&self) -> Option<Pin> {
        // SAFETY: the hold has the pin, and the caller does not release this copy.
        self.pin.map(|entry| unsafe { Pin::from_entry(entry) })
    }

    /// Where reading stands; `None` before it began.
    pub fn rows(&mut self) -> Option<&mut Rows> {
        self.rows.as_deref_mut()
    }

    /// Begins reading.
    pub fn set_rows(&mut self, rows: Rows) {
        self.rows = Some(Box::new(rows));
    }

    /// Makes the reader check something before the first row.
    pub fn set_guard(&mut self, guard: Guard) {
        self.guard = Some(Box::new(guard));
    }

    /// What is still to be checked, if anything.
    pub fn guard(&mut self) -> Option<&mut Guard> {
        self.guard.as_deref_mut()
    }

    /// Takes what is to be checked: it is checked once.
    pub fn take_guard(&mut self) -> Option<Box<Guard>> {
        self.guard.take()
    }

    /// What sends rows straight to the client, in a place that stays the same until it is taken.
    pub fn straight(&mut self) -> Option<*mut Straight> {
        self.straight.as_deref_mut().map(std::ptr::from_mut)
    }

    /// Has rows sent straight to the client.
    pub fn set_straight(&mut self, straight: Straight) {
        self.straight = Some(Box::new(straight));
    }

    /// Takes what sends rows.
    pub fn take_straight(&mut self) -> Option<Box<Straight>> {
        self.straight.take()
    }

    /// Keeps a template for as long as the memory context lives.
    pub fn keep(&mut self, template: Rc<Template>) {
        self.template = Some(template);
    }

    /// Lets the entry go. May be called again, without effect.
    pub fn release(&mut self) {
        self.straight = None;
        self.rows = None;
        self.guard = None;
        if let (Some(entry), Some(store)) = (self.pin.take(), shmem::store()) {
            // SAFETY: the hold had the pin and forgets it here, so it is released once.
            store.unpin(unsafe { Pin::from_entry(entry) });
        }
    }
}

/// The memory context goes away: atomics and the freeing of Rust memory only, since this runs in
/// the middle of error recovery.
unsafe extern "C-unwind" fn context_gone(hold: *mut c_void) {
    // SAFETY: registered with the address of the hold, which the context still contains.
    unsafe {
        let hold = &mut *hold.cast::<Hold>();
        hold.release();
        hold.template = None;
    };
}
