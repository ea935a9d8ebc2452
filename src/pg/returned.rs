//! What SQL functions return, and as which SQL types: each type here stands for one of SQL, so the columns that a
//! function is declared with are compared with those that it gives. Nothing is kept.

use std::ffi::CStr;

use arrow_cache_core::shown;
use pgrx::pg_sys::{self, Datum, Oid};

use super::function_call::FunctionCall;
use super::memory_context::leak;
use super::row_type::RowType;
use crate::error::CacheError;

/// What a function returns: a value, or a set of rows.
pub trait Returned {
    /// Answers the call: by running the function, unless it has run for an earlier row.
    ///
    /// # Safety
    /// The server makes the call, of a function that is declared to return this.
    unsafe fn answer(call: pg_sys::FunctionCallInfo, function: impl FnOnce(FunctionCall<'_>) -> Self) -> Datum;
}

/// One value.
pub trait Column {
    /// Its type.
    const TYPE: Oid;

    /// The value, in the current memory context; `None` for NULL.
    fn datum(self) -> Option<Datum>;
}

/// A row, of one column or several.
pub trait Columns {
    /// The types of the columns.
    const TYPES: &'static [Oid];

    /// Gives the values in their order.
    fn each(self, give: impl FnMut(Option<Datum>));
}

/// A set of rows.
pub struct Set<R>(Box<dyn Iterator<Item = R>>);

impl<R> Set<R> {
    /// These rows, each of which is made when it is asked for.
    pub fn new(rows: impl IntoIterator<Item = R, IntoIter: 'static>) -> Self {
        Self(Box::new(rows.into_iter()))
    }
}

impl<R: 'static> Set<R> {
    /// One row.
    pub fn once(row: R) -> Self {
        Self::new(std::iter::once(row))
    }
}

/// A datum that is returned as it is, and not as NULL: a row of a trigger, or null for none.
pub struct Unchanged(pub Datum);

/// A text, in the encoding of the database.
pub struct Text(pub Vec<u8>);

/// A type, which is shown by its name.
pub struct TypeName(pub Oid);

/// A time, in microseconds since 2000-01-01 00:00 UTC.
pub struct Timestamp(pub i64);

macro_rules! columns {
    ($($type:ty: $oid:ident, $value:ident => $datum:expr;)+) => {
        $(impl Column for $type {
            const TYPE: Oid = pg_sys::$oid;

            fn datum(self) -> Option<Datum> {
                let $value = self;
                Some($datum)
            }
        })+
    };
}

columns! {
    (): VOIDOID, _nothing => Datum::null();
    Unchanged: TRIGGEROID, row => row.0;
    bool: BOOLOID, value => Datum::from(value);
    i32: INT4OID, number => Datum::from(number);
    i64: INT8OID, number => Datum::from(number);
    f64: FLOAT8OID, number => Datum::from(number.to_bits());
    &str: TEXTOID, text => varlena(text.as_bytes());
    String: TEXTOID, text => varlena(text.as_bytes());
    Text: TEXTOID, text => varlena(&text.0);
    Vec<u8>: BYTEAOID, bytes => varlena(&bytes);
    Oid: OIDOID, object => Datum::from(object);
    TypeName: REGTYPEOID, object => Datum::from(object.0);
    Vec<Oid>: OIDARRAYOID, objects => array(&objects);
    Timestamp: TIMESTAMPTZOID, time => Datum::from(time.0);
}

impl<T: Column> Column for Option<T> {
    const TYPE: Oid = T::TYPE;

    fn datum(self) -> Option<Datum> {
        self.and_then(T::datum)
    }
}

fn varlena(bytes: &[u8]) -> Datum {
    // SAFETY: the server copies as many bytes as it is told; a bytea is built like a text.
    unsafe { Datum::from(kept!(pg_sys::cstring_to_text_with_len(bytes.as_ptr().cast(), bytes.len() as i32))) }
}

fn array(objects: &[Oid]) -> Datum {
    let mut elements: Vec<Datum> = objects.iter().map(|object| Datum::from(*object)).collect();
    let (first, count, alignment) = (elements.as_mut_ptr(), elements.len() as i32, pg_sys::TYPALIGN_INT as i8);
    // SAFETY: as many elements as it is told, of four bytes that are passed by value.
    unsafe { Datum::from(kept!(pg_sys::construct_array(first, count, pg_sys::OIDOID, 4, true, alignment))) }
}

impl<T: Column> Columns for T {
    const TYPES: &'static [Oid] = &[T::TYPE];

