//! What the present transaction has changed, as far as the hooks have seen. State of this backend, which only the other
//! files of this folder and the hooks change; no lock. It is forgotten when the transaction ends.

use std::cell::{Cell, RefCell};

use arrow_cache_core::Room;

use crate::pg::attention;
use crate::pg::backend_local::Local;

/// OIDs of relations that it has written, ascending.
static RELATIONS: Local<RefCell<Vec<u32>>> = Local::new(RefCell::new(Vec::new()));
/// It may have made changes that neither the hooks nor the server have listed.
static UNKNOWN: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Relations that the list keeps memory for when its transaction ends.
const KEPT: usize = 1024;

/// Notes that this transaction writes `relation`. If there is no memory to note the relation, the changes of this
/// transaction count as unknown.
pub fn note(relation: u32) {
    attention::leave_for_end();
    RELATIONS.with_borrow_mut(|relations| {
        if let Err(place) = relations.binary_search(&relation) {
            match relations.make_room(1) {
                Ok(()) => relations.insert(place, relation),
                Err(_) => UNKNOWN.set(true),
            }
        }
    });
}

/// Returns true if this transaction has written `relation`, as far as the hooks have seen.
pub fn holds(relation: u32) -> bool {
    RELATIONS.with_borrow(|relations| relations.binary_search(&relation).is_ok())
}

/// Calls `visit` with each relation that this transaction has written, as far as the hooks have seen.
pub fn for_each_relation(visit: impl FnMut(u32)) {
    RELATIONS.with_borrow(|relations| relations.iter().copied().for_each(visit));
}

/// Notes that this transaction may write relations that neither the hooks nor the server list.
pub fn note_unknown() {
    attention::leave_for_end();
    UNKNOWN.set(true);
}

/// Returns true if this transaction may have written relations that neither the hooks nor the server have listed.
pub fn is_unknown() -> bool {
    UNKNOWN.get()
}

/// Forgets what was written, at the end of the transaction.
pub fn forget() {
    UNKNOWN.set(false);
    RELATIONS.with_borrow_mut(|relations| {
        relations.clear();
        relations.shrink_to(KEPT);
    });
}
