//! pg_arrow_cache: results of SELECTs kept as Arrow batches in PostgreSQL's shared memory.
//!
//! Who may use whom: `hooks → {judge, serve, capture, verify, writes, utility, copy → export} → {session, write_set, shmem,
//! query, arrow} → {compat, backend, chain, settings, error} → core`. SQL functions (`admin`, `stats`, `export`) stand beside
//! the hooks. docs/architecture.md follows a statement through all of it.

#![warn(missing_docs)]

mod arrow;
mod capture;
mod copy;
mod error;
mod export;
mod functions;
mod hooks;
mod invalidation;
mod lookup;
mod pg;
mod query;
mod report;
mod serve;
mod session;
mod settings;
mod shmem;
mod verify;

use pgrx::pg_sys;

pgrx::pg_module_magic!();

pgrx::extension_sql_file!("../sql/schema.sql", name = "schema", bootstrap);
pgrx::extension_sql_file!("../sql/functions.sql", name = "functions");
pgrx::extension_sql_file!("../sql/views.sql", name = "views", finalize);

/// Called by the server when it loads the library. Preloaded, it defines the settings and installs
/// the hooks; loaded any other way it does nothing, and the SQL functions say what is missing.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    error::keep_stacks_private();
    // SAFETY: a plain global of the postmaster.
    if !unsafe { pg_sys::process_shared_preload_libraries_in_progress } {
        return;
    }
    pg::error_memory::prepare();
    pg::allocator::prepare();
    settings::define();
    pg::client::remember();
    hooks::install();
}
