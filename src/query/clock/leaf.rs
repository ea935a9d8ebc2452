//! What asks for the time, and what tells the same of another moment. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, Datum};

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

    /// A node that tells the same of another moment, in the current memory context. `None` if the leaf rounds the time,
    /// or tells the date.
    pub fn at(self, moment: Moment) -> Option<*mut pg_sys::Node> {
        let constant = |time: pg_sys::TimestampTz| {
            let (of_type, none) = (pg_sys::TIMESTAMPTZOID, pg_sys::InvalidOid);
            // SAFETY: a new node, for a value of this type.
            unsafe {
                kept!(pg_sys::makeConst(of_type, -1, none, 8, Datum::from(moment.around(time)), false, true)).cast()
            }
        };
        let start = constant(server::GetCurrentTransactionStartTimestamp());
        // SAFETY: functions that take a part of a timestamp with time zone: timetz, time, timestamp.
        unsafe {
            match self {
                Self::Transaction | Self::Timestamp(-1) => Some(start),
                Self::Statement => Some(constant(server::GetCurrentStatementStartTimestamp())),
                Self::Time(-1) => Some(call(1388, pg_sys::TIMETZOID, [start])),
                Self::LocalTime(-1) => Some(call(2019, pg_sys::TIMEOID, [start])),
                Self::LocalTimestamp(-1) => Some(call(2027, pg_sys::TIMESTAMPOID, [start])),
                _ => None,
            }
        }
    }
}

/// The first or last microsecond of the minute around the present. They are asked about only to find out whether a
/// value moves; none of them gets into a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The start of the minute.
    MinuteStart,
    /// The end of the minute.
    MinuteEnd,
}

impl Moment {
    fn around(self, time: pg_sys::TimestampTz) -> pg_sys::TimestampTz {
        /// In microseconds.
        const MINUTE: i64 = 60_000_000;
        let start = time - time.rem_euclid(MINUTE);
        if self == Self::MinuteStart { start } else { start + MINUTE - 1 }
    }
}

/// Returns true if a text may ask for the time by a word, if it becomes a value of this type. One that becomes a date
/// asks for the day (`day`).
pub fn reads_time(type_oid: pg_sys::Oid) -> bool {
    matches!(type_oid, pg_sys::TIMESTAMPTZOID | pg_sys::TIMESTAMPOID | pg_sys::TIMEOID | pg_sys::TIMETZOID)
}

/// Returns true if a call of this function asks for the time.
pub fn asks_for_time(function: pg_sys::Oid) -> bool {
    Leaf::of_function(function).is_some()
}

/// Returns true if this is a word for the time, such as CURRENT_TIMESTAMP.
pub fn is_time(value: &pg_sys::SQLValueFunction) -> bool {
    Leaf::of_value(value).is_some()
}
