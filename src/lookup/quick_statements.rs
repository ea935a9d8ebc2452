//! Admission: which statements are too quick to be worth a lookup, by their fingerprints: quicker than
//! `min_execution_time`, or than ten times what looking them up takes. And which are too quick to be worth capturing,
//! by their keys.
//!
//! Two fixed tables of this backend; no other process sees them. A statement that is forgotten is only looked up, or
//! captured, once more. What sessions find out about statements that are new to them is noted in shared memory, so that
//! the first statement of the next session need not be looked up.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use arrow_cache_core::CacheKey;

use super::fingerprint::Fingerprint;
use super::price;
use crate::pg::backend;
use crate::pg::backend_local::Local;
use crate::query::environment;
use crate::{session, settings, shmem};

/// What is remembered of statements by a hash: each takes the place of another with the same remainder.
type Memory<T, const PLACES: usize> = Local<RefCell<[T; PLACES]>>;

/// Executions in a row that were too quick to be stored, after which the next ones are not looked up.
const QUICK_RUNS: u8 = 16;
/// This skipped execution is looked up anyway, since another session may have stored an answer.
const FIRST_LOOK_UP: u16 = 64;
/// After a look-up in vain, twice as many executions are skipped before the next one, up to this number.
const MOST_SKIPPED: u16 = 256;
/// A run is too quick to be worth a lookup that takes more than one part in so many of its time.
const CHEAP: u32 = 10;
/// The part of the time of a slow run that is spent on looking up those after it. Most slow runs of statements that are quick otherwise had to wait for
/// something, and an answer would not have saved what they took.
const SPENT: u32 = 8;
/// One lookup in so many is measured, and the first one.
const MEASURED_EVERY: u8 = 8;
/// A lookup that took longer than those before counts for one in so many: most of these were disturbed.
const WEIGHT_OF_LONGER: u32 = 8;
/// Statements of a session that may have to read from the catalogs what later ones find in its memory.
const FIRST_STATEMENTS: u64 = 64;

