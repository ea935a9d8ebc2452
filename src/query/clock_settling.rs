//! Whether the value of a clock expression settles: it has the same value at the far end of the present minute. That
//! decides which values are worth being in a key, and nothing about whether an answer is right: the key has the value
//! of the present moment, or the value is a cut. Remembers the last value that settled: state of this backend; no lock.

use std::cell::Cell;

use pgrx::pg_sys::{self, DATEOID, Datum, InvalidOid, Oid, TIMEOID, TIMESTAMPOID, TIMESTAMPTZOID, TIMETZOID};

use super::clock::{Leaf, Value, value_of};
use crate::error::is_about_a_value;
use crate::pg::backend_local::Local;
use crate::pg::computing::prepare;
use crate::pg::error_passing::{keeping, unless};
use crate::pg::server;
use crate::pg::tree::Tree;
use crate::pg::tree_making::{call, replaced};

/// The value that was found last to settle, if it is passed by value, with its type and the minute. Whether another
/// expression has the same value decides on nothing but whether it is worth being kept.
static SETTLED: Local<Cell<Option<(i64, Oid, Datum)>>> = Local::new(Cell::new(None));

/// Returns true if an expression that has this value now has it at the far end of the present minute, too.
///
/// # Safety
/// The expression must be in memory, and the value one of it.
pub unsafe fn settles(
    expression: Tree<'_, pg_sys::Node>,
    value: &Value,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> bool {
    let present = Moment::present();
    let known = (present.minute(), value.type_oid, value.datum);
    // There are few booleans.
    let is_kept = value.form.1 && !value.is_null && value.type_oid != pg_sys::BOOLOID;
    if is_kept && SETTLED.get() == Some(known) {
        return true;
    }
    // SAFETY: the caller's promise. The copy is as long as its computation; values of one expression.
    let settles = unsafe {
        let far = present.at_far_end();
        let other = replaced(expression.as_ptr(), &mut |node, _depth| Some(at(Leaf::of(node)?, far)));
        let other = unless(is_about_a_value, || keeping(|| value_of(value.type_oid, prepare(other), params)));
        other.flatten().is_some_and(|other| are_equal(value, &other))
    };
    if settles && is_kept {
        SETTLED.set(Some(known));
    }
    settles
}

/// Returns true if both are the same value, byte for byte.
///
/// # Safety
/// Two values of one type, which are still there.
unsafe fn are_equal(one: &Value, other: &Value) -> bool {
    let (length, by_value) = one.form;
    one.is_null == other.is_null
        && (one.is_null
            // SAFETY: the caller's promise; neither is NULL.
            || unsafe { direct!(server::datumIsEqual(one.datum, other.datum, by_value, length.into())) })
}

/// An expression that has the value of what asks for the time at another moment, a whole second, so that nothing is
/// rounded.
fn at(leaf: Leaf, moment: Moment) -> *mut pg_sys::Node {
    let [start, message] = moment.times.map(constant);
    let Leaf::Transaction(type_oid) = leaf else { return message };
    // The cast of a timestamp with time zone: date, timetz, time, timestamp.
    let cast = match type_oid {
        DATEOID => 1178,
        TIMETZOID => 1388,
        TIMEOID => 2019,
        TIMESTAMPOID => 2027,
        _ => return start,
    };
    // SAFETY: a function that takes such a value.
    unsafe { call(cast, type_oid, [start]) }
}

fn constant(time: pg_sys::TimestampTz) -> *mut pg_sys::Node {
    // SAFETY: a new node, for a value of this type.
    unsafe { kept!(pg_sys::makeConst(TIMESTAMPTZOID, -1, InvalidOid, 8, Datum::from(time), false, true)).cast() }
}

/// In microseconds.
const MINUTE: i64 = 60_000_000;

/// When an expression is computed, by the clock, in microseconds. It is asked about only to find out whether a value
/// moves; no value of another moment than the present gets into a key.
#[derive(Clone, Copy)]
struct Moment {
    /// The start of the transaction, and the arrival of the message.
    times: [pg_sys::TimestampTz; 2],
}

impl Moment {
    /// Now, as the statement sees it.
    fn present() -> Self {
        Self { times: [server::GetCurrentTransactionStartTimestamp(), server::GetCurrentStatementStartTimestamp()] }
    }

    /// The number of the minute.
    fn minute(self) -> i64 {
        self.times[0].div_euclid(MINUTE)
    }

    /// The beginning of the first or of the last second of the minute around it, whichever is further away. What rounds
    /// either to seconds gives a time in the same minute.
    fn at_far_end(self) -> Self {
        const LAST_SECOND: i64 = MINUTE - 1_000_000;
        let far_end = |time: i64| {
            let past = time.rem_euclid(MINUTE);
            time - past + if past < MINUTE / 2 { LAST_SECOND } else { 0 }
        };
        Self { times: self.times.map(far_end) }
    }
}