    fn each(self, mut give: impl FnMut(Option<Datum>)) {
        give(self.datum());
    }
}

macro_rules! rows {
    ($($column:ident)+;) => {};
    ($first:ident $($column:ident)+; $next:ident $($more:ident)*) => {
        impl<$first: Column, $($column: Column),+> Columns for ($first, $($column),+) {
            const TYPES: &'static [Oid] = &[$first::TYPE, $($column::TYPE),+];

            #[expect(non_snake_case, reason = "a column is named as its type")]
            fn each(self, mut give: impl FnMut(Option<Datum>)) {
                let ($first, $($column),+) = self;
                give($first.datum());
                $(give($column.datum());)+
            }
        }
        rows!($first $($column)+ $next; $($more)*);
    };
}

rows!(A B; C D E F G H I J K L M N O P Q R S T U V W X Y Z
    A1 B1 C1 D1 E1 F1 G1 H1 I1 J1 K1 L1 M1 N1 O1 P1 Q1 R1 S1 T1 U1 V1 W1 X1 End);

impl<T: Column> Returned for T {
    unsafe fn answer(call: pg_sys::FunctionCallInfo, function: impl FnOnce(FunctionCall<'_>) -> Self) -> Datum {
        // SAFETY: the caller's promise.
        let datum = function(unsafe { FunctionCall::of(call) }).datum();
        // SAFETY: as above.
        unsafe { (*call).isnull = datum.is_none() };
        datum.unwrap_or(Datum::null())
    }
}

/// Raises if a function is not declared to return rows of these types: by a script of another version.
///
/// # Safety
/// A call that the server makes, and the type of the rows that its function is declared to return, or null.
unsafe fn check_columns(call: pg_sys::FunctionCallInfo, declared: pg_sys::TupleDesc, types: &[Oid]) {
    // SAFETY: the caller's promise; the server returns a C string.
    unsafe {
        let fits = !declared.is_null()
            && RowType::of(declared).attributes().map(|column| column.atttypid).eq(types.iter().copied());
        if !fits {
            let name = CStr::from_ptr(kept!(pg_sys::format_procedure((*(*call).flinfo).fn_oid)));
            CacheError::misdeclared(shown(name.to_bytes())).raise();
        }
    }
}

impl<R: Columns + 'static> Returned for Set<R> {
    unsafe fn answer(call: pg_sys::FunctionCallInfo, function: impl FnOnce(FunctionCall<'_>) -> Self) -> Datum {
        // SAFETY: the caller's promise. These are the steps of a function that gives its rows one by one (funcapi.h).
        // The rows lie in the memory that the server keeps from the first call to the last.
        unsafe {
            if (*(*call).flinfo).fn_extra.is_null() {
                let all = kept!(pg_sys::init_MultiFuncCall(call));
                let context = (*all).multi_call_memory_ctx;
                let caller = pg_sys::MemoryContextSwitchTo(context);
                (*all).user_fctx = leak(context, function(FunctionCall::of(call))).cast();
                if R::TYPES.len() > 1 {
                    let descriptor = &raw mut (*all).tuple_desc;
                    kept!(pg_sys::get_call_result_type(call, std::ptr::null_mut(), descriptor));
                    check_columns(call, *descriptor, R::TYPES);
                    kept!(pg_sys::BlessTupleDesc(*descriptor));
                }
                pg_sys::MemoryContextSwitchTo(caller);
            }
            let all = kept!(pg_sys::per_MultiFuncCall(call));
            let next = (*(*all).user_fctx.cast::<Self>()).0.next();
            let result = (*call).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            let Some(row) = next else {
                kept!(pg_sys::end_MultiFuncCall(call, all));
                (*result).isDone = pg_sys::ExprDoneCond::ExprEndResult;
                (*call).isnull = true;
                return Datum::null();
            };
            (*result).isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
            let (mut values, mut nulls) = (Vec::new(), Vec::new());
            row.each(|value| {
                values.push(value.unwrap_or(Datum::null()));
                nulls.push(value.is_none());
            });
            if R::TYPES.len() == 1 {
                (*call).isnull = nulls[0];
                return values[0];
            }
            let tuple = kept!(pg_sys::heap_form_tuple((*all).tuple_desc, values.as_mut_ptr(), nulls.as_mut_ptr()));
            kept!(pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data))
        }
    }
}
