//! Which queries may give another answer each time they are executed, with the same data and under the same snapshot.
//!
//! SQL leaves open in which order rows are met, and so whatever is chosen by that order. For caching this does no harm: each of the
//! answers is right. For comparing an answer with another (`verify_sample_rate`) it does, so such queries are not compared. Left open are:
//!
//! | form | what |
//! |---|---|
//! | LIMIT, OFFSET, FETCH | which rows, unless the order is total |
//! | DISTINCT ON | which row of each group |
//! | window functions | rank, neighbours and running sums among rows that sort alike |
//! | `ARRAY(SELECT …)` | the order of the elements |
//! | aggregates outside `ORDER_BLIND` | the result may depend on the order of the input: `array_agg`, `string_agg`, sums of floats |
//! | GROUP BY, DISTINCT, UNION, INTERSECT, EXCEPT, min, max | which one of several equal values is shown, if equal values may differ (1.0 and 1.00) |
//!
//! Each is looked for in every node of the tree, sub-queries included, even where it could not reach the answer: a comparison that is not
//! made costs nothing, a false alarm does. TABLESAMPLE and volatile functions are not cached in the first place.

use pgrx::pg_sys::{self, NodeTag};

use crate::pg::lists::{nodes, oids};

/// Does this node, by itself, leave the answer open?
///
/// # Safety
/// `node` must be a valid node of a query tree.
pub unsafe fn leaves_open(node: *mut pg_sys::Node) -> bool {
    // SAFETY: each cast follows the node's tag.
    unsafe {
        match (*node).type_ {
            NodeTag::T_Query => query_leaves_open(&*node.cast()),
            NodeTag::T_SetOperationStmt => set_operation_leaves_open(&*node.cast()),
            NodeTag::T_Aggref => aggregate_leaves_open(&*node.cast()),
            NodeTag::T_WindowFunc => true,
            NodeTag::T_SubLink => (*node.cast::<pg_sys::SubLink>()).subLinkType == pg_sys::SubLinkType::ARRAY_SUBLINK,
            _ => false,
        }
    }
}

/// # Safety
/// `query` must be valid.
unsafe fn query_leaves_open(query: &pg_sys::Query) -> bool {
    if !query.limitCount.is_null() || !query.limitOffset.is_null() || query.hasDistinctOn {
        return true;
    }
    // SAFETY: as the caller promises; each clause refers to an entry of the target list.
    let open = |clauses: *mut pg_sys::List| unsafe {
        nodes::<pg_sys::SortGroupClause>(clauses).any(|clause| {
            let target = pg_sys::get_sortgroupclause_tle(clause, query.targetList);
            !expression_is_bytewise((*target).expr.cast())
        })
    };
    open(query.groupClause) || open(query.distinctClause)
}

/// # Safety
/// `operation` must be valid.
unsafe fn set_operation_leaves_open(operation: &pg_sys::SetOperationStmt) -> bool {
    // UNION ALL compares nothing, and has no clauses.
    if operation.groupClauses.is_null() {
        return false;
    }
    // SAFETY: as the caller promises; both lists hold one OID per column.
    unsafe {
        oids(operation.colTypes)
            .zip(oids(operation.colCollations))
            .any(|(type_oid, collation)| !equality_is_bytewise(type_oid, collation))
    }
}

/// # Safety
/// `aggregate` must be valid.
unsafe fn aggregate_leaves_open(aggregate: &pg_sys::Aggref) -> bool {
    let function = aggregate.aggfnoid.to_u32();
    if COUNTS.contains(&function) {
        return false;
    }
    if EXTREMES.binary_search(&function).is_ok() {
        return !equality_is_bytewise(aggregate.aggtype, aggregate.inputcollid);
    }
    if ORDER_BLIND.binary_search(&function).is_err() {
        return true;
    }
    // Which of several equal values DISTINCT lets through shows in the scale of a sum.
    // SAFETY: as the caller promises; arguments are target entries.
    let bytewise = unsafe {
        nodes::<pg_sys::TargetEntry>(aggregate.args).all(|argument| expression_is_bytewise((*argument).expr.cast()))
    };
    !aggregate.aggdistinct.is_null() && !bytewise
}

/// # Safety
/// `expression` must be a valid expression.
unsafe fn expression_is_bytewise(expression: *const pg_sys::Node) -> bool {
    // SAFETY: as the caller promises.
    unsafe { equality_is_bytewise(pg_sys::exprType(expression), pg_sys::exprCollation(expression)) }
}

