//! What the control file says of the cluster. It is read by the postmaster, when no process is left that writes it, or
//! none is there yet.

use std::fs::File;
use std::io::Read;
use std::mem::offset_of;
use std::path::Path;

use arrow_cache_core::Hash128;
use pgrx::pg_sys;

/// Below the data directory, which is the current one (catalog/pg_control.h).
const CONTROL_FILE: &str = "global/pg_control";
/// What makes the server recover as a standby does (access/xlog.h).
const STANDBY_FILE: &str = "standby.signal";
/// What makes it recover in another way, and come to other data.
const OTHER_RECOVERY_FILES: [&str; 2] = ["recovery.signal", "backup_label"];

/// A server that was shut down.
#[derive(Clone, Copy)]
pub struct ShutDown {
    /// The hash of its control file. Whatever changes the data changes this file as well: it has the place of a record
    /// of the WAL, and when it was written.
    pub data: Hash128,
    /// It was a standby.
    pub is_standby: bool,
}

/// The server that was shut down, by its control file, if it starts as what it was: as a primary, or as a standby.
pub fn shut_down() -> Option<ShutDown> {
    const BYTES: usize = size_of::<pg_sys::ControlFileData>();
    const STATE: usize = offset_of!(pg_sys::ControlFileData, state);
    let mut bytes = [0; BYTES];
    File::open(CONTROL_FILE).ok()?.read_exact(&mut bytes).ok()?;
    let state = bytes[STATE..].first_chunk().map(|state| pg_sys::DBState::Type::from_ne_bytes(*state))?;
    let is_there = |name: &str| Path::new(name).symlink_metadata().is_ok();
    let is_standby = match state {
        pg_sys::DBState::DB_SHUTDOWNED => false,
        pg_sys::DBState::DB_SHUTDOWNED_IN_RECOVERY => true,
        _ => return None,
    };
    let starts_as_before = is_there(STANDBY_FILE) == is_standby && !OTHER_RECOVERY_FILES.into_iter().any(is_there);
    starts_as_before.then(|| ShutDown { data: Hash128::of(&bytes), is_standby })
}
