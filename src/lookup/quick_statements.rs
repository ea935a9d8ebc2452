//! Admission: which statements are too quick to be worth a lookup, by their fingerprints: quicker than
//! `min_execution_time`, or than ten times what looking them up takes.
//!
//! A fixed table of this backend; no other process sees it. A statement that is forgotten is only looked up once more.
//! What sessions find out about statements that are new to them is noted in shared memory (`core::cache::speeds`), so
//! that the first statement of the next session need not be looked up.

use std::cell::RefCell;
use std::time::Duration;

use super::fingerprint::Fingerprint;
use super::price;
use crate::pg::backend_local::Local;
use crate::query::environment;
use crate::shmem::{self, SharedStore};
use crate::{session, settings};

/// Fingerprints remembered: each takes the place of another with the same remainder.
const PLACES: usize = 256;
/// Executions in a row that were too quick to be stored, after which the next ones are not looked up.
const QUICK_RUNS: u8 = 16;
/// This skipped execution is looked up anyway, since another session may have stored an answer.
const FIRST_LOOK_UP: u16 = 64;
/// After a look-up in vain, twice as many executions are skipped before the next one, up to this number.
const MOST_SKIPPED: u16 = 256;
/// A run is too quick to be worth a lookup that takes more than one part in so many of its time.
const CHEAP: u32 = 10;
/// The part of the time of a slow run that is spent on looking up those after it. Most slow runs of statements that are
/// quick otherwise had to wait for something, and an answer would not have saved what they took.
const SPENT: u32 = 8;
/// Of a statement of which so many executions in a row were too quick, one skipped execution in a few is timed.
const SURELY_QUICK: u8 = u8::MAX;
const TIMED_EVERY: u16 = 8;
/// One lookup in so many is measured, and the first one.
const MEASURED_EVERY: u8 = 8;
/// A lookup that took longer than those before counts for one in so many: most of these were disturbed.
const WEIGHT_OF_LONGER: u32 = 8;

/// Whether looking up statements with one fingerprint pays.
#[derive(Clone, Copy)]
struct Payoff {
    fingerprint: Fingerprint,
    /// The setting `min_execution_time` that the executions were compared with, as bits.
    threshold: u64,
    /// How many of the last executions in a row were too quick.
    quick_runs: u8,
    /// The last execution was quicker than that setting.
    is_below: bool,
    /// How many executions were skipped since the last that was looked up, and which of them is looked up.
    skipped: u16,
    look_up_at: u16,
    /// What a lookup takes.
    price: Duration,
    /// How many lookups there were, as far as that decides which is measured.
    lookups: u8,
    /// For how long further executions are looked up in any case: for all the time that hits have saved, and a fixed
    /// part of what slow runs took.
    credit: Duration,
}

const UNKNOWN: Payoff = Payoff {
    fingerprint: Fingerprint(0),
    threshold: 0,
    quick_runs: 0,
    is_below: false,
    skipped: 0,
    look_up_at: FIRST_LOOK_UP,
    price: Duration::ZERO,
    lookups: 0,
    credit: Duration::ZERO,
};

impl Payoff {
    /// Returns true if it is that of statements with this fingerprint, compared with this setting.
    fn is_of(&self, fingerprint: Fingerprint, threshold: u64) -> bool {
        self.fingerprint == fingerprint && self.threshold == threshold
    }

    /// One more execution would have been as good without a lookup.
    fn note_in_vain(&mut self) {
        self.quick_runs = self.quick_runs.saturating_add(1);
        self.credit = self.credit.saturating_sub(self.price);
    }

    /// One more execution was worth its lookup, and so many others.
    fn note_worth(&mut self, credit: Duration) {
        (self.quick_runs, self.look_up_at) = (0, FIRST_LOOK_UP);
        self.credit = self.credit.saturating_add(credit);
    }
}

static PAYOFFS: Local<RefCell<[Payoff; PLACES]>> = Local::new(RefCell::new([UNKNOWN; PLACES]));

