//! Rights that a plan asks for at one time, and not at another. When it starts, it computes which partitions it needs,
//! and does not start the scans of the others. The server asks whether the role may execute the functions of a scan
//! when it starts that. So of two times between the same rows, one may be refused, unless the role may execute all
//! of these functions. Reads plans and catalogs; keeps nothing.

use std::ffi::c_void;

use arrow_cache_core::RoomyVec;
use pgrx::pg_sys::{self, NodeTag, Oid};

use super::eligibility::QueryTraits;
use super::opened_relations::{opened_by, plans_of};
use crate::pg::catalog_row::CatalogRow;
use crate::pg::compat::tree::walkers;
use crate::pg::error_passing::edge;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::tree::{Tree, child, match_node};
use crate::pg::{compat, privileges};

/// Functions that the role may execute. Those of one partition are much like those of another.
struct Permitted(Vec<Oid>);

/// Returns true if the role may not execute a function of a scan that the start of the plan may leave out. `may_lack`
/// tells whether some role may not execute a built-in function.
pub fn may_depend_on_time(
    plan: Tree<'_, pg_sys::PlannedStmt>,
    traits: &QueryTraits,
    may_lack: impl FnOnce() -> bool,
) -> bool {
    // Most plans have no partitions.
    if plan.appendRelations.is_null() {
        return false;
    }
    let left_out = opened_by(plan).left_out;
    if left_out.is_empty() {
        return false;
    }
    let mut permitted = Permitted(Vec::new());
    may_lack() || (traits.may_call_users() && !left_out.into_iter().all(|plan| permitted.starts(plan)))
}

impl Permitted {
    /// Returns true if the plan is a scan, or made of scans, which the role may start.
    fn starts(&mut self, plan: Tree<'_, pg_sys::Plan>) -> bool {
        let node = plan.as_node();
        let starts_itself = match_node! { node;
            SeqScan(_scan) => true,
            IndexScan(scan) => self.allows(scan.indexqualorig) && self.allows(scan.indexorderbyorig),
            IndexOnlyScan(scan) => self.allows(scan.indexqual) && self.allows(scan.indexorderby),
            BitmapHeapScan(scan) => self.allows(scan.bitmapqualorig) && self.starts_below(plan),
            BitmapIndexScan(scan) => self.allows(scan.indexqualorig),
            BitmapAnd(and) => self.starts_all(child!(and.bitmapplans)),
            BitmapOr(or) => self.starts_all(child!(or.bitmapplans)),
            Append(append) => self.starts_all(child!(append.appendplans)),
            MergeAppend(append) => self.starts_all(child!(append.mergeplans)),
            _ => node.tag() == NodeTag::T_Sort && self.starts_below(plan),
        };
        starts_itself && plan.initPlan.is_null() && self.allows(plan.qual) && self.allows(plan.targetlist)
    }

    fn starts_below(&mut self, plan: Tree<'_, pg_sys::Plan>) -> bool {
        child!(plan.lefttree).is_some_and(|below| self.starts(below))
    }

    fn starts_all(&mut self, list: Option<Tree<'_, pg_sys::List>>) -> bool {
        plans_of(list).all(|plan| self.starts(plan))
    }

    /// Returns true if the role may execute the functions of users that expressions call.
    fn allows(&mut self, expressions: *mut pg_sys::List) -> bool {
        // SAFETY: null or a part of a valid plan; this is lent to the walk alone.
        !unsafe { visit(expressions.cast(), std::ptr::from_mut(self).cast()) }
    }
}

/// Returns true where the role may be denied a function.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, permitted: *mut c_void) -> bool {
    let body = || {
        // SAFETY: the node is null or part of the plan that is walked; `allows` has lent itself, and uses it no more while
        // the walk lasts.
        unsafe {
            let Some(tree) = Tree::enter(node) else { return false };
            matches!(tree.tag(), NodeTag::T_SubPlan | NodeTag::T_AlternativeSubPlan)
                || kept!(pg_sys::check_functions_in_node(node, Some(is_denied), permitted))
                || kept!(walkers::expression_tree_walker(node, Some(visit), permitted))
        }
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

unsafe extern "C-unwind" fn is_denied(function: Oid, permitted: *mut c_void) -> bool {
    let body = || {
        // SAFETY: as in `visit`.
        let permitted = unsafe { &mut (*permitted.cast::<Permitted>()).0 };
        // Whether some role lacks a built-in function is known. One that is gone has the server raise an error, where the
        // plan calls it.
        function.to_u32() >= FIRST_UNPINNED_OID
            && !permitted.contains(&function)
            && !(CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, function).is_some()
                && compat::may_execute(privileges::current_role(), function)
                && permitted.add(function).is_ok())
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}
