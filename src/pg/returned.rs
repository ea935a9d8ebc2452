//! Values that SQL functions return, and as which SQL types. `sql_function!` compares them with the signature when it is compiled: a function
//! whose signature says something else is not built. Nothing is kept.

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::{Datum, TimestampWithTimeZone};
use pgrx::iter::{SetOfIterator, TableIterator};
use pgrx::pg_sys::{self, Oid};

/// A datum that is returned as it is, and not as NULL: a row of a trigger, or null for none.
pub struct Unchanged(pub pg_sys::Datum);

// SAFETY: the datum is what the function must return.
unsafe impl BoxRet for Unchanged {
    unsafe fn box_into<'fcx>(self, call: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        // SAFETY: the function that made it has the call before it.
        unsafe { call.return_raw_datum(self.0) }
    }
}

/// What a function returns.
pub trait Returned {
    /// For each column, or the one value, the types that it may have.
    const COLUMNS: &'static [&'static [Oid]];
    /// Is it a set?
    const SET: bool;
}

/// One value.
pub trait Column {
    /// The types that it may have.
    const TYPES: &'static [Oid];
}

/// A row of several columns.
pub trait Columns {
    /// For each column the types that it may have.
    const COLUMNS: &'static [&'static [Oid]];
}

macro_rules! columns {
    ($($type:ty: $($oid:ident)+;)+) => {
        $(impl Column for $type {
            const TYPES: &'static [Oid] = &[$(pg_sys::$oid),+];
        })+
    };
}

columns! {
    (): VOIDOID;
    Unchanged: TRIGGEROID;
    bool: BOOLOID;
    i32: INT4OID;
    i64: INT8OID;
    f64: FLOAT8OID;
    &str: TEXTOID;
    String: TEXTOID;
    Vec<u8>: BYTEAOID TEXTOID;
    Oid: OIDOID REGTYPEOID;
    Vec<Oid>: OIDARRAYOID;
    TimestampWithTimeZone: TIMESTAMPTZOID;
}

impl<T: Column> Column for Option<T> {
    const TYPES: &'static [Oid] = T::TYPES;
}

impl<T: Column> Returned for T {
    const COLUMNS: &'static [&'static [Oid]] = &[T::TYPES];
    const SET: bool = false;
}

impl<T: Column> Returned for SetOfIterator<'_, T> {
    const COLUMNS: &'static [&'static [Oid]] = &[T::TYPES];
    const SET: bool = true;
}

impl<R: Columns> Returned for TableIterator<'_, R> {
    const COLUMNS: &'static [&'static [Oid]] = R::COLUMNS;
    const SET: bool = true;
}

macro_rules! rows {
    ($($column:ident)+;) => {};
    ($first:ident $($column:ident)+; $next:ident $($more:ident)*) => {
        impl<$first: Column, $($column: Column),+> Columns for ($first, $($column),+) {
            const COLUMNS: &'static [&'static [Oid]] = &[$first::TYPES, $($column::TYPES),+];
        }
        rows!($first $($column)+ $next; $($more)*);
    };
}

rows!(A B; C D E F G H I J K L M N O P Q R S T U V W End);
