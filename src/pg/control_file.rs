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
/// What tells the server to recover, although it was shut down: then it may come to other data (access/xlog.h).
const RECOVERY_FILES: [&str; 3] = ["standby.signal", "recovery.signal", "backup_label"];

/// The hash of the control file if it says that a primary was shut down, and nothing can have changed the data since
/// but what changes this file as well: it has the place of the last record of the WAL, and when it was written.
pub fn of_shut_down_primary() -> Option<Hash128> {
    const BYTES: usize = size_of::<pg_sys::ControlFileData>();
    const STATE: usize = offset_of!(pg_sys::ControlFileData, state);
    let mut bytes = [0; BYTES];
    File::open(CONTROL_FILE).ok()?.read_exact(&mut bytes).ok()?;
    let state = bytes[STATE..].first_chunk().map(|state| pg_sys::DBState::Type::from_ne_bytes(*state))?;
    let may_recover = || RECOVERY_FILES.iter().any(|name| Path::new(name).symlink_metadata().is_ok());
    (state == pg_sys::DBState::DB_SHUTDOWNED && !may_recover()).then(|| Hash128::of(&bytes))
}
