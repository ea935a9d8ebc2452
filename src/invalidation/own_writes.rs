//! What the present transaction has written itself, for the rooms that give or store an answer in it. Keeps nothing.

use arrow_cache_core::Reason;

use crate::invalidation::catalogs::is_meaningful_catalog;
use crate::invalidation::{track_counts, write_set};
use crate::pg::backend;
use crate::pg::transaction_changes::Changes;

/// Most changed relations, and levels of subtransactions with some, that each lookup looks at. A transaction that has
/// more gets no answers: it would look at them for longer than they save.
const MOST_CHANGES: usize = 250;

/// Returns true if this transaction has an id, without which it cannot have written anything.
pub fn has_transaction_id() -> bool {
    backend::top_transaction_id() != 0
}

/// Returns true if this transaction may get or store an answer that rests on `relations` (ascending OIDs). Its own
/// changes are in no published version, so it must execute every query that they touch.
///
/// # Errors
/// `OwnDdl` or `OwnWrites`.
pub fn check_own_writes(relations: &[u32]) -> Result<(), Reason> {
    if !has_transaction_id() {
        return Ok(());
    }
    if track_counts::is_unlisted() {
        return Err(Reason::OwnWrites);
    }
    let mut is_definition = false;
    let mut is_own = relations.iter().any(|relation| write_set::holds(*relation));
    let are_all_seen = Changes::of_now().for_each(MOST_CHANGES, |change| {
        let relation = change.relation();
        is_definition |= is_meaningful_catalog(relation);
        is_own |= relations.binary_search(&relation).is_ok();
    });
    if !are_all_seen {
        return Err(Reason::OwnWrites);
    }
    if is_definition {
        Err(Reason::OwnDdl)
    } else if is_own {
        Err(Reason::OwnWrites)
    } else {
        Ok(())
    }
}
