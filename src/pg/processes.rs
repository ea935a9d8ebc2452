//! Which processes of the server run. Each question takes the server's lock on the list of processes, and lets it go.
//! Keeps nothing.

use pgrx::pg_sys;

use super::compat;

/// The processes of the server. Each has a place for the life of the server.
pub fn places<'a>() -> &'a [pg_sys::PGPROC] {
    // SAFETY: the array is made by the postmaster, with as many places, before any backend runs. What is read of other
    // processes is read word by word, as the server's own views read it.
    unsafe {
        let all = &*pg_sys::ProcGlobal;
        std::slice::from_raw_parts(all.allProcs, all.allProcCount as usize)
    }
}

/// Returns true if a process runs in this place that has not yet left the list of those that may have transactions.
fn runs(place: &pg_sys::PGPROC) -> bool {
    // SAFETY: an aligned word in shared memory. Searching the list raises nothing.
    unsafe {
        let pid = (&raw const place.pid).read_volatile();
        pid != 0 && std::ptr::eq(kept!(pg_sys::BackendPidGetProc(pid)), place)
    }
}

/// Returns true if a process runs in the place of this number.
pub fn runs_in_place(number: u32) -> bool {
    places().get(number as usize).is_some_and(runs)
}

/// Returns true if a backend of this number runs. See `compat::backend_number`.
pub fn is_backend(number: u32) -> bool {
    places()
        .iter()
        .enumerate()
        .any(|(place, process)| compat::number_of_backend(place, process) == Some(number) && runs(process))
}

/// Returns true if another process runs that is in a database. Processes without one read and change no relations.
pub fn are_other_sessions() -> bool {
    // SAFETY: a plain global of the backend; an aligned word in shared memory.
    let is_other = |process: &&pg_sys::PGPROC| unsafe {
        !std::ptr::eq(*process, pg_sys::MyProc) && (&raw const process.databaseId).read_volatile() != pg_sys::InvalidOid
    };
    places().iter().filter(is_other).any(runs)
}
