//! Which aggregates can be computed from the parts' aggregates, and how. A closed list: the result has the value, the
//! type and the look (scale) of the server's own.
//!
//! | aggregate | in the parts | combined |
//! |---|---|---|
//! | count | count | sum of the counts, which is 0 over no part |
//! | sum(smallint), sum(integer) | the same, bigint | sum of them, as bigint; out of range as in a parallel plan of the server |
//! | sum(bigint), sum(numeric) | the same, numeric | sum of them: its scale is the largest of its arguments', and so is theirs |
//! | avg of these | sum and count(x) | numeric division of their sums, as the server's final functions do it; NULL where the sum is NULL |
//! | min, max, of types where equal means identical | the same | the same |
//! | bool_and, bool_or, every; bit_and, bit_or, bit_xor of integers | the same | the same |
//!
//! NaN and infinities of numeric pass through sums as they do through one sum. Sums and averages of floats are not
//! here: the order of their additions shows.

use pgrx::pg_sys;

use super::columns::{Columns, PartColumn, has_one_form};
use super::obstacle::Obstacle;
use super::site::Site;
use crate::pg::tree::{Tree, child, children};
use crate::pg::tree_making::{call, copy, list_of, list_of_oids, new_node};
use crate::query::function_table::has;
use crate::query::function_table::properties::{EXTREME, SELF_COMBINING};

/// count(*), count("any")
const COUNT_ALL: u32 = 2803;
const COUNT: u32 = 2147;
/// sum(bigint), sum(integer), sum(smallint), sum(numeric)
const SUM_INT8: u32 = 2107;
const SUM_INT4: u32 = 2108;
const SUM_INT2: u32 = 2109;
const SUM_NUMERIC: u32 = 2114;
/// avg(bigint), avg(integer), avg(smallint), avg(numeric)
const AVG_INT8: u32 = 2100;
const AVG_INT4: u32 = 2101;
const AVG_INT2: u32 = 2102;
const AVG_NUMERIC: u32 = 2103;

/// The kind of aggregates that are not ordered-set (catalog/pg_aggregate.h).
const AGGKIND_NORMAL: u8 = b'n';

/// int8(numeric), numeric_div(numeric, numeric)
const NUMERIC_TO_INT8: u32 = 1779;
const NUMERIC_DIVISION: u32 = 1727;

/// What stands in the combined query in the place of an aggregate of the site's own level. Adds the columns of the
/// parts that it needs.
///
/// # Errors
/// Why the aggregate is not made of parts.
///
/// # Safety
/// The aggregate must be valid, and changed by nobody as long as the columns are used.
pub(super) unsafe fn combination(
    aggregate: Tree<'_, pg_sys::Aggref>,
    site: &Site<'_>,
    columns: &mut Columns,
) -> Result<*mut pg_sys::Node, Obstacle> {
    check_call(aggregate)?;
    let function = aggregate.aggfnoid;
    let numeric = pg_sys::NUMERICOID;
    // SAFETY: the aggregates are valid, as are the nodes that are made of them here; each call takes the types that it
    // is given.
    unsafe {
        let mut part = |part: *mut pg_sys::Aggref| columns.add(part.cast());
        let same = aggregate.as_ptr();
        Ok(match function.to_u32() {
            COUNT_ALL | COUNT => total_count(part(same), site.is_grand()),
            SUM_INT2 | SUM_INT4 => as_bigint(over(part(same), SUM_INT8, numeric)),
            SUM_INT8 | SUM_NUMERIC => over(part(same), SUM_NUMERIC, numeric),
            AVG_INT2 => average(part(with(same, SUM_INT2)), part(with(same, COUNT)), SUM_INT8),
            AVG_INT4 => average(part(with(same, SUM_INT4)), part(with(same, COUNT)), SUM_INT8),
            AVG_INT8 => average(part(with(same, SUM_INT8)), part(with(same, COUNT)), SUM_NUMERIC),
            AVG_NUMERIC => average(part(with(same, SUM_NUMERIC)), part(with(same, COUNT)), SUM_NUMERIC),
            _ if has(function, SELF_COMBINING) => over_same(part(same), aggregate),
            _ if has(function, EXTREME) => {
                check_extreme(aggregate, site)?;
                over_same(part(same), aggregate)
            }
            _ => return Err(Obstacle::Aggregate(function)),
        })
    }
}

/// Checks what stands in the call beside the function.
fn check_call(aggregate: Tree<'_, pg_sys::Aggref>) -> Result<(), Obstacle> {
    let has_more =
        [aggregate.aggorder, aggregate.aggdistinct, aggregate.aggdirectargs].into_iter().any(|list| !list.is_null());
    if has_more || aggregate.aggvariadic || aggregate.aggkind as u8 != AGGKIND_NORMAL {
        return Err(Obstacle::CallOfAggregate);
    }
    // SAFETY: an expression of a valid tree.
    if unsafe { kept!(pg_sys::contain_subplans(aggregate.as_node().as_ptr())) } {
        return Err(Obstacle::SubLink);
    }
    Ok(())
}

