//! Is it all the same when a projection is computed? The server may compute the columns of all rows before it gives the first one, below a sort, or
//! each when it is read, and a cursor may read a row twice. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, SQLValueFunctionOp};

use crate::pg::tree::{Tree, match_node};
use crate::pg::tree_making::replaced;
use crate::query::eligibility::{check_expression, expression_may_fail};

/// Does a projection give the same for a row whenever it is computed within a transaction, under all settings, and never fail? So its time is the
/// start of the transaction.
///
/// # Safety
/// Target entries of a projection.
pub unsafe fn is_settled(projection: *mut pg_sys::List) -> bool {
    let projection: *mut pg_sys::Node = projection.cast();
    // SAFETY: the caller's promise; a new node in the place of each time.
    unsafe {
        if expression_may_fail(projection) {
            return false;
        }
        let timeless = replaced(projection, &mut |node, _depth| is_start_of_transaction(node).then(some_time));
        Tree::enter(timeless).is_some_and(|timeless| check_expression(Some(timeless)) == Ok(false))
    }
}

/// Is this the start of the transaction, as a `timestamptz`?
fn is_start_of_transaction(node: Tree<'_, pg_sys::Node>) -> bool {
    match_node! { node;
        FuncExpr(call) => matches!(call.funcid.to_u32(), pg_sys::F_NOW | pg_sys::F_TRANSACTION_TIMESTAMP),
        SQLValueFunction(value) => matches!(
            value.op,
            SQLValueFunctionOp::SVFOP_CURRENT_TIMESTAMP | SQLValueFunctionOp::SVFOP_CURRENT_TIMESTAMP_N
        ),
        _ => false,
    }
}

/// Any constant of that type.
fn some_time() -> *mut pg_sys::Node {
    let none = pg_sys::InvalidOid;
    // SAFETY: a new node, for a value of eight bytes.
    unsafe { pg_sys::makeConst(pg_sys::TIMESTAMPTZOID, -1, none, 8, pg_sys::Datum::from(0_i64), false, true).cast() }
}
