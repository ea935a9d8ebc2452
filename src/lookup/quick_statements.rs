//! Admission: which statements are too quick (`min_execution_time`) to be worth a lookup, by their fingerprints, and which too quick to
//! be worth capturing, by their keys.
//!
//! Two fixed tables of this backend; no other process sees them. A statement that is forgotten is only looked up, or captured, once
//! more.

use std::cell::RefCell;
use std::time::Duration;

use arrow_cache_core::CacheKey;

use super::fingerprint::Fingerprint;
use crate::pg::backend;
use crate::pg::backend_local::Local;
use crate::{session, settings};

/// What is remembered of statements by a hash: each takes the place of another with the same remainder.
type Memory<T, const PLACES: usize> = Local<RefCell<[T; PLACES]>>;

/// Executions in a row that were too quick to be stored, after which the next ones are not looked up.
const QUICK_RUNS: u8 = 16;
/// This skipped execution is looked up anyway, since another session may have stored an answer.
const FIRST_LOOK_UP: u16 = 64;
/// After a look-up in vain, twice as many executions are skipped before the next one, up to this number.
const MOST_SKIPPED: u16 = 256;
/// About what it takes to look a statement up in vain and to capture its rows, beside executing it (`bench/run.py overhead`, pgbench -S).
const VAIN_LOOKUP: Duration = Duration::from_micros(2);
/// The part of the time of a slow run that is spent on looking up those after it. Most slow runs of statements that are quick otherwise had to wait for
/// something, and an answer would not have saved what they took.
const SPENT: u32 = 8;
/// As many look-ups as come in the life of a session.
const FOR_GOOD: u32 = u32::MAX;

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
    /// How many more executions are looked up in any case, since some were not that quick: together these look-ups take a fixed part of the time that
    /// the slow ones took.
    owed: u32,
}

const UNKNOWN: Speed =
    Speed { fingerprint: Fingerprint(0), threshold: 0, quick_runs: 0, skipped: 0, look_up_at: FIRST_LOOK_UP, owed: 0 };

/// Speeds by fingerprint.
static SPEEDS: Memory<Speed, 256> = Local::new(RefCell::new([UNKNOWN; 256]));
/// The lower halves of the keys whose last execution was too quick, by the upper half.
static QUICK_KEYS: Memory<u64, 1024> = Local::new(RefCell::new([0; 1024]));

/// The place of a hash in a memory.
fn place<T, const PLACES: usize>(memory: &mut [T; PLACES], hash: u64) -> &mut T {
    &mut memory[hash as usize % PLACES]
}

/// The setting that executions are compared with, as bits.
fn threshold() -> u64 {
    settings::min_execution_time_ms().to_bits()
}

/// Is the next execution of a statement with this fingerprint too quick to be worth a lookup, by all that is known? Counts the
/// executions that it says yes to.
pub fn skips_lookup(fingerprint: Fingerprint) -> bool {
    if settings::min_execution_time_ms() == 0.0 || settings::debug_serve_fills() {
        return false;
    }
    SPEEDS.with_borrow_mut(|speeds| {
        let speed = place(speeds, fingerprint.0);
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

/// Were the last executions of statements with this fingerprint too quick, by all that is remembered there?
#[inline]
fn is_quick(speed: &Speed, fingerprint: Fingerprint) -> bool {
    speed.fingerprint == fingerprint
        && speed.owed == 0
        && speed.quick_runs >= QUICK_RUNS
        && speed.threshold == threshold()
}

/// Will `skips_lookup` say yes? Counts nothing.
#[inline]
pub fn will_skip_lookup(fingerprint: Fingerprint) -> bool {
    settings::min_execution_time_ms() != 0.0
        && !settings::debug_serve_fills()
        && SPEEDS.with_borrow_mut(|speeds| {
            let speed = place(speeds, fingerprint.0);
            is_quick(speed, fingerprint) && speed.skipped + 1 < speed.look_up_at
        })
}

/// Counts an execution that `skips_lookup` would have said yes to, by `will_skip_lookup`.
#[inline]
pub fn count_skipped(fingerprint: Fingerprint) {
    SPEEDS.with_borrow_mut(|speeds| place(speeds, fingerprint.0).skipped += 1);
}

/// Notes how long an execution of a statement with this fingerprint has taken, and whether that was too quick to be stored.
fn note_speed(fingerprint: Fingerprint, taken: impl FnOnce() -> Duration, too_quick: bool) {
    note(fingerprint, |speed| {
        if too_quick {
            speed.quick_runs = speed.quick_runs.saturating_add(1);
            speed.owed = speed.owed.saturating_sub(1);
        } else {
            let lookups = (taken() / SPENT).as_micros() / VAIN_LOOKUP.as_micros();
            (speed.quick_runs, speed.look_up_at) = (0, FIRST_LOOK_UP);
            speed.owed = speed.owed.saturating_add(u32::try_from(lookups).unwrap_or(FOR_GOOD));
        }
    });
}

/// Notes that a statement with this fingerprint was answered: from now on, all of them are looked up.
pub fn note_hit(fingerprint: Fingerprint) {
    note(fingerprint, |speed| (speed.quick_runs, speed.look_up_at, speed.owed) = (0, FIRST_LOOK_UP, FOR_GOOD));
}

fn note(fingerprint: Fingerprint, change: impl FnOnce(&mut Speed)) {
    let threshold = threshold();
    SPEEDS.with_borrow_mut(|speeds| {
        let speed = place(speeds, fingerprint.0);
        if speed.fingerprint != fingerprint || speed.threshold != threshold {
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
    note_speed(fingerprint, || taken, too_quick);
}

/// Has the run of the statement that starts now timed, for others with its fingerprint. Nothing else is done with it.
pub fn time_run(fingerprint: Option<Fingerprint>) {
    session::time_run(fingerprint.map(|fingerprint| fingerprint.0));
}

/// The statement that starts now is not timed after all.
pub fn forget_timed() {
    session::take_timed();
}

/// Notes how the statement went that `time_run` was told of, if its run has just ended. Its time is taken from the message that asked
/// for it, so it is rather too long than too short: then the next one like it is looked up.
#[inline]
pub fn note_timed() {
    if let Some(fingerprint) = session::take_timed() {
        note_time(fingerprint);
    }
}

#[inline(never)]
fn note_time(fingerprint: u64) {
    let micros = u64::try_from(backend::now() - backend::statement_start()).unwrap_or(0);
    let too_quick = (micros as f64) < settings::min_execution_time_ms() * 1000.0;
    note_speed(Fingerprint(fingerprint), || Duration::from_micros(micros), too_quick);
}

/// Notes the fingerprint of the statement that is planned now and executed next.
pub fn note_planned(fingerprint: Option<Fingerprint>) {
    session::note_fingerprint(fingerprint.map(|fingerprint| fingerprint.0));
}

/// The fingerprint of the statement that starts now, if it was planned for this execution.
pub fn take_planned() -> Option<Fingerprint> {
    session::take_fingerprint().map(Fingerprint)
}
