//! Which functions a cacheable query may call.
//!
//! It may call built-in functions only. Of those that are marked IMMUTABLE it may call the ones that have been shown to
//! be so, or to read nothing but settings; of the STABLE ones, those that the table of functions accepts. A function
//! that was replaced is checked by its parts (`definition`).

pub mod definition;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::function_table::has;
use super::function_table::properties::{CLEAN, OUTPUT, OUTPUT_THOUGH_IMMUTABLE, READING, SEARCHING, SETTINGS};
use super::trusted_extensions::is_trusted_function;
use crate::pg::object_ids::FIRST_UNPINNED_OID;

/// How a call of a function bears on caching.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FunctionVerdict {
    /// Always the same answer for the same arguments.
    Sound,
    /// The same answer for the same arguments and settings.
    ReadsSettings,
    /// Sound as long as it meets no type with output functions or casts to JSON of a user's own, which it would call
    /// unseen.
    CallsOutputFunctions,
    /// The query must be bypassed.
    Unsound(Reason),
}

/// Checks a function by its OID.
pub fn check(oid: pg_sys::Oid) -> FunctionVerdict {
    if oid.to_u32() >= FIRST_UNPINNED_OID {
        if is_trusted_function(oid) {
            return FunctionVerdict::Sound;
        }
        return FunctionVerdict::Unsound(Reason::UserDefinedFunction);
    }
    // SAFETY: reads a catalog; the function is named by the query, so it exists.
    let volatility = unsafe { kept!(pg_sys::func_volatile(oid)) } as u8;
    let immutable = volatility == pg_sys::PROVOLATILE_IMMUTABLE;
    if has(oid, OUTPUT_THOUGH_IMMUTABLE) {
        return FunctionVerdict::CallsOutputFunctions;
    }
    if immutable {
        // Any function may be marked so. One that is not known may read the clock, or the server's state.
        return if has(oid, CLEAN) {
            FunctionVerdict::Sound
        } else if has(oid, READING) {
            FunctionVerdict::ReadsSettings
        } else {
            FunctionVerdict::Unsound(Reason::StableFunction)
        };
    }
    if has(oid, SETTINGS | SEARCHING) {
        return FunctionVerdict::ReadsSettings;
    }
    if has(oid, OUTPUT) {
        return FunctionVerdict::CallsOutputFunctions;
    }
    let stable = volatility == pg_sys::PROVOLATILE_STABLE;
    FunctionVerdict::Unsound(if stable { Reason::StableFunction } else { Reason::VolatileFunction })
}

/// Returns true if the function is marked STABLE, so that the planner computes it for no plan that is kept.
pub fn is_stable(oid: pg_sys::Oid) -> bool {
    // SAFETY: reads a catalog; the function is named by the query, so it exists.
    (unsafe { kept!(pg_sys::func_volatile(oid)) }) as u8 == pg_sys::PROVOLATILE_STABLE
}
