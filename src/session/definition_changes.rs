//! How often this session has changed a definition. Rooms that serve or store an answer compare the number with an
//! earlier one. State of this backend; no lock.

use std::cell::Cell;

use crate::pg::backend_local::Local;

/// How often.
static DEFINITION_CHANGES: Local<Cell<u64>> = Local::new(Cell::new(0));

/// Notes that this session changes a definition. Only ever counts up, whatever is rolled back.
pub fn note_definition_change() {
    DEFINITION_CHANGES.set(DEFINITION_CHANGES.get() + 1);
}

/// How often this session has changed a definition, or may have.
pub fn definition_changes() -> u64 {
    DEFINITION_CHANGES.get()
}
