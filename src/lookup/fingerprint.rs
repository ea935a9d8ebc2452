//! By which statements are taken to be as quick as each other. A guess: it decides what is worth a lookup, never what
//! is answered. Plain values.

use arrow_cache_core::text_fingerprint;

use crate::query::hashes::FormId;

/// The fingerprint of a statement: a hash of its text without its numbers and strings. For a prepared plan, and for a
/// statement whose values come by Bind, the form stands in for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// The fingerprint of a text; `None` for a long one.
    pub fn of_text(text: &[u8]) -> Option<Self> {
        text_fingerprint(text).map(Self)
    }

    /// What stands in for the fingerprint of a query of this form.
    pub fn of_form(form: FormId) -> Self {
        Self(form.0)
    }
}
