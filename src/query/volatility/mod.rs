//! Which functions a cacheable query may call.
//!
//! It may call built-in functions only. Of those that are marked IMMUTABLE it may call the ones that have been shown to be so, or to read
//! nothing but settings (`immutable`); of the STABLE ones, those in `stable`. A function that was replaced is checked by its parts
//! (`definition`).

pub mod definition;
mod immutable;
mod stable;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::trusted_extensions::is_trusted_function;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use immutable::{CLEAN, READING, UNCOVERED};
use stable::{OUTPUT, SEARCHING, SETTINGS_ONLY, TO_JSON, TO_JSON_THOUGH_IMMUTABLE};

/// How a call of a function bears on caching.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FunctionVerdict {
    /// Always the same answer for the same arguments.
    Sound,
    /// The same answer for the same arguments and settings.
    ReadsSettings,
    /// Sound as long as it meets no type with output functions of a user's own, which it would call unseen.
    CallsOutputFunctions,
    /// Sound as long as it meets built-in types only: it searches for casts to JSON of any other.
    ConvertsToJson,
    /// The query must be bypassed.
    Unsound(Reason),
}

/// Checks a function by its OID.
pub fn check(oid: pg_sys::Oid) -> FunctionVerdict {
    let number = oid.to_u32();
    if number >= FIRST_UNPINNED_OID {
        if is_trusted_function(oid) {
            return FunctionVerdict::Sound;
        }
        return FunctionVerdict::Unsound(Reason::UserDefinedFunction);
    }
    // SAFETY: reads a catalog; the function is named by the query, so it exists.
    let volatility = unsafe { pg_sys::func_volatile(oid) } as u8;
    let immutable = volatility == pg_sys::PROVOLATILE_IMMUTABLE;
    if is_among(TO_JSON_THOUGH_IMMUTABLE, number) {
        return FunctionVerdict::ConvertsToJson;
    }
    if immutable {
        // Any function may be marked so. One that is on no list may read the clock, or the server's state.
        return if is_among(CLEAN, number) {
            FunctionVerdict::Sound
        } else if is_among(READING, number) {
            FunctionVerdict::ReadsSettings
        } else {
            FunctionVerdict::Unsound(Reason::StableFunction)
        };
    }
    if is_among(SETTINGS_ONLY, number) || is_among(SEARCHING, number) {
        return FunctionVerdict::ReadsSettings;
    }
    if is_among(OUTPUT, number) {
        return FunctionVerdict::CallsOutputFunctions;
    }
    if is_among(TO_JSON, number) {
        return FunctionVerdict::ConvertsToJson;
    }
    let stable = volatility == pg_sys::PROVOLATILE_STABLE;
    FunctionVerdict::Unsound(if stable { Reason::StableFunction } else { Reason::VolatileFunction })
}

/// Is the function marked STABLE, so that the planner computes it for no plan that is kept?
pub fn is_stable(oid: pg_sys::Oid) -> bool {
    // SAFETY: reads a catalog; the function is named by the query, so it exists.
    (unsafe { pg_sys::func_volatile(oid) }) as u8 == pg_sys::PROVOLATILE_STABLE
}

/// Is the function marked IMMUTABLE?
pub fn is_immutable(oid: pg_sys::Oid) -> bool {
    // SAFETY: reads a catalog about a function that a tree names.
    unsafe { pg_sys::func_volatile(oid) as u8 == pg_sys::PROVOLATILE_IMMUTABLE }
}

/// Does the function read the text search configuration that a setting names?
pub fn searches_by_default(oid: pg_sys::Oid) -> bool {
    is_among(SEARCHING, oid.to_u32())
}

/// Functions that read a value by a function that reads what a client sends, as `array_agg` does in a parallel plan with what another process
/// has gathered. Text is then converted from the client's encoding, in which it is not. Ascending; scripts/functions/audit.py finds them.
const RECEIVING: &[u32] = &[
    6295, // array_agg_deserialize(bytea,internal)
];

/// May the function garble text if the client has another encoding than the database?
pub fn receives_text(oid: pg_sys::Oid) -> bool {
    is_among(RECEIVING, oid.to_u32())
}

/// Is the function on a list, which is in ascending order?
fn is_among(list: &[u32], function: u32) -> bool {
    list.binary_search(&function).is_ok()
}

/// Are the numbers in ascending order, each once?
const fn is_ascending(list: &[u32]) -> bool {
    let mut place = 1;
    while place < list.len() {
        if list[place - 1] >= list[place] {
            return false;
        }
        place += 1;
    }
    true
}

const _: () = assert!(is_ascending(CLEAN) && is_ascending(READING) && is_ascending(UNCOVERED));
const _: () = assert!(is_ascending(SETTINGS_ONLY) && is_ascending(SEARCHING) && is_ascending(OUTPUT));
const _: () = assert!(is_ascending(TO_JSON) && is_ascending(TO_JSON_THOUGH_IMMUTABLE) && is_ascending(RECEIVING));
