//! The functions that queries call, as what a kept plan rests on. The server asks for the right to execute them when it
//! starts a plan. A combined query calls others than the client's, so its plan must go when any of these rights
//! changes. The server itself notes no built-in function in its plans. Reads catalogs; keeps nothing.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag, Oid, SysCacheIdentifier::PROCOID};

use crate::pg::compat::tree::walkers;
use crate::pg::error_passing::edge;
use crate::pg::tree::Tree;
use crate::pg::tree_making::new_node;

/// The functions that queries call: a list of OIDs.
///
/// # Safety
/// The queries must be valid ones, which nobody has planned.
pub unsafe fn of(queries: [*mut pg_sys::Query; 3]) -> *mut pg_sys::List {
    let mut functions: *mut pg_sys::List = std::ptr::null_mut();
    for query in queries {
        // SAFETY: the caller's promise; the list is lent to the walk alone.
        unsafe { visit(query.cast(), (&raw mut functions).cast()) };
    }
    functions
}

/// The item of a plan that rests on a function.
pub fn item_of(function: Oid) -> *mut pg_sys::PlanInvalItem {
    let item = new_node::<pg_sys::PlanInvalItem>();
    let none = pg_sys::Datum::from(0);
    // SAFETY: a new node; the key of the cache is the OID alone.
    unsafe {
        (*item).cacheId = PROCOID as i32;
        (*item).hashValue = kept!(pg_sys::GetSysCacheHashValue(PROCOID as i32, function.into(), none, none, none));
    }
    item
}

/// Notes what a node calls, and goes on below it.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, functions: *mut c_void) -> bool {
    let body = || {
        // SAFETY: the node is null or part of the query that is walked; the context is the list that `of` has lent.
        unsafe {
            let Some(tree) = Tree::enter(node) else { return false };
            if tree.tag() == NodeTag::T_Query {
                return kept!(walkers::query_tree_walker(node.cast(), Some(visit), functions, 0));
            }
            kept!(pg_sys::check_functions_in_node(node, Some(note), functions));
            kept!(walkers::expression_tree_walker(node, Some(visit), functions))
        }
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

unsafe extern "C-unwind" fn note(function: Oid, functions: *mut c_void) -> bool {
    let body = || {
        let functions = functions.cast::<*mut pg_sys::List>();
        // SAFETY: as in `visit`.
        unsafe { *functions = kept!(pg_sys::list_append_unique_oid(*functions, function)) };
        false
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}