/// Are values of this type equal only if their bytes are?
///
/// Not so for numbers with a scale or a sign of zero, `char(n)`, intervals, times with a zone, jsonb, networks, and text under a collation
/// that says so; nor is it said of containers, whose elements may be any of these.
pub fn equality_is_bytewise(type_oid: pg_sys::Oid, collation: pg_sys::Oid) -> bool {
    match type_oid {
        pg_sys::BOOLOID
        | pg_sys::INT2OID
        | pg_sys::INT4OID
        | pg_sys::INT8OID
        | pg_sys::OIDOID
        | pg_sys::CHAROID
        | pg_sys::DATEOID
        | pg_sys::TIMEOID
        | pg_sys::TIMESTAMPOID
        | pg_sys::TIMESTAMPTZOID
        | pg_sys::MONEYOID
        | pg_sys::UUIDOID
        | pg_sys::BYTEAOID => true,
        // SAFETY: a catalog look-up of a collation that the query names.
        pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::NAMEOID => unsafe {
            collation != pg_sys::InvalidOid && pg_sys::get_collation_isdeterministic(collation)
        },
        // SAFETY: a catalog look-up.
        other => unsafe { pg_sys::get_typtype(other) as u8 == pg_sys::TYPTYPE_ENUM },
    }
}

/// count("any") and count(*): of equal values it does not matter which one is counted.
const COUNTS: [u32; 2] = [2147, 2803];

/// min and max over the types of `equality_is_bytewise`; of any other type they show an arbitrary one of equal values. Ascending.
const EXTREMES: &[u32] = &[
    2115, // max(bigint)
    2116, // max(integer)
    2117, // max(smallint)
    2118, // max(oid)
    2122, // max(date)
    2123, // max(time without time zone)
    2125, // max(money)
    2126, // max(timestamp without time zone)
    2127, // max(timestamp with time zone)
    2129, // max(text)
    2131, // min(bigint)
    2132, // min(integer)
    2133, // min(smallint)
    2134, // min(oid)
    2138, // min(date)
    2139, // min(time without time zone)
    2141, // min(money)
    2142, // min(timestamp without time zone)
    2143, // min(timestamp with time zone)
    2145, // min(text)
    3526, // max(anyenum)
    3527, // min(anyenum)
];

/// Aggregates that compute exactly, so that the order of their input cannot show. Ascending.
const ORDER_BLIND: &[u32] = &[
    2100, // avg(bigint)
    2101, // avg(integer)
    2102, // avg(smallint)
    2103, // avg(numeric)
    2106, // avg(interval)
    2107, // sum(bigint)
    2108, // sum(integer)
    2109, // sum(smallint)
    2112, // sum(money)
    2113, // sum(interval)
    2114, // sum(numeric)
    2148, // variance(bigint)
    2149, // variance(integer)
    2150, // variance(smallint)
    2153, // variance(numeric)
    2154, // stddev(bigint)
    2155, // stddev(integer)
    2156, // stddev(smallint)
    2159, // stddev(numeric)
    2236, // bit_and(smallint)
    2237, // bit_or(smallint)
    2238, // bit_and(integer)
    2239, // bit_or(integer)
    2240, // bit_and(bigint)
    2241, // bit_or(bigint)
    2242, // bit_and(bit)
    2243, // bit_or(bit)
    2517, // bool_and(boolean)
    2518, // bool_or(boolean)
    2519, // every(boolean)
    2641, // var_samp(bigint)
    2642, // var_samp(integer)
    2643, // var_samp(smallint)
    2646, // var_samp(numeric)
    2712, // stddev_samp(bigint)
    2713, // stddev_samp(integer)
    2714, // stddev_samp(smallint)
    2717, // stddev_samp(numeric)
    2718, // var_pop(bigint)
    2719, // var_pop(integer)
    2720, // var_pop(smallint)
    2723, // var_pop(numeric)
    2724, // stddev_pop(bigint)
    2725, // stddev_pop(integer)
    2726, // stddev_pop(smallint)
    2729, // stddev_pop(numeric)
    6164, // bit_xor(smallint)
    6165, // bit_xor(integer)
    6166, // bit_xor(bigint)
    6167, // bit_xor(bit)
];