/// How quick the executions of statements with one fingerprint are.
#[derive(Clone, Copy)]
struct Speed {
    fingerprint: Fingerprint,
    /// The setting `min_execution_time` that the executions were compared with, as bits.
    threshold: u64,
    /// How many of the last executions in a row were too quick.
    quick_runs: u8,
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

const UNKNOWN: Speed = Speed {
    fingerprint: Fingerprint(0),
    threshold: 0,
    quick_runs: 0,
    skipped: 0,
    look_up_at: FIRST_LOOK_UP,
    price: Duration::ZERO,
    lookups: 0,
    credit: Duration::ZERO,
};

impl Speed {
    /// Returns true if it is that of statements with this fingerprint, compared with this setting.
    #[inline]
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

/// Speeds by fingerprint.
static SPEEDS: Memory<Speed, 256> = Local::new(RefCell::new([UNKNOWN; 256]));
/// The lower halves of the keys whose last execution was too quick, by the upper half.
static QUICK_KEYS: Memory<u64, 1024> = Local::new(RefCell::new([0; 1024]));

/// When the run of the statement that is timed has begun; 0 for all but the first statements of the session.
static BEGAN: Local<Cell<i64>> = Local::new(Cell::new(0));

/// The place of a hash in a memory.
fn place<T, const PLACES: usize>(memory: &mut [T; PLACES], hash: u64) -> &mut T {
    &mut memory[hash as usize % PLACES]
}

/// The setting that executions are compared with, as bits.
fn threshold() -> u64 {
    settings::min_execution_time_ms().to_bits()
}

/// Is the next execution of a statement with this fingerprint too quick to be worth a lookup, by all that is known? Counts the
/// executions that it says yes to. Else the lookup begins, and may be measured.
pub fn skips_lookup(fingerprint: Fingerprint) -> bool {
    if settings::min_execution_time_ms() == 0.0 || settings::debug_serve_fills() {
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
    SPEEDS.with_borrow_mut(|speeds| {
        let speed = place(speeds, fingerprint.0);
        let is_due = speed.lookups == 0 || speed.fingerprint != fingerprint;
        speed.lookups = (speed.lookups + 1) % MEASURED_EVERY;
        is_due
    })
}

/// Does what `skips_lookup` promises, for executions that may be skipped.
fn decide(fingerprint: Fingerprint) -> bool {
    SPEEDS.with_borrow_mut(|speeds| {
        let speed = place(speeds, fingerprint.0);
        learn(speed, fingerprint);
        if !is_quick(speed, fingerprint) {
            return false;
        }
        speed.skipped += 1;
        let is_skipped = speed.skipped < speed.look_up_at;
        if !is_skipped {
            (speed.skipped, speed.look_up_at) = (0, (speed.look_up_at * 2).min(MOST_SKIPPED));
        }
        is_skipped
    })
}

/// Learns what other sessions have noted of statements with this fingerprint, if this session knows nothing and they
/// have found them too quick.
#[inline]
fn learn(speed: &mut Speed, fingerprint: Fingerprint) {
    if speed.fingerprint != fingerprint && is_quick_for_others(fingerprint) {
        *speed = Speed { fingerprint, threshold: threshold(), quick_runs: QUICK_RUNS, ..UNKNOWN };
    }
}

/// Returns true if all sessions together have noted enough runs, of which the longest was too quick.
#[cold]
#[inline(never)]
fn is_quick_for_others(fingerprint: Fingerprint) -> bool {
    shmem::store_without_area().is_some_and(|store| {
        let (runs, micros) = store.longest_run_time(environment::of_text(store.seed(), fingerprint.0, threshold()));
        runs >= u32::from(QUICK_RUNS) && (micros as f64) < settings::min_execution_time_ms() * 1000.0
    })
}

/// Tells other sessions how long a run has taken.
#[cold]
#[inline(never)]
fn tell(fingerprint: Fingerprint, taken: Duration) {
    if let Some(store) = shmem::store_without_area() {
        let micros = u64::try_from(taken.as_micros()).unwrap_or(u64::MAX);
        store.note_run_time(environment::of_text(store.seed(), fingerprint.0, threshold()), micros);
    }
}

/// Were the last executions of statements with this fingerprint too quick, by all that is remembered there?
#[inline]
fn is_quick(speed: &Speed, fingerprint: Fingerprint) -> bool {
    speed.is_of(fingerprint, threshold()) && speed.credit.is_zero() && speed.quick_runs >= QUICK_RUNS
}

/// Will `skips_lookup` say yes? Counts nothing.
#[inline]
pub fn will_skip_lookup(fingerprint: Fingerprint) -> bool {
    settings::min_execution_time_ms() != 0.0
        && !settings::debug_serve_fills()
        && SPEEDS.with_borrow_mut(|speeds| {
            let speed = place(speeds, fingerprint.0);
            learn(speed, fingerprint);
            is_quick(speed, fingerprint) && speed.skipped + 1 < speed.look_up_at
        })
}

/// Returns true if statements with this fingerprint are too quick for other sessions, while this one has looked none
/// up.
pub fn are_quick_for_others(fingerprint: Fingerprint) -> bool {
    will_skip_lookup(fingerprint)
        && SPEEDS.with_borrow_mut(|speeds| place(speeds, fingerprint.0).look_up_at == FIRST_LOOK_UP)
}

/// The execution that was to be looked up could not be: the next one is.
pub fn look_up_next(fingerprint: Fingerprint) {
    SPEEDS.with_borrow_mut(|speeds| {
        let speed = place(speeds, fingerprint.0);
        if speed.fingerprint == fingerprint {
            speed.skipped = speed.look_up_at - 1;
        }
    });
}

/// Counts an execution that `skips_lookup` would have said yes to, by `will_skip_lookup`.
#[inline]
pub fn count_skipped(fingerprint: Fingerprint) {
    SPEEDS.with_borrow_mut(|speeds| place(speeds, fingerprint.0).skipped += 1);
}

/// Notes how long an execution of a statement with this fingerprint has taken, and whether that was too quick to be
/// stored. Other sessions are told of it unless this one has found enough quick runs: then it would tell nothing new,
/// and write to shared memory all the time.
fn note_speed(fingerprint: Fingerprint, taken: Duration, too_quick: bool) {
    note(fingerprint, |speed| {
        if !too_quick || speed.quick_runs < QUICK_RUNS {
            tell(fingerprint, taken);
        }
        if too_quick || taken < speed.price * CHEAP {
            speed.note_in_vain();
        } else {
            speed.note_worth(taken / SPENT);
        }
    });
}

/// Notes how long an execution has taken that was not read to its end. A quick one needed no lookup; of a slow one
/// nothing is known.
pub fn note_part(fingerprint: Fingerprint, taken: Duration) {
    let too_quick = taken < settings::min_execution_time();
    note(fingerprint, |speed| {
        if too_quick || taken < speed.price * CHEAP {
            speed.note_in_vain();
        }
    });
}

/// Notes that a statement with this fingerprint was answered, which has saved so many microseconds.
pub fn note_hit(fingerprint: Fingerprint, saved_micros: u64) {
    let saved = Duration::from_micros(saved_micros);
    note(fingerprint, |speed| {
        if saved > speed.price {
            speed.note_worth(saved - speed.price);
        } else {
            speed.note_in_vain();
        }
    });
}

/// A lookup is over: notes what it took, if it was measured.
#[inline]
pub fn note_looked_up() {
    if let Some((fingerprint, taken)) = price::take() {
        note(fingerprint, |speed| {
            let more = taken.saturating_sub(speed.price);
            let weight = if speed.price.is_zero() { 1 } else { WEIGHT_OF_LONGER };
            speed.price = speed.price.min(taken) + more / weight;
        });
    }
}

fn note(fingerprint: Fingerprint, change: impl FnOnce(&mut Speed)) {
    let threshold = threshold();
    SPEEDS.with_borrow_mut(|speeds| {
        let speed = place(speeds, fingerprint.0);
        if !speed.is_of(fingerprint, threshold) {
            *speed = Speed { fingerprint, threshold, ..UNKNOWN };
        }
        change(speed);
    });
}

/// Is the statement with this key known to be too quick to be worth capturing?
pub fn skips_capture(key: CacheKey) -> bool {
    if settings::debug_serve_fills() || settings::min_execution_time().is_zero() {
        return false;
    }
    QUICK_KEYS.with_borrow_mut(|keys| *place(keys, key.0.hi) == key.0.lo)
}

/// Notes how long an execution of the statement with this key and this fingerprint has taken, and whether that was too quick to be stored.
pub fn note_execution(key: CacheKey, fingerprint: Fingerprint, taken: Duration, too_quick: bool) {
    QUICK_KEYS.with_borrow_mut(|keys| {
        let known = place(keys, key.0.hi);
        if too_quick {
            *known = key.0.lo;
        } else if *known == key.0.lo {
            *known = 0;
        }
    });
    note_speed(fingerprint, taken, too_quick);
}

/// Has the run of the statement that starts now timed, for others with its fingerprint. Nothing else is done with it.
pub fn time_run(fingerprint: Option<Fingerprint>) {
    session::time_run(fingerprint.map(|fingerprint| fingerprint.0));
}

/// The statement that starts now is not timed after all.
pub fn forget_timed() {
    session::take_timed();
}

/// A run begins: that of the statement that `time_run` was told of, if it is timed. Only the first statements of a
/// session take long to plan, whatever they ask, so only for these it is worth reading the clock.
#[inline]
pub fn begin_timed() {
    if session::statement_number() <= FIRST_STATEMENTS && session::is_timed() {
        BEGAN.set(backend::now());
    }
}

/// Notes how the statement went that `time_run` was told of, if its run has just ended. The time of all but the first
/// statements of a session is taken from the message that asked for it, so it is rather too long than too short: then
/// the next one like it is looked up.
#[inline]
pub fn note_timed() {
    if let Some(fingerprint) = session::take_timed() {
        note_time(fingerprint);
    }
}

#[inline(never)]
fn note_time(fingerprint: u64) {
    let began = match BEGAN.take() {
        0 => backend::statement_start(),
        began => began,
    };
    let micros = u64::try_from(backend::now() - began).unwrap_or(0);
    let too_quick = (micros as f64) < settings::min_execution_time_ms() * 1000.0;
    note_speed(Fingerprint(fingerprint), Duration::from_micros(micros), too_quick);
}

/// Notes the fingerprint of the statement that is planned now and executed next.
pub fn note_planned(fingerprint: Option<Fingerprint>) {
    session::note_fingerprint(fingerprint.map(|fingerprint| fingerprint.0));
}

/// The fingerprint of the statement that starts now, if it was planned for this execution.
pub fn take_planned() -> Option<Fingerprint> {
    session::take_fingerprint().map(Fingerprint)
}
