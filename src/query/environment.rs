//! The part of the key that the text does not show: who asks, where, and under which settings.
//!
//! Every setting that can change a result is hashed, whether this query reads it or not:
//! sessions with other settings keep their own results. All are read from the server's variables
//! each time, because SET LOCAL, function SET clauses and aborts change them without any hook.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char};

use arrow_cache_core::{Hash128, HashBuffer, LastHash, Reason, RoomyVec};
use pgrx::pg_sys;

use super::hashes::{EnvironmentHash, SettingsHash};
pub use super::present_settings::settings;
use super::verdict::Under;
use crate::pg::backend_local::Local;
use crate::pg::server_settings::text_of;
use crate::pg::{backend, search_path, text_search};

/// Adds who asks, where, and under which settings.
fn add_environment(key: &mut HashBuffer, settings: SettingsHash) {
    key.hash(settings.0);
    // SAFETY: plain globals of this backend, read on its only thread. The search path ends in NUL and belongs to the settings machinery, which does not
    // run meanwhile.
    unsafe {
        key.u32(backend::database());
        key.u32(backend::user_id().to_u32());
        key.u32(backend::database_encoding() as u32);
        add_string(key, pg_sys::namespace_search_path);
    }
}

/// Settings and role.
type Asked = (SettingsHash, pg_sys::Oid);
/// An environment without settings that are read by name, with its search path, and its number.
type UsualEnvironment = (Asked, Vec<u8>, EnvironmentHash);
/// The one that was asked for last.
static USUAL: Local<RefCell<Option<UsualEnvironment>>> = Local::new(RefCell::new(None));
static ENVIRONMENT: Local<Cell<LastHash>> = Local::new(Cell::new(LastHash::new()));

/// What the planner goes by when it computes or inlines functions in advance: the present settings, and the role. It
/// asks whether the role may execute a function that it inlines, and then nobody asks again.
pub fn under(seed: u64) -> Under {
    Under { settings: settings(seed), role: backend::user_id() }
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
/// `SessionFunction` when a custom setting is hidden from some roles, or it is not sure which text search configuration a setting names, or
/// which value a setting of PL/pgSQL has.
pub fn hash_under(seed: u64, settings: SettingsHash, custom: &[CString]) -> Result<EnvironmentHash, Reason> {
    if custom.is_empty() {
        return Ok(usual_environment(seed, settings));
    }
    let mut added = Ok(());
    let hash = hashed(&ENVIRONMENT, seed, |key| {
        add_environment(key, settings);
        added = custom.iter().try_for_each(|name| add_read_setting(key, name));
    });
    added.map(|()| EnvironmentHash(hash))
}

/// The environment of a query that reads no setting by name. The database and its encoding stay the same.
fn usual_environment(seed: u64, settings: SettingsHash) -> EnvironmentHash {
    let asked = (settings, backend::user_id());
    // SAFETY: as in `add_environment`.
    let search_path = unsafe { text_of(pg_sys::namespace_search_path) };
    let mut last = USUAL.borrow_mut();
    if let Some((facts, path, hash)) = &*last
        && *facts == asked
        && **path == *search_path
    {
        return *hash;
    }
    let mut key = HashBuffer::new();
    key.u64(seed);
    add_environment(&mut key, settings);
    let hash = EnvironmentHash(key.finish());
    *last = Vec::copy_of(search_path).ok().filter(|_| key.is_complete()).map(|path| (asked, path, hash));
    hash
}

fn hashed(last: &Cell<LastHash>, seed: u64, add: impl FnOnce(&mut HashBuffer)) -> Hash128 {
    let mut kept = last.take();
    let hash = kept.of(|key| {
        key.u64(seed);
        add(key);
    });
    last.set(kept);
    hash
}

/// Bytes of the search path that count for `of_text`.
const PATH_COUNTED: usize = 96;

/// What stands for a hash of a text in memory that sessions share: as it is asked by this role, in this database, under
/// this search path. A guess at which texts mean the same, so the end of a long search path does not count.
pub fn of_text(seed: u64, text: u64) -> u64 {
    const PATH: usize = 24;
    let mut bytes = [0; PATH + PATH_COUNTED];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&text.to_le_bytes());
    // SAFETY: as in `add_environment`.
    let (database, path) = unsafe { (backend::database(), text_of(pg_sys::namespace_search_path)) };
    bytes[16..20].copy_from_slice(&database.to_le_bytes());
    bytes[20..PATH].copy_from_slice(&backend::user_id().to_u32().to_le_bytes());
    let path = &path[..path.len().min(PATH_COUNTED)];
    bytes[PATH..PATH + path.len()].copy_from_slice(path);
    Hash128::of(&bytes[..PATH + path.len()]).lo
}

