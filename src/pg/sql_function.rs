//! The C functions that SQL calls: the same steps for each of them, with `edge` around, so that an ERROR of the server
//! passes through it unchanged. Keeps nothing.

/// Defines a C function that SQL calls: `sql_function!(function, "symbol")`. The symbol is its name in `CREATE FUNCTION
/// … AS`. `function` takes the call and returns a value or a `Set`.
macro_rules! sql_function {
    ($function:path, $symbol:literal) => {
        const _: () = {
            /// Tells how the SQL function is called (fmgr.h, PG_FUNCTION_INFO_V1).
            #[unsafe(export_name = concat!("pg_finfo_", $symbol))]
            extern "C" fn info() -> &'static pgrx::pg_sys::Pg_finfo_record {
                const VERSION_1: pgrx::pg_sys::Pg_finfo_record = pgrx::pg_sys::Pg_finfo_record { api_version: 1 };
                &VERSION_1
            }

            #[unsafe(export_name = $symbol)]
            unsafe extern "C-unwind" fn called(call: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
                // SAFETY: PostgreSQL calls it, as the script of the extension declares it: a superuser vouches for any
                // other declaration.
                unsafe { $crate::pg::error_passing::edge(|| $crate::pg::returned::Returned::answer(call, $function)) }
            }
        };
    };
}
pub(crate) use sql_function;
