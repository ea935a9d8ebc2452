//! What the server itself knows of the changes that the present transaction has made, and which transactions run. Keeps
//! nothing.

use pgrx::pg_sys;

use super::compat::counted_relation;
use super::{backend, server};

/// Calls `visit` with the OID of every relation whose tuples this transaction has changed so far. The heap access
/// method itself counts them, whatever path the change took. Gives up after `most` relations and levels of
/// subtransactions: returns false if there are more.
///
/// Nothing is listed while `track_counts` is off: see `invalidation::track_counts`.
pub fn for_each_changed_relation(most: usize, mut visit: impl FnMut(u32)) -> bool {
    // SAFETY: the function returns the newest level, pushing an empty one at most; the list lives
    // in TopTransactionContext and nothing below changes it.
    unsafe {
        let nest_level = backend::transaction_nest_level();
        let mut level = kept!(server::pgstat_get_xact_stack_level(nest_level));
        let mut steps = 0;
        while !level.is_null() {
            steps += 1;
            let mut table = (*level).first;
            while !table.is_null() && steps <= most {
                steps += 1;
                visit(counted_relation(&*(*table).parent).to_u32());
                table = (*table).next;
            }
            if steps > most {
                return false;
            }
            level = (*level).previous;
        }
    }
    true
}

/// Calls `visit` with every relation whose definition this transaction will tell the other backends to read again. A
/// relation may come more than once; InvalidOid stands for all relations. Only at the outermost level of a transaction.
pub fn for_each_redefined_relation(mut visit: impl FnMut(pg_sys::Oid)) {
    const RELATION: i8 = pg_sys::SHAREDINVALRELCACHE_ID as i8;
    let mut messages: *mut pg_sys::SharedInvalidationMessage = std::ptr::null_mut();
    let mut unused = false;
    // SAFETY: the function copies what is collected so far into an array of its own, whose messages are told apart by
    // their first byte.
    unsafe {
        let count = kept!(pg_sys::xactGetCommittedInvalidationMessages(&raw mut messages, &raw mut unused));
        if messages.is_null() {
            return;
        }
        for message in std::slice::from_raw_parts(messages, count as usize) {
            if message.id == RELATION {
                visit(message.rc.relId);
            }
        }
        kept!(pg_sys::pfree(messages.cast()));
    }
}

/// The oldest id of a running transaction, prepared ones included; the next id when none runs.
pub fn oldest_active_transaction() -> u32 {
    // SAFETY: reads the process array; called by a backend outside of recovery that holds no lock.
    unsafe { kept!(pg_sys::GetOldestActiveTransactionId()).into_inner() }
}
