//! The part of the key that the text does not show: who asks, where, and under which settings.
//!
//! Every setting that can change a result is hashed, whether this query reads it or not:
//! sessions with other settings keep their own results. All are read from the server's variables
//! each time, because SET LOCAL, function SET clauses and aborts change them without any hook.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char};

use arrow_cache_core::{Hash128, HashBuffer, Reason};
use pgrx::pg_sys;

use super::asker::Asker;
use super::hashes::{EnvironmentHash, SettingsHash};
pub use super::present_settings::settings;
use super::verdict::Under;
use crate::pg::backend_local::Local;
use crate::pg::server_settings::text_of;
use crate::pg::{backend, search_path, text_search};

/// What the planner goes by when it computes or inlines functions in advance: the present settings, and the role. It
/// asks whether the role may execute a function that it inlines, and then nobody asks again.
pub fn under(seed: u64) -> Under {
    Under { settings: settings(seed), asker: Asker::present(seed) }
}

/// The present environment as one number, with the values of the `custom` settings that a query reads by name.
///
/// # Errors
/// As `hash_under`.
pub fn hash(seed: u64, custom: &[CString]) -> Result<EnvironmentHash, Reason> {
    hash_under(seed, settings(seed), custom)
}

/// As `hash`, for the present settings as `settings` has told them.
///
/// # Errors
/// `SessionFunction` when a custom setting is hidden from some roles, or it is not sure which text search configuration
/// a setting names.
pub fn hash_under(seed: u64, settings: SettingsHash, custom: &[CString]) -> Result<EnvironmentHash, Reason> {
    let Asker { rights, .. } = Asker::present(seed);
    let asked = (seed, settings.0, rights.0);
    if let Some((known, hash)) = LAST.get()
        && known == asked
        && custom.is_empty()
    {
        return Ok(hash);
    }
    let database = backend::database();
    let mut key = BUFFER.take();
    key.clear();
    key.seed(seed);
    key.hash(settings.0);
    key.hash(rights.0);
    key.words([database, backend::database_encoding() as u32]);
    custom.iter().try_for_each(|name| add_read_setting(&mut key, name))?;
    let hash = EnvironmentHash(key.finish());
    if custom.is_empty() && key.is_complete() {
        LAST.set(Some((asked, hash)));
    }
    BUFFER.set(key);
    Ok(hash)
}

static BUFFER: Local<Cell<HashBuffer>> = Local::new(Cell::new(HashBuffer::new()));
/// The last environment of a query that reads no setting by name: what it was made of, beside what a backend keeps for
/// all its life, and its hash.
static LAST: Local<Cell<Option<(Parts, EnvironmentHash)>>> = Local::new(Cell::new(None));

/// The secret, the settings, and the rights of the role.
type Parts = (u64, Hash128, Hash128);

/// The setting that names a text search configuration. In the list of what a query reads, it stands for that
/// configuration.
pub const SEARCH_CONFIGURATION: &CStr = c"default_text_search_config";

/// In the list of what a query reads: the name of the database, and the role that has logged in. No setting has such a
/// name.
pub const DATABASE_NAME: &CStr = c"current_database()";
pub const SESSION_USER: &CStr = c"session_user()";
/// As above: the schema that comes first in `search_path`.
pub const CURRENT_SCHEMA: &CStr = c"current_schema()";

/// Adds a setting, or other state of the session, that a query reads.
fn add_read_setting(key: &mut HashBuffer, name: &CStr) -> Result<(), Reason> {
    if name == SEARCH_CONFIGURATION {
        let configuration = text_search::default_configuration().ok_or(Reason::SessionFunction)?;
        key.u32(configuration.to_u32());
        return Ok(());
    }
    if name == CURRENT_SCHEMA {
        return add_schemas(key);
    }
    // SAFETY: functions that read the backend's own state and a catalog; the name is a copy, or null.
    unsafe {
        if name == SESSION_USER {
            add_copy(key, kept!(pg_sys::GetUserNameFromId(kept!(pg_sys::GetSessionUserId()), true)));
            return Ok(());
        }
        if name == DATABASE_NAME {
            add_copy(key, kept!(pg_sys::get_database_name(pg_sys::MyDatabaseId)));
            return Ok(());
        }
    }
    add_shown_setting(key, name)
}

/// Adds the names of the schemas that `search_path` stands for: with its text, which is in the environment, they tell
/// the current one.
///
/// # Errors
/// `SessionFunction` if the path names the session's schema of temporary objects, which asking for the current schema
/// may create.
fn add_schemas(key: &mut HashBuffer) -> Result<(), Reason> {
    // SAFETY: a text that ends in NUL and belongs to the settings machinery, which does not run meanwhile.
    let path = unsafe { text_of(pg_sys::namespace_search_path) };
    if path.to_ascii_lowercase().windows(7).any(|part| part == b"pg_temp") {
        return Err(Reason::SessionFunction);
    }
    for schema in search_path::schemas() {
        // SAFETY: reads a catalog; the name is a copy, or null for a schema that has just been dropped.
        unsafe { add_copy(key, kept!(pg_sys::get_namespace_name(schema))) };
    }
    Ok(())
}

/// Adds a setting as `current_setting` would show it. One that is not set is not the same as an empty one.
fn add_shown_setting(key: &mut HashBuffer, name: &CStr) -> Result<(), Reason> {
    // SAFETY: functions that accept an unknown name; whether it is hidden is asked first, since showing it may raise.
    unsafe {
        if kept!(pg_sys::GetConfigOptionFlags(name.as_ptr(), true)) & pg_sys::GUC_SUPERUSER_ONLY as i32 != 0 {
            return Err(Reason::SessionFunction);
        }
        let value = kept!(pg_sys::GetConfigOptionByName(name.as_ptr(), std::ptr::null_mut(), true));
        key.u8(u8::from(value.is_null()));
        add_copy(key, value);
    }
    Ok(())
}

/// Adds a text, and frees it. One that is not there counts as an empty one.
///
/// # Safety
/// Null, or a copy that ends in NUL, in a memory context.
unsafe fn add_copy(key: &mut HashBuffer, text: *mut c_char) {
    // SAFETY: the caller's promise.
    unsafe {
        key.part(text_of(text));
        if !text.is_null() {
            kept!(pg_sys::pfree(text.cast()));
        }
    }
}
