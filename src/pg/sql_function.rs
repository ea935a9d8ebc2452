//! SQL functions that are written by hand: what `#[pg_extern]` does for a function, with `edge` around it, so that an ERROR of the
//! server passes through it unchanged. Keeps nothing.

use pgrx::callconv::{CallCx, RetAbi};
use pgrx::{PgMemoryContexts, pg_sys};

use super::error_passing::edge;

/// Runs a SQL function that returns a value or, by an iterator, rows: what `#[pg_extern]` does, inside `edge`.
///
/// # Safety
/// Called by PostgreSQL, as a function with this result.
pub unsafe fn answer<R: RetAbi>(call: pg_sys::FunctionCallInfo, function: impl FnOnce() -> R) -> pg_sys::Datum {
    // SAFETY: PostgreSQL made the call for a function with this result; these are the steps of pgrx's own wrapper.
    unsafe {
        edge(|| {
            let result = match R::check_fcinfo_and_prepare(call) {
                CallCx::WrappedFn(context) => PgMemoryContexts::For(context).switch_to(|_| function()).to_ret(),
                CallCx::RestoreCx => R::ret_from_fcinfo_fcx(call),
            };
            R::box_ret_in_fcinfo(call, result)
        })
    }
}

/// Defines the function that PostgreSQL calls by the name `$symbol`, from one that takes the call and returns a value or an iterator. By
/// the name `$info` PostgreSQL asks how it is called (fmgr.h, PG_FUNCTION_INFO_V1).
macro_rules! sql_function {
    ($symbol:ident, $info:ident, $function:ident) => {
        /// Tells how the SQL function is called.
        #[unsafe(no_mangle)]
        pub extern "C" fn $info() -> &'static pgrx::pg_sys::Pg_finfo_record {
            const VERSION_1: pgrx::pg_sys::Pg_finfo_record = pgrx::pg_sys::Pg_finfo_record { api_version: 1 };
            &VERSION_1
        }

        /// The SQL function, as sql/functions.sql declares it.
        ///
        /// # Safety
        /// Called by PostgreSQL.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $symbol(call: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
            // SAFETY: PostgreSQL calls it, as sql/functions.sql declares it.
            unsafe {
                $crate::pg::sql_function::answer(call, || $function($crate::pg::function_call::FunctionCall::of(call)))
            }
        }
    };
}
pub(crate) use sql_function;
