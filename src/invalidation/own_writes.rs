//! What the present transaction has written itself, for the rooms that give or store an answer in it. State of this
//! backend, forgotten when the transaction ends: what was seen of the server's list, so that each lookup visits only
//! what is new there. No lock.

use std::cell::RefCell;

use arrow_cache_core::{ChangedRelations, Reason};

use crate::invalidation::catalogs::is_meaningful_catalog;
use crate::invalidation::{track_counts, write_set};
use crate::pg::backend_local::Local;
use crate::pg::{attention, backend, transaction_changes};

static SEEN: Local<RefCell<ChangedRelations>> = Local::new(RefCell::new(ChangedRelations::new()));

/// Has this transaction an id, without which it cannot have written anything?
pub fn has_transaction_id() -> bool {
    backend::top_transaction_id() != 0
}

/// May this transaction get or store an answer that rests on `relations` (ascending OIDs)? Its own changes are in no published version, so
/// it must execute every query that they touch.
///
/// # Errors
/// `OwnDdl`, `OwnWrites` or `OutOfMemory`.
pub fn check_own_writes(relations: &[u32]) -> Result<(), Reason> {
    if !has_transaction_id() {
        return Ok(());
    }
    if track_counts::is_unlisted() {
        return Err(Reason::OwnWrites);
    }
    attention::leave_for_end();
    SEEN.with_borrow_mut(|seen| {
        transaction_changes::look_again(seen, is_meaningful_catalog).inspect_err(|_| seen.forget())?;
        if seen.has_definition() {
            return Err(Reason::OwnDdl);
        }
        let is_own = |relation: &u32| seen.holds(*relation) || write_set::holds(*relation);
        if relations.iter().any(is_own) { Err(Reason::OwnWrites) } else { Ok(()) }
    })
}

/// A subtransaction ends, of this depth.
pub fn level_ended(depth: i32) {
    SEEN.with_borrow_mut(|seen| seen.end_level(depth));
}

/// Forgets what was written, at the end of the transaction.
pub fn forget() {
    SEEN.with_borrow_mut(ChangedRelations::forget);
}
