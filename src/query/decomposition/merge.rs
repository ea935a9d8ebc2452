//! The query that makes one part of several: it groups their rows by the keys, and combines the states of aggregates.

use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag};

use super::columns::PartColumn;
use super::combine::tuplestore;
use crate::pg::lists::nodes;
use crate::pg::tree_making::{copy, list_of, new_node};

/// The query that merges parts, whose rows lie in the named tuplestore. `part` is the query of one of them.
///
/// # Safety
/// The query of a part.
pub(super) unsafe fn merging(part: *const pg_sys::Query, name: &CStr) -> *mut pg_sys::Query {
    let (query, reference) = (new_node::<pg_sys::Query>(), new_node::<pg_sys::RangeTblRef>());
    // SAFETY: the caller's promise; new nodes, and copies.
    unsafe {
        let expression = |target: *mut pg_sys::TargetEntry| (*target).expr.cast::<pg_sys::Node>();
        let given = nodes::<pg_sys::TargetEntry>((*part).targetList);
        let kinds: Vec<PartColumn> = given.map(|target| PartColumn::of(expression(target))).collect();
        let targets =
            nodes::<pg_sys::TargetEntry>((*part).targetList).zip(&kinds).zip(1..).map(|((target, kind), number)| {
                let PartColumn { type_oid, modifier, collation } = *kind;
                let column = kept!(pg_sys::makeVar(1, number, type_oid, modifier, collation, 0));
                let target = copy(target);
                if (*expression(target)).type_ == NodeTag::T_Aggref {
                    let aggregate: *mut pg_sys::Aggref = (*target).expr.cast();
                    let argument = kept!(pg_sys::makeTargetEntry(column.cast(), 1, std::ptr::null_mut(), false));
                    (*aggregate).args = list_of([argument]);
                    (*aggregate).aggfilter = std::ptr::null_mut();
                } else {
                    (*target).expr = column.cast();
                }
                target
            });
        (*query).commandType = pg_sys::CmdType::CMD_SELECT;
        (*query).canSetTag = true;
        (*query).stmt_location = -1;
        (*query).hasAggs = (*part).hasAggs;
        (*query).targetList = list_of(targets);
        (*query).groupClause = copy((*part).groupClause);
        (*query).rtable = list_of([tuplestore(&kinds, name)]);
        (*reference).rtindex = 1;
        (*query).jointree = kept!(pg_sys::makeFromExpr(list_of([reference]), std::ptr::null_mut()));
    }
    query
}
