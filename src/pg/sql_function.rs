//! The C functions that SQL calls: the same steps for each of them, with `edge` around, so that an ERROR of the server passes through it
//! unchanged. Nobody's declaration is trusted: a call is made only if it fits the function's signature. Keeps nothing.

use std::ffi::CStr;

use arrow_cache_core::shown;
use pgrx::pg_sys;

use super::error_passing::edge;
use super::function_call::FunctionCall;
use super::returned::Returned;
use super::signature::Signature;
use crate::error::CacheError;

/// A C function.
pub trait Symbol {
    /// The name by which SQL calls it.
    const NAME: &'static str;
    /// How it must be declared.
    const SIGNATURE: Signature;
}

/// Runs a SQL function.
///
/// # Safety
/// Called by PostgreSQL. The function must read its arguments as the types that the signature says.
pub unsafe fn answer<S: Symbol, R: Returned>(
    call: pg_sys::FunctionCallInfo,
    function: impl FnOnce(FunctionCall<'_>) -> R,
) -> pg_sys::Datum {
    // SAFETY: PostgreSQL made the call, and it fits the signature.
    unsafe {
        edge(|| {
            if !S::SIGNATURE.fits::<R>(call) {
                CacheError::misdeclared(S::NAME, name_of(call)).raise();
            }
            R::answer(call, function)
        })
    }
}

/// The called function with the types of its arguments, or its number if it does not exist; `None` if the call names none.
///
/// # Safety
/// Called by PostgreSQL.
unsafe fn name_of(call: pg_sys::FunctionCallInfo) -> Option<String> {
    // SAFETY: the description of the called function is null or valid; a catalog search returns a C string.
    unsafe {
        let called = (*call).flinfo.as_ref()?;
        Some(shown(CStr::from_ptr(kept!(pg_sys::format_procedure(called.fn_oid))).to_bytes()))
    }
}

/// Defines a C function that SQL calls: `sql_function!(function, signature, "symbol")`. The symbol is its name in
/// `CREATE FUNCTION … AS`. `function` takes the call and returns a value or a `Set`.
macro_rules! sql_function {
    ($function:path, $signature:expr, $symbol:literal) => {
        const _: () = {
            /// Tells how the SQL function is called (fmgr.h, PG_FUNCTION_INFO_V1).
            #[unsafe(export_name = concat!("pg_finfo_", $symbol))]
            extern "C" fn info() -> &'static pgrx::pg_sys::Pg_finfo_record {
                const VERSION_1: pgrx::pg_sys::Pg_finfo_record = pgrx::pg_sys::Pg_finfo_record { api_version: 1 };
                &VERSION_1
            }

            struct Called;

            impl $crate::pg::sql_function::Symbol for Called {
                const NAME: &'static str = $symbol;
                const SIGNATURE: $crate::pg::signature::Signature = $signature;
            }

            #[unsafe(export_name = $symbol)]
            unsafe extern "C-unwind" fn called(call: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
                // SAFETY: PostgreSQL calls it. The function reads its arguments as its signature, which stands beside it, says.
                unsafe { $crate::pg::sql_function::answer::<Called, _>(call, $function) }
            }
        };
    };
}
pub(crate) use sql_function;
