//! Values and rows as the server passes them: datums, whose types only the context knows.
//!
//! Whoever makes a `Value` or a `Row` vouches for it once: for its memory, and that it is of the types for which the
//! code that takes it was made. Functions that take one need not ask again. Nothing is kept here.

use std::marker::PhantomData;

use pgrx::pg_sys;

/// A value that is not NULL, valid for `'v`.
#[derive(Clone, Copy)]
pub struct Value<'v> {
    datum: pg_sys::Datum,
    valid: PhantomData<&'v pg_sys::Datum>,
}

impl Value<'_> {
    /// The value of a datum.
    ///
    /// # Safety
    /// The datum must not stand for NULL. What it points to must be valid for `'v`, and so must be the memory context
    /// that is current while the value is read. It must be of the type for which the code that takes the value was
    /// made.
    #[inline]
    pub const unsafe fn of(datum: pg_sys::Datum) -> Self {
        Self { datum, valid: PhantomData }
    }

    /// The datum.
    #[inline]
    pub fn datum(self) -> pg_sys::Datum {
        self.datum
    }

    /// The datum as a number: the value itself, or its address.
    #[inline]
    pub fn word(self) -> usize {
        self.datum.value()
    }
}

/// A row, valid for `'r`: a datum for each column, and whether it stands for NULL.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    values: &'r [pg_sys::Datum],
    nulls: &'r [bool],
}

impl<'r> Row<'r> {
    /// The row of these datums.
    ///
    /// # Safety
    /// Both slices must be equally long. Each datum that does not stand for NULL must be as `Value::of` asks.
    #[inline]
    pub const unsafe fn new(values: &'r [pg_sys::Datum], nulls: &'r [bool]) -> Self {
        Self { values, nulls }
    }

    /// The datums. Those that stand for NULL may be anything.
    #[inline]
    pub fn values(self) -> &'r [pg_sys::Datum] {
        self.values
    }

    /// Which of the datums stand for NULL.
    #[inline]
    pub fn nulls(self) -> &'r [bool] {
        self.nulls
    }

    /// The value of a column, by its number from 0; `None` for NULL.
    #[inline]
    pub fn value(self, column: usize) -> Option<Value<'r>> {
        // SAFETY: the maker of the row vouched for each datum that does not stand for NULL.
        if self.nulls[column] { None } else { Some(unsafe { Value::of(self.values[column]) }) }
    }
}