/// Lends the payoff in the place of a fingerprint to `f`.
fn with_payoff<R>(fingerprint: Fingerprint, f: impl FnOnce(&mut Payoff) -> R) -> R {
    PAYOFFS.with_borrow_mut(|payoffs| f(&mut payoffs[(fingerprint.0 % PLACES as u64) as usize]))
}

/// The setting that executions are compared with, as bits.
fn threshold() -> u64 {
    settings::min_execution_time_ms().to_bits()
}

/// Returns true if the next execution of a statement with this fingerprint is too quick to be worth a lookup, by all
/// that is known. Counts the executions that are skipped. Else the lookup begins, and may be measured.
pub fn skips_lookup(fingerprint: Fingerprint) -> bool {
    if settings::min_execution_time_ms() == 0.0 {
        return false;
    }
    let skips = decide(fingerprint);
    if !skips {
        price::begin(fingerprint, is_measured(fingerprint));
    }
    skips
}

/// Counts a lookup; says whether it is measured.
fn is_measured(fingerprint: Fingerprint) -> bool {
    with_payoff(fingerprint, |payoff| {
        let is_due = payoff.lookups == 0 || payoff.fingerprint != fingerprint;
        payoff.lookups = (payoff.lookups + 1) % MEASURED_EVERY;
        is_due
    })
}

/// Does what `skips_lookup` promises, for executions that may be skipped.
fn decide(fingerprint: Fingerprint) -> bool {
    with_payoff(fingerprint, |payoff| {
        learn(payoff, fingerprint);
        if !is_quick(payoff, fingerprint) {
            return false;
        }
        payoff.skipped += 1;
        let is_skipped = payoff.skipped < payoff.look_up_at;
        if !is_skipped {
            (payoff.skipped, payoff.look_up_at) = (0, (payoff.look_up_at * 2).min(MOST_SKIPPED));
        }
        is_skipped
    })
}

/// Learns what other sessions have noted of statements with this fingerprint, if this session knows nothing and they
/// have found them too quick.
#[inline]
fn learn(payoff: &mut Payoff, fingerprint: Fingerprint) {
    if payoff.fingerprint != fingerprint && is_quick_for_others(fingerprint) {
        *payoff = Payoff { fingerprint, threshold: threshold(), quick_runs: QUICK_RUNS, is_below: true, ..UNKNOWN };
    }
}

/// What a fingerprint is noted by in memory that sessions share: a text may mean something else to another role, or
/// under other settings.
fn shared_place(store: &SharedStore, fingerprint: Fingerprint) -> u64 {
    environment::hash(store.seed(), &[]).map_or(0, |environment| environment.0.lo) ^ fingerprint.0
}

/// Returns true if all sessions together have noted enough runs, which usually were too quick.
#[cold]
#[inline(never)]
fn is_quick_for_others(fingerprint: Fingerprint) -> bool {
    shmem::store_without_area().is_some_and(|store| {
        let speed = store.speed(shared_place(&store, fingerprint));
        let usual = speed.plain_micros as f64;
        speed.executions >= u32::from(QUICK_RUNS) && usual < settings::min_execution_time_ms() * 1000.0
    })
}

/// Tells other sessions how long a run has taken.
#[cold]
#[inline(never)]
fn tell(fingerprint: Fingerprint, taken: Duration) {
    if let Some(store) = shmem::store_without_area() {
        let micros = u64::try_from(taken.as_micros()).unwrap_or(u64::MAX);
        store.note_run(shared_place(&store, fingerprint), micros, false);
    }
}

/// Returns true if the last executions of statements with this fingerprint were too quick, by all that is remembered
/// there.
fn is_quick(payoff: &Payoff, fingerprint: Fingerprint) -> bool {
    payoff.is_of(fingerprint, threshold()) && payoff.credit.is_zero() && payoff.quick_runs >= QUICK_RUNS
}

/// Returns true if the next answer to a statement with this fingerprint will be too quick to be stored, by all that is
/// known. Those whose lookups take too much of their time may be stored when they are looked up.
pub fn are_quick(fingerprint: Fingerprint) -> bool {
    settings::min_execution_time_ms() != 0.0
        && with_payoff(fingerprint, |payoff| payoff.is_below && is_quick(payoff, fingerprint))
}

