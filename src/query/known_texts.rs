//! Texts that come again: what a text is normalized to, and its fingerprint, remembered beside the text as the client sent it. All of it follows from
//! the bytes of the text and from `standard_conforming_strings`, which are compared. State of this backend: at most 128 texts of at most 2 kB.

use std::cell::RefCell;
use std::rc::Rc;

use arrow_cache_core::{Hash128, RoomyVec, text_fingerprint};
use pgrx::pg_sys;

use crate::pg::backend_local::Local;

/// Texts that are remembered: each in a place that its bytes name.
const PLACES: usize = 128;
/// A longer text is not remembered.
const LONGEST: usize = 2048;

struct KnownText {
    raw: Vec<u8>,
    conforming: bool,
    normalized: Rc<[u8]>,
    /// That of the normalized text.
    hash: Hash128,
    fingerprint: Option<u64>,
}

impl KnownText {
    fn is(&self, raw: &[u8]) -> bool {
        self.raw == raw && self.conforming == conforming()
    }
}

static KNOWN: Local<RefCell<[Option<KnownText>; PLACES]>> = Local::new(RefCell::new([const { None }; PLACES]));

fn conforming() -> bool {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::standard_conforming_strings }
}

fn place_of(raw: &[u8]) -> usize {
    Hash128::of(raw).lo as usize % PLACES
}

/// What is remembered of a text.
fn with_known<R>(raw: &[u8], read: impl FnOnce(&KnownText) -> R) -> Option<R> {
    if raw.len() > LONGEST {
        return None;
    }
    KNOWN.with_borrow(|known| known[place_of(raw)].as_ref().filter(|text| text.is(raw)).map(read))
}

/// The normalized text and its hash, if they are remembered.
pub fn normalized(raw: &[u8]) -> Option<(Rc<[u8]>, Hash128)> {
    with_known(raw, |text| (Rc::clone(&text.normalized), text.hash))
}

/// The fingerprint of a text; `None` for a long one.
pub fn fingerprint(raw: &[u8]) -> Option<u64> {
    with_known(raw, |text| text.fingerprint).unwrap_or_else(|| text_fingerprint(raw))
}

/// Remembers what a text is normalized to, and the hash of that, in the place of another one, if there is memory for that.
pub fn remember(raw: &[u8], normalized: &Rc<[u8]>, hash: Hash128) {
    if raw.len() > LONGEST {
        return;
    }
    let mut copy = Vec::new();
    if copy.add_all(raw).is_err() {
        return;
    }
    let fingerprint = text_fingerprint(raw);
    let normalized = Rc::clone(normalized);
    let text = KnownText { raw: copy, conforming: conforming(), normalized, hash, fingerprint };
    let before = KNOWN.with_borrow_mut(|known| known[place_of(raw)].replace(text));
    drop(before);
}
