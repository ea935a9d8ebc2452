//! Outdated answers for those who ask for them (`max_stale`): whether one may be given, and who is to compute the next
//! one. Keeps nothing.
//!
//! Such an answer is one that the statement would have had at some moment within the bound. Only rows may have changed
//! since that moment: no definition, no right, no policy, and nothing that this session has written.

use arrow_cache_core::{Pin, Reason};
use pgrx::pg_sys;

use super::question::Question;
use super::statement::Statement;
use super::{portal, rules, single_flight};
use crate::invalidation::foreign;
use crate::invalidation::own_writes;
use crate::pg::backend;
use crate::query::statement_terms::StatementTerms;
use crate::session;
use crate::shmem::SharedStore;

/// The last part of the bound, in which the answer is computed anew: one in so many.
const LAST_PART: i64 = 8;
/// A run may take longer than usual by this part of the usual time without anybody waiting: one in so many.
const MARGIN: i64 = 4;

/// How old an answer a statement accepts on these terms, in microseconds; `None` if it has to be exact.
///
/// A transaction that sees one state of the database through several statements gets exact answers, and so does one
/// that may have written, and every session of a standby.
pub fn bound(terms: StatementTerms) -> Option<i64> {
    let bound = terms.max_stale_micros()?;
    // SAFETY: a plain global of the backend.
    let isolation = unsafe { pg_sys::XactIsoLevel };
    let is_exact = isolation >= pg_sys::XACT_REPEATABLE_READ as i32
        || own_writes::has_transaction_id()
        || backend::is_in_recovery();
    (!is_exact).then_some(bound)
}

/// The bound of a question, if its answers may be given when they are outdated. Not those of cursors, those that are
/// checked again before their first row is read, and those that rest on what others only promise. Nor those with cuts,
/// whose gaps stand for different times after rows have changed.
pub fn bound_of(store: &SharedStore, question: &Question<'_>, statement: &Statement<'_>) -> Option<i64> {
    let bound = bound(statement.terms)?;
    let traits = &statement.cacheable.traits;
    let is_cursor = question.stays_open || portal::may_be_read_later();
    let is_guarded = traits.reads_session && portal::is_bound();
    let rests_on_promises = || foreign::check_settled(store, question.plan) != Ok(false);
    let is_exact = is_cursor
        || is_guarded
        || !statement.cuts.is_none()
        || traits.calls_declared
        || traits.trusts
        || rests_on_promises();
    (!is_exact).then_some(bound)
}

/// How old an outdated answer is, in microseconds, if it is to be given within `bound`, which ends at `end`; `None` if
/// the statement is to be executed. A statement that has waited since `end` may be given an answer that was computed
/// meanwhile: it is not older than what executing it at once would have given.
///
/// In the last part of the bound the first who asks computes the next answer, while the others are given this one.
pub fn servable_age(store: &SharedStore, pin: &Pin, statement: &Statement<'_>, bound: i64, end: i64) -> Option<i64> {
    let (view, now) = (store.view(pin), backend::now());
    let known_good = view.known_good();
    // A clock that was set back tells nothing.
    if known_good > now || end > now {
        return None;
    }
    let age = end.checked_sub(known_good)?.max(0);
    if age > bound {
        return None;
    }
    let is_expired = view.expires_at() <= now
        || statement.terms.ttl_micros().is_some_and(|ttl| now.saturating_sub(view.created_at()) > ttl);
    let database = backend::database();
    if is_expired
        || known_good <= session::last_own_commit()
        || !rules::are_settled()
        || !store.only_rows_changed(pin, database)
    {
        return None;
    }
    let usual = store.speed(statement.cacheable.form.0).plain_micros.max(view.execution_micros());
    let is_due = age >= bound.saturating_sub(time_ahead(bound, i64::try_from(usual).unwrap_or(i64::MAX)));
    let is_computed = || {
        let wanted = single_flight::late(store, now, end.saturating_sub(bound), statement.current.catalogs);
        single_flight::is_computed(store, statement.key, wanted)
    };
    // What is told is the age of now, which is longer if the statement has waited.
    (!is_due || is_computed()).then_some(now - known_good)
}

/// How long before the end of the bound the next answer is begun, if a run usually takes so long. The next answer is as
/// old as its run is long when it takes the place of this one: a run that takes so long has to begin every `bound -
/// usual` at least, if nobody is to wait. What is added for runs that take longer makes them more frequent.
fn time_ahead(bound: i64, usual: i64) -> i64 {
    (bound / LAST_PART).max(usual.saturating_add(usual / MARGIN))
}

/// Returns true if the answer of a run may be stored although rows have changed since its snapshot was taken. It is
/// outdated from the start, and right as of `known_good`. Not if a later one is stored already.
///
/// # Errors
/// `ChangedMeanwhile`.
pub fn check_stored_late(
    store: &SharedStore,
    key: arrow_cache_core::CacheKey,
    known_good: i64,
    catalogs: u64,
) -> Result<(), Reason> {
    let database = backend::database();
    let versions = store.versions();
    if versions.version(versions.catalogs(database)) != catalogs {
        return Err(Reason::ChangedMeanwhile);
    }
    let Some(pin) = store.lookup(key) else { return Ok(()) };
    let is_later = store.view(&pin).known_good() >= known_good;
    store.unpin(pin);
    if is_later { Err(Reason::ChangedMeanwhile) } else { Ok(()) }
}
