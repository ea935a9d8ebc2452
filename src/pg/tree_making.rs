//! Making trees of nodes: new nodes, copies, and copies in which some parts are replaced. All of it lies in the current
//! memory context; nothing is kept. What the server raises (there is no memory) unwinds as a panic.

use std::ffi::{CStr, c_void};

use pgrx::pg_sys;

use super::compat::tree::walkers;
use super::error_passing::edge;
use super::memory_context::room_of;
use super::server;
use super::tree::{Tagged, Tree};

/// A new node, all of whose fields are zero.
pub fn new_node<T: Tagged>() -> *mut T {
    // SAFETY: zeroed memory of the right size; every node begins with its tag.
    unsafe {
        let node: *mut T = kept!(pg_sys::palloc0(std::mem::size_of::<T>())).cast();
        node.cast::<pg_sys::Node>().write(pg_sys::Node { type_: T::TAG });
        node
    }
}

/// A copy of a node and of all below it; null of null.
///
/// # Safety
/// Null, or a valid node.
pub unsafe fn copy<T>(node: *const T) -> *mut T {
    // SAFETY: the caller's promise.
    unsafe { kept!(pg_sys::copyObjectImpl(node.cast())).cast() }
}

/// Returns true if two nodes are equal but for where they stood in the statement.
///
/// # Safety
/// Null, or valid nodes.
pub unsafe fn are_equal<T>(one: *const T, other: *const T) -> bool {
    // SAFETY: the caller's promise.
    unsafe { kept!(pg_sys::equal(one.cast(), other.cast())) }
}

/// A list of nodes.
pub fn list_of<T>(nodes: impl IntoIterator<Item = *mut T>) -> *mut pg_sys::List {
    // SAFETY: NIL, or a list of nodes that is made here.
    nodes.into_iter().fold(std::ptr::null_mut(), |list, node| unsafe { kept!(pg_sys::lappend(list, node.cast())) })
}

/// A list of so many nodes, at most as many as a row has columns, made in one step. `None` when there is no memory.
pub fn list_of_all<T>(nodes: impl ExactSizeIterator<Item = *mut T>) -> Option<*mut pg_sys::List> {
    let count = nodes.len();
    if count == 0 {
        return Some(std::ptr::null_mut());
    }
    // SAFETY: a list with its cells behind it, as the server allocates them (list.c, `new_list`); a live context.
    unsafe {
        let bytes = size_of::<pg_sys::List>() + count * size_of::<pg_sys::ListCell>();
        let list: *mut pg_sys::List = room_of(pg_sys::CurrentMemoryContext, bytes)?.cast();
        let cells = list.add(1).cast::<pg_sys::ListCell>();
        list.write(pg_sys::List {
            type_: pg_sys::NodeTag::T_List,
            length: count as i32,
            max_length: count as i32,
            elements: cells,
            ..Default::default()
        });
        for (place, node) in nodes.enumerate() {
            cells.add(place).write(pg_sys::ListCell { ptr_value: node.cast() });
        }
        Some(list)
    }
}

/// A list of OIDs.
pub fn list_of_oids(oids: impl IntoIterator<Item = pg_sys::Oid>) -> *mut pg_sys::List {
    // SAFETY: NIL, or a list of OIDs that is made here.
    oids.into_iter().fold(std::ptr::null_mut(), |list, oid| unsafe { kept!(pg_sys::lappend_oid(list, oid)) })
}

/// A list of numbers.
pub fn list_of_numbers(numbers: impl IntoIterator<Item = i32>) -> *mut pg_sys::List {
    // SAFETY: NIL, or a list of integers that is made here.
    numbers.into_iter().fold(std::ptr::null_mut(), |list, number| unsafe { kept!(pg_sys::lappend_int(list, number)) })
}

