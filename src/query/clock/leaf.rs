//! What asks for the time, and what tells the same of another moment. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, DATEOID, Datum, InvalidOid, Oid, TIMEOID, TIMESTAMPOID, TIMESTAMPTZOID, TIMETZOID};

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
    /// The arrival of the client's message.
    Statement,
    /// The start of the transaction, as a value of this type: CURRENT_DATE, LOCALTIME and the like, and now().
    Transaction(Oid),
}

impl Leaf {
    /// What a node asks for, if it asks for the time.
    pub fn of(node: Tree<'_, pg_sys::Node>) -> Option<Self> {
        match_node! { node;
            FuncExpr(call) => Self::of_function(call.funcid),
            SQLValueFunction(value) => is_time(&value).then_some(Self::Transaction(value.type_)),
            _ => None,
        }
    }

    fn of_function(function: Oid) -> Option<Self> {
        match function.to_u32() {
            NOW | TRANSACTION_TIMESTAMP => Some(Self::Transaction(TIMESTAMPTZOID)),
            STATEMENT_TIMESTAMP => Some(Self::Statement),
            _ => None,
        }
    }

    /// An expression for what the leaf gives at another moment: at a whole second, so that nothing is rounded.
    pub fn at(self, moment: Moment) -> *mut pg_sys::Node {
        let [start, message] = moment.times.map(constant);
        let Self::Transaction(type_oid) = self else { return message };
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
pub fn asks_for_time(function: Oid) -> bool {
    Leaf::of_function(function).is_some()
}

/// Returns true if this is a word for the time, such as CURRENT_TIMESTAMP. Others are names.
pub fn is_time(value: &pg_sys::SQLValueFunction) -> bool {
    matches!(value.type_, DATEOID | TIMETZOID | TIMEOID | TIMESTAMPTZOID | TIMESTAMPOID)
}
