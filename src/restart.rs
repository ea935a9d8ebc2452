//! What outlives a restart of the server. When it has been shut down, the postmaster writes an image of the cache to a
//! file, as the last of all processes; when it starts, it reads the file, as the first one, and removes it. A standby
//! replays some WAL again then: until it has come to where it was, nothing counts.
//!
//! What was saved counts only if the data are those of that moment, and what computes results is the same
//! (docs/architecture/exactness-restart.md). The checks of the image are those of `core`. No lock; the postmaster keeps
//! one hash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::OnceLock;

use arrow_cache_core::{EntryKind, EntryView, Hash128, Origin, WalPlace};
use pgrx::pg_sys;

use crate::pg::control_file::{self, ShutDown};
use crate::pg::error_passing::{caught, edge};
use crate::pg::{backend, compat, server, software};
use crate::shmem::{self, SharedStore};
use crate::{error, settings};

/// Below the data directory, which is the current one: where the server keeps its own statistics.
const FILE: &str = "pg_stat/pg_arrow_cache.saved";
const UNFINISHED: &str = "pg_stat/pg_arrow_cache.saved.tmp";
const UNKNOWN_SOFTWARE: &str = "It cannot be told which files compute results.";
/// Bytes that are gathered: what is longer, as most chunks are, is read to its place at once, and written from there.
const BUFFER: usize = 64 * 1024;

/// What computes results, as the postmaster found it at its start: the file must not count for what was replaced while
/// the server was running.
static SOFTWARE: OnceLock<Option<Hash128>> = OnceLock::new();

/// Begins with what the last server has saved, and has the postmaster save it again. Returns false if the store has to
/// be laid out anew.
pub fn begin(store: &SharedStore) -> bool {
    // SAFETY: plain globals. In single-user mode there is no postmaster: neither reads nor writes, and what it changes
    // changes the control file.
    if unsafe { !pg_sys::IsPostmasterEnvironment || pg_sys::IsUnderPostmaster } {
        return true;
    }
    // SAFETY: the callback may be called by any process that is not a child of this one.
    unsafe { kept!(pg_sys::on_shmem_exit(Some(at_exit), pg_sys::Datum::from(0))) };
    let is_wanted = settings::save_on_shutdown();
    // Where libraries are searched for, there may be many files.
    let software = is_wanted.then(|| *SOFTWARE.get_or_init(|| caught(software::fingerprint).ok().flatten())).flatten();
    let file = match taken_file() {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return true,
        Err(error) => {
            error::log_not_loaded(&error.to_string());
            return true;
        }
    };
    if !is_wanted {
        return true;
    }
    let origin = match (software, control_file::shut_down()) {
        (Some(software), Some(server)) => Origin { data: server.data, software },
        (software, _) => {
            error::log_not_loaded(match software {
                Some(_) => "The server was not shut down, or does not start as what it was.",
                None => UNKNOWN_SOFTWARE,
            });
            return true;
        }
    };
    let mut file = BufReader::with_capacity(BUFFER, file);
    match caught(|| store.load(&mut file, &origin, backend::now())) {
        Ok(Ok(loaded)) => error::log_loaded(&loaded),
        Ok(Err(reason)) => {
            error::log_not_loaded(&reason.to_string());
            return false;
        }
        Err(_) => {
            error::log_not_loaded("Reading the file has failed.");
            return false;
        }
    }
    true
}

/// The file that the last server has left. It has no name any more, so that no other start finds it.
fn taken_file() -> io::Result<File> {
    match fs::remove_file(UNFINISHED) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Opening something else may take for ever.
    if !fs::symlink_metadata(FILE)?.is_file() {
        return Err(io::Error::other("pg_stat/pg_arrow_cache.saved is no file"));
    }
    let file = File::open(FILE)?;
    fs::remove_file(FILE)?;
    Ok(file)
}

/// Saves the cache, if the postmaster ends as it should, or before anybody has used what it has loaded. All other
/// processes have ended by then, and the last checkpoint is written.
unsafe extern "C-unwind" fn at_exit(code: i32, _: pg_sys::Datum) {
    // SAFETY: a plain global; children forget this callback.
    if unsafe { pg_sys::IsUnderPostmaster } || !settings::save_on_shutdown() {
        return;
    }
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe {
        edge(|| match caught(|| save(code != 0)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => error::log_not_saved(&error.to_string()),
            Err(_) => error::log_not_saved("Writing the file has failed."),
        });
    }
}

/// Returns true if an entry may be kept: not an answer that reads a foreign table, as parts never do. Whoever changes
/// that elsewhere cannot tell this server while it is down.
fn keeps(entry: &EntryView<'_>) -> bool {
    entry.kind() == EntryKind::Fragment || !entry.needs_plan()
}

/// Returns true if the store tells of all changes up to where the server has stopped. Of a standby it is noted where
/// that is; one that had not come to where it stopped before still awaits that place.
fn can_be_saved(store: &SharedStore, server: ShutDown) -> bool {
    let replay = store.replay();
    if server.is_standby && replay.awaited().is_none() {
        replay.await_place(backend::replayed());
    }
    // A primary that awaits a place has come to be one without replaying anything.
    replay.awaited().is_some() == server.is_standby && !(server.is_standby && replay.fault().is_some())
}

/// Returns true if what was saved counts: at once on a primary, and on a standby when its replay has come to where it
/// stopped, on the same timeline. Asked after a snapshot was taken.
///
/// Transactions that run then may have made changes that are not noted any more. So the floor is set first.
#[inline]
pub fn has_arrived(store: &SharedStore) -> bool {
    store.replay().awaited().is_none_or(|place| arrives(store, place))
}

#[cold]
fn arrives(store: &SharedStore, place: WalPlace) -> bool {
    let replayed = backend::replayed();
    let is_there = replayed.end >= place.end && replayed.timeline == place.timeline;
    if is_there {
        store.versions().ensure_floor(compat::next_full_transaction_id());
        store.replay().arrive();
    }
    is_there
}

/// It is not waited until the file has reached the disk: if it does not, its checks tell.
fn save(has_failed: bool) -> io::Result<()> {
    let Some(store) = shmem::store_without_area().filter(|store| store.entries() > 0) else { return Ok(()) };
    // Whoever uses the versions first sets the floor.
    if has_failed && store.versions().base_floor() != 0 {
        return Ok(());
    }
    let Some(server) = control_file::shut_down().filter(|server| can_be_saved(&store, *server)) else { return Ok(()) };
    let software = SOFTWARE.get().copied().flatten().ok_or_else(|| io::Error::other(UNKNOWN_SOFTWARE))?;
    let origin = Origin { data: server.data, software };
    // SAFETY: a global that does not change after the postmaster's start.
    let mode = unsafe { server::pg_file_create_mode }.unsigned_abs();
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(UNFINISHED)?;
    let mut writer = BufWriter::with_capacity(BUFFER, file);
    let written = store.save(&mut writer, &origin, keeps, backend::now()).and_then(|()| writer.flush());
    // What could not be written is not tried again.
    let (_file, _rest) = writer.into_parts();
    let outcome = written.and_then(|()| fs::rename(UNFINISHED, FILE));
    if outcome.is_err() {
        // It failed once: nothing more can be done.
        let _ = fs::remove_file(UNFINISHED);
    }
    outcome
}