/// A name for a relation, and names for its columns.
pub fn alias<'n>(name: &CStr, columns: impl IntoIterator<Item = &'n CStr>) -> *mut pg_sys::Alias {
    // SAFETY: the names end with NUL, and are copied.
    unsafe {
        let columns =
            columns.into_iter().map(|column| kept!(pg_sys::makeString(kept!(pg_sys::pstrdup(column.as_ptr())))));
        kept!(pg_sys::makeAlias(name.as_ptr(), list_of(columns)))
    }
}

/// A column of a relation, by their numbers, with the type, the modifier and the collation of an expression.
///
/// # Safety
/// A valid expression.
pub unsafe fn column_like(relation: i32, number: i16, expression: *const pg_sys::Node) -> *mut pg_sys::Var {
    // SAFETY: the caller's promise; a new node.
    unsafe {
        let (type_oid, modifier) = (server::exprType(expression), server::exprTypmod(expression));
        kept!(pg_sys::makeVar(relation as _, number, type_oid, modifier, server::exprCollation(expression), 0))
    }
}

/// A call of a function that takes and gives no collation.
///
/// # Safety
/// The arguments must be expressions that the function takes.
pub unsafe fn call(
    function: u32,
    result: pg_sys::Oid,
    arguments: impl IntoIterator<Item = *mut pg_sys::Node>,
) -> *mut pg_sys::Node {
    let none = pg_sys::InvalidOid;
    let form = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
    // SAFETY: the caller's promise.
    unsafe { kept!(pg_sys::makeFuncExpr(function.into(), result, list_of(arguments), none, none, form)).cast() }
}

/// Says what stands in the place of a node; `None` to go on with what is below it. The number counts the queries around
/// it, from the one where the walk has begun.
pub type Replace<'r> = dyn FnMut(Tree<'_, pg_sys::Node>, u32) -> Option<*mut pg_sys::Node> + 'r;

struct Walk<'r> {
    replace: &'r mut Replace<'r>,
    depth: u32,
}

/// A copy of an expression, or of a list of expressions, with some parts replaced; null of null. What is shared with
/// the old tree must not be changed.
///
/// # Safety
/// Null, or a valid node of a query.
pub unsafe fn replaced<'r>(node: *mut pg_sys::Node, replace: &'r mut Replace<'r>) -> *mut pg_sys::Node {
    let mut walk = Walk { replace, depth: 0 };
    // SAFETY: the caller's promise; the walk outlives the call.
    unsafe { change(node, (&raw mut walk).cast()) }
}

/// A copy of a query with some parts of it replaced, at depth 0.
///
/// # Safety
/// A valid query.
pub unsafe fn replaced_in_query<'r>(query: *mut pg_sys::Query, replace: &'r mut Replace<'r>) -> *mut pg_sys::Query {
    let mut walk = Walk { replace, depth: 0 };
    let context = (&raw mut walk).cast::<c_void>();
    // SAFETY: the caller's promise; the walk outlives the call.
    unsafe { kept!(walkers::query_tree_mutator(query, Some(change), context, 0)) }
}

/// Called by the server for each part of a node that it copies.
unsafe extern "C-unwind" fn change(node: *mut pg_sys::Node, context: *mut c_void) -> *mut pg_sys::Node {
    let body = || {
        let walk = context.cast::<Walk<'_>>();
        // SAFETY: the context is the walk that `replaced` or `replaced_in_query` passed, which nobody else uses
        // meanwhile; the node is null or part of the tree that these were given.
        unsafe {
            let Some(tree) = Tree::enter(node) else { return node };
            let depth = (*walk).depth;
            if let Some(other) = ((*walk).replace)(tree, depth) {
                return other;
            }
            if let Some(query) = tree.as_a::<pg_sys::Query>() {
                (*walk).depth = depth + 1;
                let copied = kept!(walkers::query_tree_mutator(query.as_ptr(), Some(change), context, 0));
                (*walk).depth = depth;
                return copied.cast();
            }
            kept!(walkers::expression_tree_mutator(node, Some(change), context))
        }
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}
