//! What differs between the versions in query trees, and the server's functions that take them apart.

use pgrx::pg_sys;

#[cfg(not(feature = "pg15"))]
use crate::pg::tree::children;
use crate::pg::tree::{Tree, child};

/// The server's functions that take expressions and trees apart, without pgrx's guard around them. None of them raises
/// on a valid tree that leaves room on the stack.
pub mod walkers {
    use std::ffi::c_void;

    use pgrx::pg_sys;

    pub use crate::pg::server::{exprCollation, exprType, exprTypmod};

    /// Called for each part of a node; true stops.
    pub type Visit = unsafe extern "C-unwind" fn(node: *mut pg_sys::Node, context: *mut c_void) -> bool;

    /// Called for each part of a node that is copied; gives what stands in its place.
    pub type Change = unsafe extern "C-unwind" fn(node: *mut pg_sys::Node, context: *mut c_void) -> *mut pg_sys::Node;

    /// Called for each node of a plan that runs; true stops.
    pub type VisitState = unsafe extern "C-unwind" fn(state: *mut pg_sys::PlanState, context: *mut c_void) -> bool;

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
        /// nodes/nodeFuncs.h: the nodes below a node of a plan that runs; raises on a plan that nests too deeply.
        #[cfg_attr(not(feature = "pg15"), link_name = "planstate_tree_walker_impl")]
        pub fn planstate_tree_walker(
            state: *mut pg_sys::PlanState,
            visit: Option<VisitState>,
            context: *mut c_void,
        ) -> bool;
        /// nodes/nodeFuncs.h: a copy of a node, with what `change` gives for the parts of it; raises without memory.
        #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_mutator_impl")]
        pub fn expression_tree_mutator(
            node: *mut pg_sys::Node,
            change: Option<Change>,
            context: *mut c_void,
        ) -> *mut pg_sys::Node;
        /// nodes/nodeFuncs.h; as above, for a query.
        #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_mutator_impl")]
        pub fn query_tree_mutator(
            query: *mut pg_sys::Query,
            change: Option<Change>,
            context: *mut c_void,
            flags: i32,
        ) -> *mut pg_sys::Query;
    }
}

/// True if the server keeps what it has made of the bodies of functions in SQL beyond a statement (18). It does not
/// look again whether the names and literals of a text stand for something else by now.
pub const KEEPS_BODIES: bool = cfg!(feature = "pg18");

/// Calls `visit` with the words of a set, and with how many there are.
fn for_each_word(set: Option<Tree<'_, pg_sys::Bitmapset>>, mut visit: impl FnMut(u64)) {
    let Some(set) = set else { return visit(u64::MAX) };
    let count = set.nwords as usize;
    // SAFETY: a valid set, whose words follow the head.
    let words =
        unsafe { std::slice::from_raw_parts((&raw const (*set.as_ptr()).words).cast::<pg_sys::bitmapword>(), count) };
    visit(count as u64);
    words.iter().for_each(|word| visit(*word));
}

/// Calls `visit` with all that an entry of a query's range table says about permissions. It moved to a list of the
/// query in 16.
pub fn for_each_permission_word(entry: Tree<'_, pg_sys::RangeTblEntry>, mut visit: impl FnMut(u64)) {
    #[cfg(feature = "pg15")]
    {
        visit(u64::from(entry.requiredPerms));
        visit(u64::from(entry.checkAsUser.to_u32()));
        for_each_word(child!(entry.selectedCols), visit);
    }
    #[cfg(not(feature = "pg15"))]
    visit(u64::from(entry.perminfoindex));
}

/// Calls `visit` with all that a query says about permissions apart from its range table.
pub fn for_each_permission_word_of_query(query: Tree<'_, pg_sys::Query>, mut visit: impl FnMut(u64)) {
    #[cfg(feature = "pg15")]
    {
        let _ = query;
        visit(0);
    }
    #[cfg(not(feature = "pg15"))]
    for_each_permission_word_of_list(children!(query.rteperminfos as RTEPermissionInfo), &mut visit);
}

#[cfg(not(feature = "pg15"))]
fn for_each_permission_word_of_list<'t>(
    list: impl ExactSizeIterator<Item = Tree<'t, pg_sys::RTEPermissionInfo>>,
    visit: &mut impl FnMut(u64),
) {
    visit(list.len() as u64);
    for info in list {
        visit(u64::from(info.relid.to_u32()));
        visit(info.requiredPerms);
        visit(u64::from(info.checkAsUser.to_u32()));
        for_each_word(child!(info.selectedCols), &mut *visit);
    }
}

/// Returns true if this is a node that only versions after 15 have and that no cacheable query may hold. The
/// constructors and tests of SQL/JSON (16), its queries, and what RETURNING and MERGE have of their own (17).
pub fn is_refused_node(tag: pg_sys::NodeTag) -> bool {
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    if matches!(tag, pg_sys::NodeTag::T_JsonExpr | pg_sys::NodeTag::T_MergeSupportFunc) {
        return true;
    }
    #[cfg(not(feature = "pg15"))]
    {
        matches!(tag, pg_sys::NodeTag::T_JsonConstructorExpr | pg_sys::NodeTag::T_JsonIsPredicate)
    }
    #[cfg(feature = "pg15")]
    {
        let _ = tag;
        false
    }
}

