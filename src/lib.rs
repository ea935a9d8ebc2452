//! pg_arrow_cache keeps the results of SELECTs as Arrow batches in PostgreSQL's shared memory.
//!
//! The rooms, in the order in which they may use each other (each only those further down; nothing imports this file):
//!
//! * `hooks`: the server's hooks and callbacks
//! * `copy`: `COPY … TO STDOUT (FORMAT arrow)`
//! * `functions`: the SQL functions that do not deliver results
//! * `export`: the SQL functions that deliver results as Arrow
//! * `fragments`: combining answers of stored parts
//! * `capture`: storing the rows of an execution
//! * `lookup`: from a started statement to a hit or a miss
//! * `verify`: comparing hits with what executing returns
//! * `serve`: delivering a stored answer in place of a plan
//! * `report`: counters and the log of decisions
//! * `invalidation`: what a transaction has changed, and its publication
//! * `restart`: what outlives a restart of the server
//! * `shmem`: the shared block
//! * `files`: the files of answers that had to leave it
//! * `session`: where the present statement stands
//! * `query` (what a query is and whether its answer may be kept) and `arrow` (values to Arrow and back), which do not
//!   use each other
//! * `settings`, `pg` (everything that is only about the server), `error`, and the crate `core`, which knows no
//!   PostgreSQL
//!
//! docs/architecture/overview.md follows a statement through all of them.

#![warn(missing_docs)]

// Its macros are used everywhere.
#[macro_use]
mod pg;

mod arrow;
mod capture;
mod copy;
mod error;
mod export;
mod files;
mod fragments;
mod functions;
mod hooks;
mod invalidation;
mod lookup;
mod query;
mod report;
mod restart;
mod serve;
mod session;
mod settings;
mod shmem;
mod verify;

use pg::error_passing::edge;
use pgrx::pg_sys;

pgrx::pg_module_magic!(name = c"pg_arrow_cache", version = settings::VERSION_TEXT);

/// Called by the server when it loads the library. If the library is preloaded, this defines the settings and installs
/// the hooks. If it is loaded in any other way, this does nothing, and the SQL functions report that it must be
/// preloaded.
///
/// A server that `pg_upgrade` has started is the exception: loading the library there without preloading it is an
/// error. `pg_upgrade --check` loads the libraries of all functions, so it finds out that the new server lacks the
/// provider of the policies' labels.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn _PG_init() {
    // SAFETY: the server calls this.
    unsafe { edge(start) };
}

fn start() {
    error::keep_stacks_private();
    pg::error_passing::prepare();
    // SAFETY: plain globals of the postmaster, which no other thread changes.
    let (preloading, upgrading) =
        unsafe { (pg_sys::process_shared_preload_libraries_in_progress, pg_sys::IsBinaryUpgrade) };
    if !preloading {
        if upgrading {
            error::CacheError::not_preloaded().raise();
        }
        return;
    }
    pg::allocator::prepare();
    let server = pg::server_settings::server_version();
    if server != pg_sys::PG_VERSION_NUM {
        error::log_other_release(pg_sys::PG_VERSION_NUM, server);
    }
    settings::define();
    pg::client::remember();
    pg::server_settings::find_places();
    hooks::install();
}
