//! What asks for the time. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, DATEOID, Oid, TIMEOID, TIMESTAMPOID, TIMESTAMPTZOID, TIMETZOID};

use crate::pg::tree::{Tree, match_node};

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
}

/// Returns true if a call of this function asks for the time.
pub fn asks_for_time(function: Oid) -> bool {
    Leaf::of_function(function).is_some()
}

/// Returns true if this is a word for the time, such as CURRENT_TIMESTAMP. Others are names.
pub fn is_time(value: &pg_sys::SQLValueFunction) -> bool {
    matches!(value.type_, DATEOID | TIMETZOID | TIMEOID | TIMESTAMPTZOID | TIMESTAMPOID)
}
