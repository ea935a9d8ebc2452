//! `arrow_cache.wait`: sleeps until an answer may have changed, which a token of it stands for. Procedures, since a
//! function would hold the snapshot of the statement that calls it (docs/architecture/exactness-moments.md, Waiting).
//!
//! Kept until the wait is over, or its transaction: that this session is among those who wait.

use std::cell::Cell;
use std::time::{Duration, Instant};

use arrow_cache_core::{ChangeToken, MOST_SEATS, RoomyVec, SlotBits, shown};
use pgrx::pg_sys;

use crate::error::{CacheError, or_raise};
use crate::lookup;
use crate::pg::array::{Array, ElementType};
use crate::pg::backend_local::Local;
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::{Outputs, Text};
use crate::pg::row::Value;
use crate::pg::sql_function::sql_function;
use crate::pg::varlena::Varlena;
use crate::pg::{attention, backend, waiting};
use crate::shmem::{self, SharedStore};

/// Longest sleep after which the time that is left is looked at again.
const LONGEST: Duration = Duration::from_secs(60);

/// The number under which this session waits.
static WAITS_AS: Local<Cell<Option<u32>>> = Local::new(Cell::new(None));

/// Waits for one token.
fn wait(call: FunctionCall<'_>) -> Outputs<bool> {
    let store = shmem::required();
    let token = call.argument(0).unwrap_or_else(|| CacheError::waits_for_null("token").raise());
    let changed = wait_for(&store, &[token_of(token)], call);
    Outputs(!changed.is_empty())
}

sql_function!(wait, "arrow_cache_wait");

/// Waits for one of several tokens. Returns those whose answers may have changed.
fn wait_any(call: FunctionCall<'_>) -> Outputs<Vec<Text>> {
    let store = shmem::required();
    let array = call.argument(0).unwrap_or_else(|| CacheError::waits_for_null("array of tokens").raise());
    let mut tokens = Vec::new();
    // SAFETY: the procedure is declared with an array of texts.
    for token in unsafe { Array::of(array).elements(ElementType::of(pg_sys::TEXTOID)) } {
        let token = token.unwrap_or_else(|| CacheError::waits_for_null("token").raise());
        or_raise(tokens.add(token_of(token)));
    }
    Outputs(wait_for(&store, &tokens, call))
}

sql_function!(wait_any, "arrow_cache_wait_any");

/// A token, and the text that it is.
type Token<'v> = (ChangeToken<'v>, &'v [u8]);

fn token_of(value: Value<'_>) -> Token<'_> {
    // SAFETY: the procedures are declared with texts.
    let text = or_raise(unsafe { Varlena::of(value) }.whole_body());
    (ChangeToken::of(text).unwrap_or_else(|| CacheError::no_token(shown(text)).raise()), text)
}

/// Waits until an answer of one of the tokens may have changed, or the timeout is over. Returns the tokens of those
/// that may have.
fn wait_for(store: &SharedStore, tokens: &[Token<'_>], call: FunctionCall<'_>) -> Vec<Text> {
    let timeout = call.argument(1).unwrap_or_else(|| CacheError::waits_for_null("timeout").raise());
    // SAFETY: the procedures are declared with an interval.
    let timeout = micros_of(unsafe { &*timeout.datum().cast_mut_ptr::<pg_sys::Interval>() });
    if !call.may_end_transactions() || backend::is_in_subtransaction() {
        CacheError::waits_in_transaction().raise();
    }
    let is_over = waiting::holding_nothing(|| {
        enter(store, tokens);
        let is_over = sleep(store, tokens, timeout);
        leave(store);
        is_over
    });
    let is_changed = |(token, _): &&Token<'_>| is_over && token.asks_for_time() || may_have_changed(store, token);
    let changed = tokens.iter().filter(is_changed).map(|(_, text)| Text(or_raise(Vec::copy_of(text))));
    changed.collect()
}

/// Sleeps until one may have changed. Returns true if the time is over before.
fn sleep(store: &SharedStore, tokens: &[Token<'_>], timeout: Duration) -> bool {
    let began = Instant::now();
    loop {
        if tokens.iter().any(|(token, _)| may_have_changed(store, token)) {
            return false;
        }
        match timeout.checked_sub(began.elapsed()) {
            Some(left) if !left.is_zero() => waiting::sleep_until_woken(left.min(LONGEST)),
            _ => return true,
        }
    }
}

/// Returns true if the answer of a token may have changed since the token was made. On a standby also if replay does
/// not tell of changes any more.
fn may_have_changed(store: &SharedStore, token: &ChangeToken<'_>) -> bool {
    let is_told = !backend::is_in_recovery() || store.replay().fault().is_none();
    !(is_told && token.is_current(&lookup::issuer(store), &store.versions()))
}

/// From now on whoever moves a slot of one of the tokens wakes this session.
fn enter(store: &SharedStore, tokens: &[Token<'_>]) {
    let mut slots = SlotBits::NONE;
    tokens.iter().flat_map(|(token, _)| token.slots()).for_each(|slot| slots.add(slot));
    let number = waiting::own_process();
    attention::leave_for_end();
    if !store.awaited().enter(number, &slots) {
        CacheError::too_many_wait(MOST_SEATS).raise();
    }
    WAITS_AS.set(Some(number));
}

fn leave(store: &SharedStore) {
    if let Some(number) = WAITS_AS.take() {
        store.awaited().leave(number);
    }
}

/// The transaction has ended, perhaps in the midst of a wait. Cannot raise.
pub fn transaction_ended() {
    if WAITS_AS.get().is_some()
        && let Some(store) = shmem::store_without_area()
    {
        leave(&store);
    }
}

/// The length of an interval, with months of 30 days; none if it is negative.
fn micros_of(interval: &pg_sys::Interval) -> Duration {
    const DAY: i64 = 86_400_000_000;
    let days = i64::from(interval.month) * 30 + i64::from(interval.day);
    let micros = days.saturating_mul(DAY).saturating_add(interval.time);
    Duration::from_micros(micros.max(0).cast_unsigned())
}
