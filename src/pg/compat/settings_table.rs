//! The server's table of settings.

use std::ffi::CStr;

use pgrx::pg_sys;

/// Gives the descriptions of all settings of the server, which are never freed, to `read`.
fn read_table<R>(read: impl FnOnce(&[*mut pg_sys::config_generic]) -> R) -> R {
    // SAFETY: a table of pointers to the descriptions of all settings, made for the caller from 16 on.
    unsafe {
        let mut count = 0;
        #[cfg(feature = "pg15")]
        let table = {
            count += kept!(pg_sys::GetNumConfigOptions());
            kept!(pg_sys::get_guc_variables())
        };
        #[cfg(not(feature = "pg15"))]
        let table = kept!(pg_sys::get_guc_variables(&raw mut count));
        let result = read(std::slice::from_raw_parts(table, count as usize));
        #[cfg(not(feature = "pg15"))]
        kept!(pg_sys::pfree(table.cast()));
        result
    }
}

/// The server's description of one of its own settings, which is never freed; null if it has none of this name and
/// kind.
pub fn setting_of_server(name: &CStr, kind: pg_sys::config_type::Type) -> *mut pg_sys::config_generic {
    // SAFETY: descriptions of settings, whose names end with NUL.
    let is_wanted = |setting: &*mut pg_sys::config_generic| unsafe {
        CStr::from_ptr((**setting).name) == name && (**setting).vartype == kind
    };
    read_table(|settings| settings.iter().copied().find(is_wanted).unwrap_or(std::ptr::null_mut()))
}