/// Checks that of equal values it does not matter which one is shown.
fn check_extreme(aggregate: Tree<'_, pg_sys::Aggref>, site: &Site<'_>) -> Result<(), Obstacle> {
    let is_bytewise = crate::query::bytewise::equality_is_bytewise(aggregate.aggtype, aggregate.inputcollid);
    let argument = children!(aggregate.args as TargetEntry).next().and_then(|argument| child!(argument.expr));
    if is_bytewise || argument.is_some_and(|argument| has_one_form(argument.as_node(), site)) {
        return Ok(());
    }
    Err(Obstacle::Extreme(aggregate.aggtype))
}

/// Another aggregate of the same arguments: a sum, or count("any").
///
/// # Safety
/// A valid call of an average.
unsafe fn with(aggregate: *mut pg_sys::Aggref, function: u32) -> *mut pg_sys::Aggref {
    // SAFETY: a copy, changed before anybody else knows of it.
    unsafe {
        let other = copy(aggregate);
        (*other).aggfnoid = function.into();
        (*other).aggtype = match function {
            SUM_INT8 | SUM_NUMERIC => pg_sys::NUMERICOID,
            _ => pg_sys::INT8OID,
        };
        other
    }
}

/// An aggregate over a column of the parts.
///
/// # Safety
/// The aggregate must take what the column gives.
unsafe fn over(column: *mut pg_sys::Node, function: u32, result: pg_sys::Oid) -> *mut pg_sys::Node {
    let aggregate = new_node::<pg_sys::Aggref>();
    // SAFETY: a new node, filled as the parser does it; what the planner fills is left to it.
    unsafe {
        let argument = kept!(pg_sys::makeTargetEntry(column.cast(), 1, std::ptr::null_mut(), false));
        (*aggregate).aggfnoid = function.into();
        (*aggregate).aggtype = result;
        (*aggregate).aggargtypes = list_of_oids([PartColumn::of(column).type_oid]);
        (*aggregate).args = list_of([argument]);
        (*aggregate).aggkind = AGGKIND_NORMAL as _;
        (*aggregate).aggsplit = pg_sys::AggSplit::AGGSPLIT_SIMPLE;
        (*aggregate).aggno = -1;
        (*aggregate).aggtransno = -1;
        (*aggregate).location = -1;
    }
    aggregate.cast()
}

/// The same aggregate over a column of the parts.
///
/// # Safety
/// The aggregate must give what it takes; the column is of this type.
unsafe fn over_same(column: *mut pg_sys::Node, aggregate: Tree<'_, pg_sys::Aggref>) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise; a new node.
    unsafe {
        let combined = over(column, aggregate.aggfnoid.to_u32(), aggregate.aggtype);
        (*combined.cast::<pg_sys::Aggref>()).aggcollid = aggregate.aggcollid;
        (*combined.cast::<pg_sys::Aggref>()).inputcollid = aggregate.inputcollid;
        combined
    }
}

/// A numeric as a bigint.
///
/// # Safety
/// An expression of type numeric.
unsafe fn as_bigint(number: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise.
    unsafe { call(NUMERIC_TO_INT8, pg_sys::INT8OID, [number]) }
}

/// The sum of the parts' counts. Over no part it is 0.
///
/// # Safety
/// A column of type bigint.
unsafe fn total_count(count: *mut pg_sys::Node, is_grand: bool) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise; a new node.
    unsafe {
        let total = as_bigint(over(count, SUM_INT8, pg_sys::NUMERICOID));
        if !is_grand {
            return total;
        }
        let int8 = pg_sys::INT8OID;
        let zero = kept!(pg_sys::makeConst(int8, -1, pg_sys::InvalidOid, 8, pg_sys::Datum::from(0_i64), false, true));
        let choice = new_node::<pg_sys::CoalesceExpr>();
        (*choice).coalescetype = int8;
        (*choice).args = list_of([total, zero.cast()]);
        (*choice).location = -1;
        choice.cast()
    }
}

/// The average of all, from the sums and counts of the parts. `sum` is the function that adds the sums. Division by
/// numeric is strict: where there is no sum, no count is looked at.
///
/// # Safety
/// A column that `sum` takes, and one of type bigint.
unsafe fn average(sums: *mut pg_sys::Node, counts: *mut pg_sys::Node, sum: u32) -> *mut pg_sys::Node {
    let numeric = pg_sys::NUMERICOID;
    // SAFETY: the caller's promise.
    unsafe { call(NUMERIC_DIVISION, numeric, [over(sums, sum, numeric), over(counts, SUM_INT8, numeric)]) }
}
