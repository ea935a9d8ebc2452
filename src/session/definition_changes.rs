//! How often this session has changed a definition: who serves or stores an answer asks whether it has since. State of this backend; no
//! lock.

use std::cell::Cell;

use crate::pg::backend_local::Local;

static DEFINITION_CHANGES: Local<Cell<u64>> = Local::new(Cell::new(0));

/// Notes that this session changes a definition. Only ever counts up, whatever is rolled back.
pub fn note_definition_change() {
    DEFINITION_CHANGES.set(DEFINITION_CHANGES.get() + 1);
}

/// How often this session has changed a definition, or may have.
pub fn definition_changes() -> u64 {
    DEFINITION_CHANGES.get()
}
