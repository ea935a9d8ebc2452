//! Whether hooks that are called for each statement or transaction have more to do than to pass it on. Rooms keep what
//! they have under way in variables of their own; here are marks of which of these hold something, so that one look
//! tells that none does. A mark may be set although its variable holds nothing: then the hook asks in vain. State of
//! this backend; no lock.

use std::cell::{Cell, RefCell};

use super::backend_local::Local;

/// What the hooks of the executor may have to attend to, beside the query that they are called for.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Matter {
    /// Queries whose rows are captured.
    Captures = 1,
    /// What to begin with when a query has started.
    Prepared = 2,
    /// A COPY to Arrow.
    Copy = 8,
    /// A run below which queries are looked at.
    Observation = 16,
}

/// The matters there are.
static MATTERS: Local<Cell<u8>> = Local::new(Cell::new(0));
/// The end of the transaction has something to forget.
static IS_LEFT: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Returns true if there is nothing to attend to.
#[inline]
pub fn is_needless() -> bool {
    MATTERS.get() == 0
}

/// Notes that the end of the transaction has something to do. To be called before that is kept.
#[inline]
pub fn leave_for_end() {
    IS_LEFT.set(true);
}

/// Returns true if something was left for the end of the transaction, which is now.
#[inline]
pub fn take_left() -> bool {
    IS_LEFT.get() && IS_LEFT.replace(false)
}

/// A variable that can hold nothing.
pub trait Holder {
    /// Returns true if it holds nothing.
    fn holds_nothing(&self) -> bool;
}

impl<T> Holder for Vec<T> {
    fn holds_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl<T> Holder for Option<T> {
    fn holds_nothing(&self) -> bool {
        self.is_none()
    }
}

/// A variable of the backend that hooks attend to while it holds something.
pub struct Attended<T> {
    matter: Matter,
    value: RefCell<T>,
}

impl<T: Holder> Attended<T> {
    /// A variable that holds nothing yet.
    pub const fn new(matter: Matter, value: T) -> Self {
        Self { matter, value: RefCell::new(value) }
    }

    /// Lends the value to `f`.
    pub fn with_borrow<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        f(&self.value.borrow())
    }

    /// Lends the value to `f`, to be changed. A panic leaves the mark.
    pub fn with_borrow_mut<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let mark = self.matter as u8;
        MATTERS.set(MATTERS.get() | mark);
        let mut value = self.value.borrow_mut();
        let result = f(&mut value);
        if value.holds_nothing() {
            MATTERS.set(MATTERS.get() & !mark);
        }
        result
    }

    /// Returns true if it holds nothing.
    pub fn holds_nothing(&self) -> bool {
        MATTERS.get() & self.matter as u8 == 0 || self.with_borrow(T::holds_nothing)
    }
}

impl<T> Attended<Option<T>> {
    /// Takes the value out.
    pub fn take(&self) -> Option<T> {
        self.with_borrow_mut(Option::take)
    }

    /// Puts a value in the place of the one that it returns.
    pub fn replace(&self, value: Option<T>) -> Option<T> {
        self.with_borrow_mut(|own| std::mem::replace(own, value))
    }
}
