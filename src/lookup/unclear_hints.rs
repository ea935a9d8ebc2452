//! Tells the client of hints that seem to be meant for the cache and are not understood: once in a session for each of
//! them. State of this backend: which were told of.

use std::cell::RefCell;

use arrow_cache_core::{Hash128, unclear_hint};

use super::call::Call;
use crate::error;
use crate::pg::backend_local::Local;
use crate::query::statement_text;
use crate::session;

/// After so many the session is told of no others.
const MOST: usize = 64;

/// Hashes of the comments that were told of.
static TOLD: Local<RefCell<Vec<u64>>> = Local::new(RefCell::new(Vec::new()));

/// Tells of an unclear hint before a statement of the client that is about to be planned, unless that was done before.
/// Accepts interrupts.
#[inline]
pub fn tell(call: &Call<'_>) {
    let text = call.own_text();
    if !statement_text::begins_with_select(&text) && session::at_top_level() {
        tell_of(unclear_hint(statement_text::with_what_is_before(&text)));
    }
}

fn tell_of(comment: Option<&[u8]>) {
    let Some(comment) = comment else { return };
    let hash = Hash128::of(comment).lo;
    let is_new = TOLD.with_borrow_mut(|told| {
        let is_new = told.len() < MOST && !told.contains(&hash);
        if is_new {
            told.push(hash);
        }
        is_new
    });
    if is_new {
        error::notice_unclear_hint();
    }
}
