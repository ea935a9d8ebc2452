//! The text search configuration that is used where none is named. The server finds it by the name in
//! `default_text_search_config` when it is first needed, and keeps it until the setting or a configuration changes:
//! neither another search_path nor a renamed schema makes it look again (utils/cache/ts_cache.c). So a session may use
//! another one than the name stands for. Keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::compat;
use super::privileges;

/// The configuration that functions of this session would use now; `None` if asking for it could raise, or if there is
/// none. To be called in a transaction.
pub fn default_configuration() -> Option<pg_sys::Oid> {
    // SAFETY: a plain global of the backend: a text that ends with NUL, which is not changed meanwhile. The server does
    // not raise for a name like this one, whose schema is there and may be used.
    unsafe {
        let name = pg_sys::TSCurrentConfig;
        if name.is_null() {
            return None;
        }
        let (schema, configuration) = parts(CStr::from_ptr(name).to_bytes())?;
        let mut buffer = [0; pg_sys::NAMEDATALEN as usize];
        buffer.get_mut(..schema.len())?.copy_from_slice(schema);
        let schema = kept!(pg_sys::get_namespace_oid(CStr::from_bytes_until_nul(&buffer).ok()?.as_ptr(), true));
        if configuration.len() >= buffer.len()
            || schema == pg_sys::InvalidOid
            || !compat::may_use_schema(privileges::current_role(), schema)
        {
            return None;
        }
        Some(kept!(pg_sys::getTSCurrentConfig(false))).filter(|found| *found != pg_sys::InvalidOid)
    }
}

/// Schema and name, if it is a name with both and has no quotes. The server stores it so when the setting is set in a
/// transaction.
fn parts(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let dot = name.iter().position(|byte| *byte == b'.')?;
    let (schema, configuration) = (&name[..dot], &name[dot + 1..]);
    let is_plain = |part: &[u8]| {
        part.first().is_some_and(|first| first.is_ascii_lowercase() || *first == b'_')
            && part.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_')
    };
    (is_plain(schema) && is_plain(configuration)).then_some((schema, configuration))
}
