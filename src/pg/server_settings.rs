//! Settings of the server that pgrx does not bind. Reads variables of the backend; keeps only where they lie.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use pgrx::pg_sys;

use super::compat::setting_of_server;
use super::server;

/// The name of the session's time zone.
pub fn timezone_name() -> *const c_char {
    // SAFETY: the session has a time zone from its start.
    unsafe { server::pg_get_timezone_name(pg_sys::session_timezone) }
}

/// The number of the server's version, which may be another minor release than that of the headers.
pub fn server_version() -> u32 {
    // SAFETY: a setting that each server has; its value is a number, in a text that ends with NUL.
    let shown = unsafe { CStr::from_ptr(kept!(pg_sys::GetConfigOption(c"server_version_num".as_ptr(), false, false))) };
    shown.to_str().ok().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Where the values of settings lie whose variables the server does not export; 0 for one that it does not know.
struct Places {
    timezone_abbreviations: usize,
    forbidden_relations: usize,
    changed_row_types: usize,
}

static PLACES: OnceLock<Places> = OnceLock::new();

/// Finds these places in the server's table of settings. The postmaster does so, and its children inherit them: each
/// would search the whole table for its first statement.
pub fn find_places() {
    places();
}

#[inline]
fn places() -> &'static Places {
    PLACES.get_or_init(|| Places {
        timezone_abbreviations: place_of_text(c"timezone_abbreviations"),
        forbidden_relations: place_of_text(c"restrict_nonsystem_relation_kind"),
        changed_row_types: place_of_word(c"composite_type_mismatch"),
    })
}

fn place_of_text(name: &CStr) -> usize {
    let setting = setting_of_server(name, pg_sys::config_type::PGC_STRING);
    // SAFETY: null, or the description of a string.
    unsafe { setting.cast::<pg_sys::config_string>().as_ref() }.map_or(0, |setting| setting.variable as usize)
}

fn place_of_word(name: &CStr) -> usize {
    let setting = setting_of_server(name, pg_sys::config_type::PGC_ENUM);
    // SAFETY: null, or the description of one of several words.
    unsafe { setting.cast::<pg_sys::config_enum>().as_ref() }.map_or(0, |setting| setting.variable as usize)
}

/// The value of the setting `timezone_abbreviations`, null before it has one.
pub fn timezone_abbreviations() -> *const c_char {
    text_at(places().timezone_abbreviations)
}

/// The value of the setting `restrict_nonsystem_relation_kind`: which kinds of relations the session has forbidden
/// itself to read. Null in a minor version that has no such setting.
pub fn forbidden_relations() -> *const c_char {
    text_at(places().forbidden_relations)
}

/// The value of the setting `composite_type_mismatch`: what the server does with rows whose type has changed. 0 in a
/// minor version that has no such setting.
pub fn changed_row_types() -> i32 {
    // SAFETY: null, or the variable behind the setting, which lives as long as the server.
    unsafe { (places().changed_row_types as *const i32).as_ref() }.map_or(0, |value| *value)
}

/// The text whose pointer lies in a place, null if there is no place.
fn text_at(place: usize) -> *const c_char {
    // SAFETY: null, or the variable behind a setting, which lives as long as the server.
    unsafe { (place as *const *const c_char).as_ref() }.map_or(std::ptr::null(), |text| *text)
}

/// Returns true if the session has forbidden itself to read relations of some kind.
pub fn forbids_relations() -> bool {
    let forbidden = forbidden_relations();
    // SAFETY: null, or a text that ends in NUL.
    unsafe { !forbidden.is_null() && *forbidden != 0 }
}

/// Where the server keeps the function that it calls with each new value of `track_counts`, before the setting has that
/// value; null if the place is not found.
pub fn counting_hook() -> *mut pg_sys::GucBoolAssignHook {
    let setting = setting_of_server(c"track_counts", pg_sys::config_type::PGC_BOOL).cast::<pg_sys::config_bool>();
    if setting.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the description of a switch.
    unsafe { &raw mut (*setting).assign_hook }
}

/// Returns true if the server keeps the list that `transaction_changes` reads.
pub fn counts_changes() -> bool {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::pgstat_track_counts }
}

/// The bytes of a setting.
///
/// # Safety
/// `text` must be null or NUL-terminated, and stay as it is while the result is used.
pub unsafe fn text_of<'t>(text: *const c_char) -> &'t [u8] {
    // SAFETY: the caller's promise.
    if text.is_null() { b"" } else { unsafe { CStr::from_ptr(text) }.to_bytes() }
}