/// Returns true if this is a node that only versions after 15 have and that stands below one of `is_refused_node`, or
/// in a query that changes data.
pub fn is_part_of_refused_node(tag: pg_sys::NodeTag) -> bool {
    #[cfg(feature = "pg18")]
    if tag == pg_sys::NodeTag::T_ReturningExpr {
        return true;
    }
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    if tag == pg_sys::NodeTag::T_JsonBehavior {
        return true;
    }
    #[cfg(not(feature = "pg15"))]
    {
        tag == pg_sys::NodeTag::T_JsonValueExpr
    }
    #[cfg(feature = "pg15")]
    {
        let _ = tag;
        false
    }
}

/// Returns true if this entry of the range table is a JSON_TABLE (17), and not an XMLTABLE.
pub fn is_json_table(entry: &pg_sys::RangeTblEntry) -> bool {
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: null, or the function of a valid entry.
    unsafe {
        entry.tablefunc.as_ref().is_some_and(|function| function.functype == pg_sys::TableFuncType::TFT_JSON_TABLE)
    }
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    {
        let _ = entry;
        false
    }
}

/// Returns true if this is the kind of an entry of the range table that stands for the columns that are grouped by
/// (18).
pub fn is_grouping_entry(kind: pg_sys::RTEKind::Type) -> bool {
    #[cfg(feature = "pg18")]
    {
        kind == pg_sys::RTEKind::RTE_GROUP
    }
    #[cfg(not(feature = "pg18"))]
    {
        let _ = kind;
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

/// Lets the columns and HAVING of a query without grouping sets name what they are grouped by as such, and not by the
/// entry of the range table that stands for it from 18 on. That entry is left as an empty one.
///
/// # Safety
/// A valid query that the caller may change.
pub unsafe fn name_grouped_columns(query: *mut pg_sys::Query) {
    #[cfg(not(feature = "pg18"))]
    let _ = query;
    #[cfg(feature = "pg18")]
    // SAFETY: the caller's promise. No state of the planner is needed without grouping sets.
    unsafe {
        if !(*query).hasGroupRTE {
            return;
        }
        let planner = std::ptr::null_mut();
        (*query).targetList = kept!(pg_sys::flatten_group_exprs(planner, query, (*query).targetList.cast())).cast();
        (*query).havingQual = kept!(pg_sys::flatten_group_exprs(planner, query, (*query).havingQual));
        (*query).hasGroupRTE = false;
        for entry in crate::pg::lists::nodes::<pg_sys::RangeTblEntry>((*query).rtable) {
            if is_grouping_entry((*entry).rtekind) {
                (*entry).rtekind = pg_sys::RTEKind::RTE_RESULT;
                (*entry).groupexprs = std::ptr::null_mut();
            }
        }
    }
}

/// Adds the entries of another query's range table to that of a query, with their permissions. Nothing may name the new
/// ones by number.
///
/// # Safety
/// Valid queries that the caller may change.
pub unsafe fn add_range_table(query: *mut pg_sys::Query, other: *mut pg_sys::Query) {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        {
            (*query).rtable = kept!(pg_sys::list_concat((*query).rtable, (*other).rtable));
        }
        #[cfg(not(feature = "pg15"))]
        {
            let (entries, permissions) = (&raw mut (*query).rtable, &raw mut (*query).rteperminfos);
            kept!(pg_sys::CombineRangeTables(entries, permissions, (*other).rtable, (*other).rteperminfos));
        }
    }
}

/// Lets a query ask for no permissions, those of sub-queries aside. From 16 on the planner looks for what each relation
/// asks for: for nothing. A plan of such a query is to be run as `plans::unchecked_plan`.
///
/// # Safety
/// A valid query that the caller may change.
pub unsafe fn ask_no_permissions(query: *mut pg_sys::Query) {
    // SAFETY: the range table of a valid query holds valid entries, which the caller may change.
    unsafe {
        #[cfg(not(feature = "pg15"))]
        {
            (*query).rteperminfos = std::ptr::null_mut();
        }
        for entry in crate::pg::lists::nodes::<pg_sys::RangeTblEntry>((*query).rtable) {
            #[cfg(feature = "pg15")]
            {
                (*entry).requiredPerms = 0;
                (*entry).checkAsUser = pg_sys::InvalidOid;
                (*entry).selectedCols = std::ptr::null_mut();
            }
            #[cfg(not(feature = "pg15"))]
            {
                (*entry).perminfoindex = 0;
                if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
                    kept!(pg_sys::addRTEPermissionInfo(&raw mut (*query).rteperminfos, entry));
                }
            }
        }
    }
}

/// Where the columns of one row type lie in another that has the same columns, by their names; null if all lie in the
/// same places. Raises if they have not the same columns.
///
/// # Safety
/// Valid row types.
pub unsafe fn columns_in(other: pg_sys::TupleDesc, one: pg_sys::TupleDesc) -> *mut pg_sys::AttrMap {
    #[cfg(feature = "pg15")]
    // SAFETY: the caller's promise.
    unsafe {
        kept!(pg_sys::build_attrmap_by_name_if_req(other, one))
    }
    #[cfg(not(feature = "pg15"))]
    // SAFETY: the caller's promise.
    unsafe {
        kept!(pg_sys::build_attrmap_by_name_if_req(other, one, false))
    }
}
