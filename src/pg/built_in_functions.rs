//! The server's own functions. Reads constants of the server; keeps nothing.

use pgrx::pg_sys;

use super::server;

/// Stands for no function in the index of these (utils/fmgrtab.h).
const NO_BUILT_IN: u16 = u16::MAX;

/// Returns true if the code that runs for a function is fixed by its number.
pub fn is_called_by_number(function: pg_sys::Oid) -> bool {
    let number = function.to_u32();
    // SAFETY: constants of the server, and a place that the first of them says is there.
    unsafe {
        number <= server::fmgr_last_builtin_oid.to_u32()
            && *(&raw const server::fmgr_builtin_oid_index).cast::<u16>().add(number as usize) != NO_BUILT_IN
    }
}