/// Returns true if `skips_lookup` will. Counts nothing.
#[inline]
pub fn will_skip_lookup(fingerprint: Fingerprint) -> bool {
    settings::min_execution_time_ms() != 0.0
        && with_payoff(fingerprint, |payoff| {
            learn(payoff, fingerprint);
            is_quick(payoff, fingerprint) && payoff.skipped + 1 < payoff.look_up_at
        })
}

/// Counts an execution that is skipped because of `will_skip_lookup`.
#[inline]
pub fn count_skipped(fingerprint: Fingerprint) {
    with_payoff(fingerprint, |payoff| payoff.skipped += 1);
}

/// Returns true if an execution is to be timed that is skipped.
pub fn is_timed(fingerprint: Fingerprint) -> bool {
    with_payoff(fingerprint, |payoff| payoff.quick_runs < SURELY_QUICK || payoff.skipped.is_multiple_of(TIMED_EVERY))
}

/// Notes how long an execution of a statement with this fingerprint has taken; returns true if that was too quick to be
/// stored. Other sessions are told of it unless this one has found enough quick runs: then it would tell nothing new,
/// and write to shared memory all the time. A slow one that was not looked up may have had no processor for a while, as
/// any may on a busy machine: the next one is looked up, and decides.
pub fn note_run(fingerprint: Fingerprint, taken: Duration, was_looked_up: bool) -> bool {
    let too_quick = taken < settings::min_execution_time();
    note(fingerprint, |payoff| {
        payoff.is_below = too_quick;
        if !too_quick || payoff.quick_runs < QUICK_RUNS {
            tell(fingerprint, taken);
        }
        if too_quick || taken < payoff.price * CHEAP {
            payoff.note_in_vain();
        } else if was_looked_up {
            payoff.note_worth(taken / SPENT);
        } else {
            payoff.quick_runs = payoff.quick_runs.min(QUICK_RUNS - 1);
        }
    });
    too_quick
}

/// Notes how long an execution has taken that was not read to its end. A quick one needed no lookup; of a slow one
/// nothing is known.
pub fn note_part(fingerprint: Fingerprint, taken: Duration) {
    let too_quick = taken < settings::min_execution_time();
    note(fingerprint, |payoff| {
        if too_quick || taken < payoff.price * CHEAP {
            payoff.note_in_vain();
        }
    });
}

/// Notes that a statement with this fingerprint was answered, which has saved so many microseconds.
pub fn note_hit(fingerprint: Fingerprint, saved_micros: u64) {
    let saved = Duration::from_micros(saved_micros);
    note(fingerprint, |payoff| {
        if saved > payoff.price {
            payoff.note_worth(saved - payoff.price);
        } else {
            payoff.note_in_vain();
        }
    });
}

/// A lookup is over: notes what it took, if it was measured.
#[inline]
pub fn note_looked_up() {
    if let Some((fingerprint, taken)) = price::take() {
        note(fingerprint, |payoff| {
            let more = taken.saturating_sub(payoff.price);
            let weight = if payoff.price.is_zero() { 1 } else { WEIGHT_OF_LONGER };
            payoff.price = payoff.price.min(taken) + more / weight;
        });
    }
}

fn note(fingerprint: Fingerprint, change: impl FnOnce(&mut Payoff)) {
    let threshold = threshold();
    with_payoff(fingerprint, |payoff| {
        if !payoff.is_of(fingerprint, threshold) {
            *payoff = Payoff { fingerprint, threshold, ..UNKNOWN };
        }
        change(payoff);
    });
}

/// Notes the fingerprint of the statement that is planned now and executed next.
pub fn note_planned(fingerprint: Option<Fingerprint>) {
    session::note_fingerprint(fingerprint.map(|fingerprint| fingerprint.0));
}

/// The fingerprint of the statement that starts now, if it was planned for this execution.
pub fn take_planned() -> Option<Fingerprint> {
    session::take_fingerprint().map(Fingerprint)
}
