//! What the server itself knows of the changes that the present transaction has made, and which transactions run. Keeps nothing.

use arrow_cache_core::{ChangedRelations, OutOfMemory, RoomyVec};
use pgrx::pg_sys;

use super::compat::counted_relation;
use super::{backend, server};

/// A relation whose tuples the transaction has changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ChangedRelation {
    /// Its OID.
    pub oid: u32,
    /// Tuples were updated.
    pub updated: bool,
    /// Tuples were deleted.
    pub deleted: bool,
}

/// Calls `visit` with every relation whose tuples this transaction has changed so far. The heap access method itself counts them,
/// whatever path the change took.
///
/// Nothing is listed while `track_counts` is off: see `invalidation::track_counts`.
pub fn for_each_changed_relation(mut visit: impl FnMut(ChangedRelation)) {
    // SAFETY: the function returns the newest level, pushing an empty one at most; the list lives
    // in TopTransactionContext and nothing below changes it.
    unsafe {
        let nest_level = backend::transaction_nest_level();
        let mut level = kept!(server::pgstat_get_xact_stack_level(nest_level));
        while !level.is_null() {
            let mut table = (*level).first;
            while !table.is_null() {
                let parent = (*table).parent;
                let oid = counted_relation(&*parent);
                let counts = &*table;
                visit(ChangedRelation {
                    oid: oid.to_u32(),
                    updated: counts.tuples_updated > 0,
                    deleted: counts.tuples_deleted > 0 || counts.truncdropped,
                });
                table = counts.next;
            }
            level = (*level).previous;
        }
    }
}

/// Adds to what has been `seen` of this transaction's changes what has been listed since. The server puts what is new
/// at the head of the list of the newest level, and takes nothing out of a list before its level ends: then `seen` must
/// be told.
///
/// # Errors
/// There is not enough memory; what has been seen must be forgotten.
pub fn look_again(seen: &mut ChangedRelations, is_definition: impl Fn(u32) -> bool) -> Result<(), OutOfMemory> {
    // SAFETY: as in `for_each_changed_relation`. The head that was seen is in its list as long as the level lasts.
    unsafe {
        let mut newer = Vec::new();
        let mut level = kept!(server::pgstat_get_xact_stack_level(backend::transaction_nest_level()));
        while !level.is_null() && seen.head((*level).nest_level).is_none() {
            newer.add(level)?;
            level = (*level).previous;
        }
        let known = (!level.is_null()).then_some(level);
        for level in known.into_iter().chain(newer.into_iter().rev()) {
            let level = &*level;
            let head = seen.head(level.nest_level);
            let mut table = level.first;
            while !table.is_null() && Some(table.addr()) != head {
                let relation = counted_relation(&*(*table).parent).to_u32();
                seen.add(relation, is_definition(relation))?;
                table = (*table).next;
            }
            seen.note_level(level.nest_level, level.first.addr())?;
        }
    }
    Ok(())
}

/// Calls `visit` with every relation whose definition this transaction will tell the other backends to read again. A relation may come
/// more than once; InvalidOid stands for all relations. Only at the outermost level of a transaction.
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
