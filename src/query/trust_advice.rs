//! What users are told about trusting extensions: when they set the list, and when a function stands in the way of a
//! query. No answer rests on it.

use std::ffi::{CStr, c_char, c_void};

use pgrx::pg_sys;

use super::trusted_extensions::{KNOWN, Safe, extension_of, is_listed, of_pure};
use crate::error;
use crate::pg::error_passing::edge;

/// What trusting the extension that a function belongs to would change, as the end of the sentence "It calls …".
/// Nothing if it belongs to none.
pub fn prospect(function: pg_sys::Oid) -> Option<(&'static CStr, &'static str)> {
    let extension = extension_of(pg_sys::ProcedureRelationId, function)?;
    let sentence = match of_pure(function) {
        Some(_) if !is_listed(extension.name) => {
            ", which would count like a built-in one if pg_arrow_cache.trusted_extensions named that extension"
        }
        _ => ", which trusting that extension does not change",
    };
    Some((extension.name, sentence))
}

/// Called by the server before it takes a list. Warns whoever sets it of each name that changes nothing, whatever the
/// version. Reads no catalogs, since there may be no transaction.
pub unsafe extern "C-unwind" fn check_list(
    list: *mut *mut c_char,
    _extra: *mut *mut c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    let body = || {
        // SAFETY: null, or a text that ends with NUL, as the server promises; a plain global. Parallel workers take
        // over what their leader has set.
        let list = unsafe {
            if source < pg_sys::GucSource::PGC_S_INTERACTIVE || pg_sys::InitializingParallelWorker || (*list).is_null()
            {
                return true;
            }
            CStr::from_ptr(*list)
        };
        for name in list.to_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if let Some(known) = useless(name) {
                error::warn_of_useless_trust(known);
            }
        }
        true
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

/// The name of an extension, in capital or small letters, if to trust it changes nothing, whatever its version.
fn useless(name: &[u8]) -> Option<&'static str> {
    let is_it = |known: &str| known.as_bytes().eq_ignore_ascii_case(name);
    KNOWN.iter().find(|(known, safe)| is_it(known) && matches!(safe, Safe::Nothing)).map(|(known, _)| *known)
}