/// The setting that names a text search configuration. In the list of what a query reads, it stands for that configuration.
pub const SEARCH_CONFIGURATION: &CStr = c"default_text_search_config";

/// In the list of what a query reads: the name of the database, and the role that has logged in. No setting has such a name.
pub const DATABASE_NAME: &CStr = c"current_database()";
pub const SESSION_USER: &CStr = c"session_user()";
/// As above: the schema that comes first in `search_path`.
pub const CURRENT_SCHEMA: &CStr = c"current_schema()";

/// In the list of what a query reads, it stands for the settings that PL/pgSQL reads when it runs functions.
pub const LANGUAGE: &CStr = c"plpgsql";
/// These settings, each with its value before the language is loaded. SQLERRM is a message.
const LANGUAGE_SETTINGS: [(&CStr, &CStr); 2] = [(c"plpgsql.check_asserts", c"on"), (c"lc_messages", c"")];

/// Adds a setting of PL/pgSQL.
///
/// # Errors
/// `SessionFunction` while it was set and the language is not loaded: the language may refuse that value.
fn add_language_setting(key: &mut HashBuffer, (name, unset): (&CStr, &CStr)) -> Result<(), Reason> {
    // SAFETY: functions that accept an unknown name; the value is a copy in the current memory context.
    unsafe {
        if kept!(pg_sys::GetConfigOptionFlags(name.as_ptr(), true)) & pg_sys::GUC_CUSTOM_PLACEHOLDER as i32 != 0 {
            return Err(Reason::SessionFunction);
        }
        let value = kept!(pg_sys::GetConfigOptionByName(name.as_ptr(), std::ptr::null_mut(), true));
        add_string(key, if value.is_null() { unset.as_ptr() } else { value });
        if !value.is_null() {
            kept!(pg_sys::pfree(value.cast()));
        }
    }
    Ok(())
}

/// Adds a setting, or other state of the session, that a query reads.
fn add_read_setting(key: &mut HashBuffer, name: &CStr) -> Result<(), Reason> {
    if name == LANGUAGE {
        return LANGUAGE_SETTINGS.iter().try_for_each(|setting| add_language_setting(key, *setting));
    }
    if name == SEARCH_CONFIGURATION {
        let configuration = text_search::default_configuration().ok_or(Reason::SessionFunction)?;
        key.u32(configuration.to_u32());
        return Ok(());
    }
    if name == CURRENT_SCHEMA {
        return add_schemas(key);
    }
    // SAFETY: functions that read the backend's own state and a catalog; the name is a copy, or null. A change of a role outdates all answers,
    // so that its OID stands for its name.
    unsafe {
        if name == SESSION_USER {
            key.u32(kept!(pg_sys::GetSessionUserId()).to_u32());
            return Ok(());
        }
        if name == DATABASE_NAME {
            let database = kept!(pg_sys::get_database_name(pg_sys::MyDatabaseId));
            add_string(key, database);
            if !database.is_null() {
                kept!(pg_sys::pfree(database.cast()));
            }
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
    // SAFETY: as in `add_environment`.
    let path = unsafe { text_of(pg_sys::namespace_search_path) };
    if path.to_ascii_lowercase().windows(7).any(|part| part == b"pg_temp") {
        return Err(Reason::SessionFunction);
    }
    for schema in search_path::schemas() {
        // SAFETY: reads a catalog; the name is a copy, or null for a schema that has just been dropped.
        unsafe {
            let name = kept!(pg_sys::get_namespace_name(schema));
            add_string(key, name);
            if !name.is_null() {
                kept!(pg_sys::pfree(name.cast()));
            }
        }
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
        add_string(key, value);
        if !value.is_null() {
            kept!(pg_sys::pfree(value.cast()));
        }
    }
    Ok(())
}

/// # Safety
/// `text` must be null or NUL-terminated.
unsafe fn add_string(key: &mut HashBuffer, text: *const c_char) {
    // SAFETY: the caller's promise.
    key.part(unsafe { text_of(text) });
}
