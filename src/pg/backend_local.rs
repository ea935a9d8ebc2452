//! Variables of this backend, as C extensions have them: plain statics. A PostgreSQL backend has one thread, so they
//! need no lock. Rust's thread-local variables would cost a call of the dynamic linker for each access, and every
//! statement makes dozens of accesses.

use std::cell::RefCell;
use std::ops::Deref;

/// A variable of this backend. Its type allows changes through shared references: a `Cell` or a `RefCell`.
pub struct Local<T>(T);

// SAFETY: a backend runs on one thread only (the server starts none, and nothing here does), so no two threads ever
// see the variable. The postmaster's values are copied into each backend by fork.
unsafe impl<T> Sync for Local<T> {}

impl<T> Local<T> {
    /// Lends the value to `f`.
    pub fn with<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        f(&self.0)
    }

    /// A variable with its first value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Local<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Local<RefCell<T>> {
    /// Lends the value to `f`.
    pub fn with_borrow<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        f(&self.0.borrow())
    }

    /// Lends the value to `f`, to be changed.
    pub fn with_borrow_mut<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.borrow_mut())
    }
}
