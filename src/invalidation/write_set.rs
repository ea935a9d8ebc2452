//! What the present transaction has changed, as far as the hooks have seen. State of this backend, which only the other files of this
//! folder and the hooks change; no lock. It is forgotten when the transaction ends.
//!
//! Flags and lists are cells of their own, and lists keep their memory, because every transaction uses them.

use std::cell::{Cell, RefCell};

use arrow_cache_core::{Room, SlotId};

use crate::pg::attention;
use crate::pg::backend_local::Local;

/// What the hooks have seen.
struct WriteSet {
    /// Something of what follows, other than `redefined` and `commits_prepared`, is not as at the start of a transaction.
    touched: Cell<bool>,
    /// OIDs of relations it has written, ascending.
    relations: RefCell<Vec<u32>>,
    /// It may have made changes that neither the hooks nor the server have listed.
    unknown: Cell<bool>,
    /// The changes were published already: later changes must be published at once.
    published: Cell<bool>,
    /// The slots of changed definitions with which this transaction is counted (`redefinition`).
    redefined: RefCell<Vec<SlotId>>,
    /// A prepared transaction is being committed here (`redefinition`).
    commits_prepared: Cell<bool>,
}

static WRITES: Local<WriteSet> = Local::new(WriteSet {
    touched: Cell::new(false),
    relations: RefCell::new(Vec::new()),
    unknown: Cell::new(false),
    published: Cell::new(false),
    redefined: RefCell::new(Vec::new()),
    commits_prepared: Cell::new(false),
});

/// Elements that a list keeps memory for when its transaction ends.
const KEPT: usize = 1024;

/// Empties a list that is filled again in the next transaction.
pub fn empty<T>(list: &mut Vec<T>) {
    list.clear();
    if list.capacity() > KEPT {
        list.shrink_to(KEPT);
    }
}

fn note_touch(writes: &WriteSet) {
    attention::leave_for_end();
    writes.touched.set(true);
}

/// Changes what is kept until the transaction ends.
fn touch<R>(change: impl FnOnce(&WriteSet) -> R) {
    WRITES.with(|writes| {
        note_touch(writes);
        change(writes);
    });
}

/// Notes that this transaction writes `relation`. True if that was not known before. If there is no memory to note the relation, the
/// changes of this transaction count as unknown.
pub fn note(relation: u32) -> bool {
    WRITES.with(|writes| {
        note_touch(writes);
        let mut relations = writes.relations.borrow_mut();
        let place = relations.binary_search(&relation);
        if let Err(place) = place {
            match relations.make_room(1) {
                Ok(()) => relations.insert(place, relation),
                Err(_) => writes.unknown.set(true),
            }
        }
        place.is_err()
    })
}

/// Has this transaction written `relation`, as far as the hooks have seen?
pub fn holds(relation: u32) -> bool {
    WRITES.with(|writes| writes.relations.borrow().binary_search(&relation).is_ok())
}

/// Calls `visit` with each relation that this transaction has written, as far as the hooks have seen.
pub fn for_each_relation(visit: impl FnMut(u32)) {
    WRITES.with(|writes| writes.relations.borrow().iter().copied().for_each(visit));
}

/// Notes that this transaction may write relations that neither the hooks nor the server list.
pub fn note_unknown() {
    touch(|writes| writes.unknown.set(true));
}

/// May this transaction have written relations that neither the hooks nor the server have listed?
pub fn is_unknown() -> bool {
    WRITES.with(|writes| writes.unknown.get())
}

/// Have this transaction's changes been published already?
pub fn is_published() -> bool {
    WRITES.with(|writes| writes.published.get())
}

/// Notes that the changes made so far are published.
pub fn set_published() {
    touch(|writes| writes.published.set(true));
}

/// Notes slots with which this transaction is going to be counted. One that is noted twice is counted twice.
pub fn note_redefined(slots: &[SlotId]) {
    WRITES.with(|writes| writes.redefined.borrow_mut().extend_from_slice(slots));
}

/// Is this transaction counted with some slots?
pub fn is_redefining() -> bool {
    WRITES.with(|writes| !writes.redefined.borrow().is_empty())
}

/// Notes that a prepared transaction is being committed here, or not any more. Returns whether it was noted before.
pub fn note_committing_prepared(commits: bool) -> bool {
    WRITES.with(|writes| writes.commits_prepared.replace(commits))
}

/// Is a prepared transaction being committed here?
pub fn is_committing_prepared() -> bool {
    WRITES.with(|writes| writes.commits_prepared.get())
}

/// Takes the slots with which this transaction is counted.
pub fn take_redefined() -> Vec<SlotId> {
    WRITES.with(|writes| writes.redefined.take())
}

/// Forgets what was written, at the end of the transaction. Keeps `redefined` and `commits_prepared`, which the resource release callback takes a moment later.
pub fn forget() {
    WRITES.with(|writes| {
        if writes.touched.replace(false) {
            forget_touched(writes);
        }
    });
}

#[inline(never)]
fn forget_touched(writes: &WriteSet) {
    empty(&mut writes.relations.borrow_mut());
    writes.unknown.set(false);
    writes.published.set(false);
}
