//! What differs between the versions in query trees, and the server's functions that take them apart.

use pgrx::pg_sys;

/// The server's functions that take expressions and trees apart, without pgrx's guard around them. None of them raises on a
/// valid tree that leaves room on the stack.
pub mod walkers {
    use std::ffi::c_void;

    use pgrx::pg_sys;

    pub use crate::pg::server::{exprCollation, exprType, exprTypmod};

    /// Called for each part of a node; true stops.
    pub type Visit = unsafe extern "C-unwind" fn(node: *mut pg_sys::Node, context: *mut c_void) -> bool;

    unsafe extern "C-unwind" {
        /// nodes/nodeFuncs.h
        #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
        pub fn expression_tree_walker(node: *mut pg_sys::Node, visit: Option<Visit>, context: *mut c_void) -> bool;
        /// nodes/nodeFuncs.h
        #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_walker_impl")]
        pub fn query_tree_walker(
            query: *mut pg_sys::Query,
            visit: Option<Visit>,
            context: *mut c_void,
            flags: i32,
        ) -> bool;
    }
}

/// # Safety
/// `set` must be null or valid.
unsafe fn for_each_word(set: *const pg_sys::Bitmapset, mut visit: impl FnMut(u64)) {
    // SAFETY: as the caller promises; the words follow the head.
    if let Some(head) = unsafe { set.as_ref() } {
        let count = head.nwords as usize;
        // SAFETY: as above.
        let words = unsafe { std::slice::from_raw_parts((&raw const head.words).cast::<pg_sys::bitmapword>(), count) };
        visit(count as u64);
        words.iter().for_each(|word| visit(*word));
    } else {
        visit(u64::MAX);
    }
}

/// Calls `visit` with all that an entry of a query's range table says about permissions. It moved to a list of the query in 16.
///
/// # Safety
/// `entry` must be valid.
pub unsafe fn for_each_permission_word(entry: &pg_sys::RangeTblEntry, mut visit: impl FnMut(u64)) {
    #[cfg(feature = "pg15")]
    {
        visit(u64::from(entry.requiredPerms));
        visit(u64::from(entry.checkAsUser.to_u32()));
        // SAFETY: as the caller promises.
        unsafe { for_each_word(entry.selectedCols, visit) };
    }
    #[cfg(not(feature = "pg15"))]
    visit(u64::from(entry.perminfoindex));
}

/// Calls `visit` with all that a query says about permissions apart from its range table.
///
/// # Safety
/// `query` must be valid.
pub unsafe fn for_each_permission_word_of_query(query: &pg_sys::Query, mut visit: impl FnMut(u64)) {
    #[cfg(feature = "pg15")]
    {
        let _ = query;
        visit(0);
    }
    #[cfg(not(feature = "pg15"))]
    // SAFETY: as the caller promises.
    unsafe {
        for_each_permission_word_of_list(query.rteperminfos, visit);
    }
}

/// Calls `visit` with all that a plan says about permissions apart from its range table, and about the relations that are
/// opened whatever is left out when it starts (18).
///
/// # Safety
/// `plan` must be valid.
pub unsafe fn for_each_permission_word_of_plan(plan: &pg_sys::PlannedStmt, mut visit: impl FnMut(u64)) {
    #[cfg(feature = "pg15")]
    {
        let _ = plan;
        visit(0);
    }
    #[cfg(not(feature = "pg15"))]
    // SAFETY: as the caller promises.
    unsafe {
        for_each_permission_word_of_list(plan.permInfos, &mut visit);
        #[cfg(feature = "pg18")]
        for_each_word(plan.unprunableRelids, &mut visit);
    }
}

/// # Safety
/// `list` must be NIL or a list of RTEPermissionInfo nodes.
#[cfg(not(feature = "pg15"))]
unsafe fn for_each_permission_word_of_list(list: *const pg_sys::List, mut visit: impl FnMut(u64)) {
    // SAFETY: as the caller promises.
    unsafe {
        let count = if list.is_null() { 0 } else { (*list).length as usize };
        visit(count as u64);
        for index in 0..count {
            let info = &*(*(*list).elements.add(index)).ptr_value.cast::<pg_sys::RTEPermissionInfo>();
            visit(u64::from(info.relid.to_u32()));
            visit(info.requiredPerms);
            visit(u64::from(info.checkAsUser.to_u32()));
            for_each_word(info.selectedCols, &mut visit);
        }
    }
}

/// Is `tag` a node that this version has and whose meaning is not judged yet, so that a query
/// with it must be bypassed? The SQL/JSON constructors and queries of 16 and later.
pub fn is_unjudged_node(tag: pg_sys::NodeTag) -> bool {
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    {
        matches!(
            tag,
            pg_sys::NodeTag::T_JsonExpr
                | pg_sys::NodeTag::T_JsonConstructorExpr
                | pg_sys::NodeTag::T_JsonIsPredicate
                | pg_sys::NodeTag::T_MergeSupportFunc
        )
    }
    #[cfg(feature = "pg15")]
    {
        let _ = tag;
        false
    }
}

/// Which comparison of rows a node stands for.
pub fn comparison_of_rows(row: &pg_sys::RowCompareExpr) -> u32 {
    #[cfg(not(feature = "pg18"))]
    {
        row.rctype
    }
    #[cfg(feature = "pg18")]
    {
        row.cmptype
    }
}
