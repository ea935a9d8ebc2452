//! What asks for the time, and what tells the same of another moment. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, Datum, INT4OID, InvalidOid, TIMEOID, TIMESTAMPOID, TIMESTAMPTZOID, TIMETZOID};

use crate::pg::server;
use crate::pg::tree::{Tree, match_node};
use crate::pg::tree_making::call;

/// now(), transaction_timestamp() and statement_timestamp().
const NOW: u32 = 1299;
const TRANSACTION_TIMESTAMP: u32 = 2647;
const STATEMENT_TIMESTAMP: u32 = 2648;

/// What asks for the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaf {
    /// The start of the transaction.
    Transaction,
    /// The arrival of the client's message.
    Statement,
    /// CURRENT_DATE; this and all that follow are about the start of the transaction.
    Date,
    /// CURRENT_TIME, with the modifier of its type, as those that follow.
    Time(i32),
    /// CURRENT_TIMESTAMP
    Timestamp(i32),
    /// LOCALTIME
    LocalTime(i32),
    /// LOCALTIMESTAMP
    LocalTimestamp(i32),
}

impl Leaf {
    /// What a node asks for, if it asks for the time.
    pub fn of(node: Tree<'_, pg_sys::Node>) -> Option<Self> {
        match_node! { node;
            FuncExpr(call) => Self::of_function(call.funcid),
            SQLValueFunction(value) => Self::of_value(&value),
            _ => None,
        }
    }

    fn of_function(function: pg_sys::Oid) -> Option<Self> {
        match function.to_u32() {
            NOW | TRANSACTION_TIMESTAMP => Some(Self::Transaction),
            STATEMENT_TIMESTAMP => Some(Self::Statement),
            _ => None,
        }
    }

    fn of_value(value: &pg_sys::SQLValueFunction) -> Option<Self> {
        use pg_sys::SQLValueFunctionOp as Op;
        let modifier = value.typmod;
        match value.op {
            Op::SVFOP_CURRENT_DATE => Some(Self::Date),
            Op::SVFOP_CURRENT_TIME | Op::SVFOP_CURRENT_TIME_N => Some(Self::Time(modifier)),
            Op::SVFOP_CURRENT_TIMESTAMP | Op::SVFOP_CURRENT_TIMESTAMP_N => Some(Self::Timestamp(modifier)),
            Op::SVFOP_LOCALTIME | Op::SVFOP_LOCALTIME_N => Some(Self::LocalTime(modifier)),
            Op::SVFOP_LOCALTIMESTAMP | Op::SVFOP_LOCALTIMESTAMP_N => Some(Self::LocalTimestamp(modifier)),
            _ => None,
        }
    }

    /// An expression that has the same value at another moment: casts of a timestamp with time zone, and what rounds
    /// their results.
    pub fn at(self, moment: Moment) -> *mut pg_sys::Node {
        let [start, message] = moment.times.map(constant);
        // SAFETY: functions that take a timestamp with time zone: date, timetz, time, timestamp.
        unsafe {
            match self {
                Self::Transaction => start,
                Self::Statement => message,
                Self::Date => call(1178, pg_sys::DATEOID, [start]),
                Self::Time(digits) => rounded(call(1388, TIMETZOID, [start]), (1969, TIMETZOID), digits),
                Self::Timestamp(digits) => rounded(start, (1967, TIMESTAMPTZOID), digits),
                Self::LocalTime(digits) => rounded(call(2019, TIMEOID, [start]), (1968, TIMEOID), digits),
                Self::LocalTimestamp(digits) => {
                    rounded(call(2027, TIMESTAMPOID, [start]), (1961, TIMESTAMPOID), digits)
                }
            }
        }
    }
}

fn constant(time: pg_sys::TimestampTz) -> *mut pg_sys::Node {
    // SAFETY: a new node, for a value of this type.
    unsafe { kept!(pg_sys::makeConst(TIMESTAMPTZOID, -1, InvalidOid, 8, Datum::from(time), false, true)).cast() }
}

/// A time rounded to some digits of a second; to none if that is negative. The function does that, for values of the
/// type.
///
/// # Safety
/// An expression of the type.
unsafe fn rounded(time: *mut pg_sys::Node, (function, of_type): (u32, pg_sys::Oid), digits: i32) -> *mut pg_sys::Node {
    if digits < 0 {
        return time;
    }
    // SAFETY: the caller's promise; such functions take a value and an integer.
    unsafe {
        let digits = kept!(pg_sys::makeConst(INT4OID, -1, InvalidOid, 4, Datum::from(digits), false, true));
        call(function, of_type, [time, digits.cast()])
    }
}

/// In microseconds.
const MINUTE: i64 = 60_000_000;

/// When an expression is computed, by the clock, in microseconds. It is asked about only to find out whether a value
/// moves; no value of another moment than the present gets into a key.
#[derive(Clone, Copy)]
pub struct Moment {
    /// The start of the transaction, and the arrival of the message.
    times: [pg_sys::TimestampTz; 2],
}

impl Moment {
    /// Now, as the statement sees it.
    pub fn present() -> Self {
        Self { times: [server::GetCurrentTransactionStartTimestamp(), server::GetCurrentStatementStartTimestamp()] }
    }

    /// The number of the minute.
    pub fn minute(self) -> i64 {
        self.times[0].div_euclid(MINUTE)
    }

    /// The beginning of the first or of the last second of the minute around it, whichever is further away. What rounds
    /// either to seconds gives a time in the same minute.
    pub fn at_far_end(self) -> Self {
        const LAST_SECOND: i64 = MINUTE - 1_000_000;
        let far_end = |time: i64| {
            let past = time.rem_euclid(MINUTE);
            time - past + if past < MINUTE / 2 { LAST_SECOND } else { 0 }
        };
        Self { times: self.times.map(far_end) }
    }
}

/// Returns true if a call of this function asks for the time.
pub fn asks_for_time(function: pg_sys::Oid) -> bool {
    Leaf::of_function(function).is_some()
}

/// Returns true if this is a word for the time, such as CURRENT_TIMESTAMP.
pub fn is_time(value: &pg_sys::SQLValueFunction) -> bool {
    Leaf::of_value(value).is_some()
}
