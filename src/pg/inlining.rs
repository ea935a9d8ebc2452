//! Functions in SQL that return sets, called in FROM: the planner puts their bodies in the place of the calls
//! (optimizer/prep/prepjointree.c, `preprocess_function_rtes`). Here its own function does that in a copy of a query,
//! so that what the bodies read is seen before planning. Keeps nothing.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag, RTEKind};

use super::catalog_row::CatalogRow;
use super::compat::tree::walkers;
use super::error_passing::edge;
use super::lists::{node_at, nodes};
use super::object_ids::{FIRST_UNPINNED_OID, SQL_LANGUAGE};
use super::subtransaction;
use super::tree::Tree;
use super::tree_making::{copy, new_node};
use super::tree_search::search;

/// Most bodies that are put into one query, and how deeply they may call each other.
const MOST_BODIES: usize = 128;
const DEEPEST: usize = 16;

/// A query with bodies in the place of calls.
pub struct Inlined {
    /// The query, to be planned in the place of the other one: a copy in the current memory context.
    pub query: *mut pg_sys::Query,
    /// The functions that its plan rests on, as items of a plan (`invalItems`).
    pub items: *mut pg_sys::List,
    /// Some bodies read tables whose rows the role decides on.
    pub depends_on_role: bool,
}

/// Putting a body in the place of its call raises an error.
pub struct Raises;

/// Returns true if an entry of a range table calls a function of a user that returns a set, and nothing else. Reads no
/// catalog.
pub fn may_be_inlined(entry: &pg_sys::RangeTblEntry) -> bool {
    // SAFETY: an entry of a valid query, or of a copy of one.
    entry.rtekind == RTEKind::RTE_FUNCTION && unsafe { lone_call(entry) }.is_some()
}

/// The call that an entry of a range table consists of, if it calls a function of a user that returns a set.
///
/// # Safety
/// An entry of a function in a valid query.
unsafe fn lone_call(entry: &pg_sys::RangeTblEntry) -> Option<*mut pg_sys::FuncExpr> {
    // SAFETY: the functions of a valid entry, and an expression, which begins with its tag.
    unsafe {
        let function: *mut pg_sys::RangeTblFunction = node_at(entry.functions, 0)?;
        let call: *mut pg_sys::FuncExpr = (*function).funcexpr.cast();
        let is_lone = nodes::<pg_sys::Node>(entry.functions).len() == 1 && !entry.funcordinality;
        let is_wanted = is_lone
            && (*(*function).funcexpr).type_ == NodeTag::T_FuncExpr
            && (*call).funcretset
            && (*call).funcid.to_u32() >= FIRST_UNPINNED_OID;
        is_wanted.then_some(call)
    }
}

/// The call of an entry, with the row of its function, if the planner might put a body in the place of it. It does not
/// do so if the function is VOLATILE, STRICT or SECURITY DEFINER; code that supports a function may decide otherwise.
///
/// # Safety
/// As `lone_call`.
unsafe fn candidate(entry: &pg_sys::RangeTblEntry) -> Option<(*mut pg_sys::FuncExpr, CatalogRow)> {
    if !may_be_inlined(entry) {
        return None;
    }
    // SAFETY: the caller's promise.
    let call = unsafe { lone_call(entry)? };
    // SAFETY: a valid call.
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, unsafe { (*call).funcid })?;
    let form = row.function()?;
    let may_be = form.prolang.to_u32() == SQL_LANGUAGE
        && form.provolatile as u8 != pg_sys::PROVOLATILE_VOLATILE
        && !form.proisstrict
        && !form.prosecdef
        && form.prosupport == pg_sys::InvalidOid;
    may_be.then_some((call, row))
}

/// A query with bodies in the place of the calls of functions in FROM; `None` if the server puts none there. What it has
/// locked for them stays locked, as after planning.
///
/// # Errors
/// The server would raise one, should planning come to such a call.
///
/// # Safety
/// A rewritten query that nobody has planned.
pub unsafe fn inlined(query: *mut pg_sys::Query) -> Result<Option<Inlined>, Raises> {
    let mut is_candidate = |node: Tree<'_, pg_sys::Node>| {
        // SAFETY: an entry of a valid query.
        node.as_a::<pg_sys::RangeTblEntry>().is_some_and(|entry| unsafe { candidate(&entry) }.is_some())
    };
    // SAFETY: the caller's promise.
    if unsafe { search(query.cast(), 0, &mut is_candidate) } != Some(true) {
        return Ok(None);
    }
    // The statement need not come to the call: it may stand where the planner finds that nothing is to be read.
    subtransaction::attempt_to_keep(|| {
        let (global, root) = (new_node::<pg_sys::PlannerGlobal>(), new_node::<pg_sys::PlannerInfo>());
        // SAFETY: new nodes, which say as much as the server's function looks at; a copy, which nobody else has.
        unsafe {
            (*root).glob = global;
            let mut inliner = Inliner { root, depth: 0, bodies: 0 };
            let query = copy(query);
            inliner.walk(query.cast());
            let (items, depends_on_role) = ((*global).invalItems, (*global).dependsOnRole);
            Some((inliner.bodies > 0).then_some(Inlined { query, items, depends_on_role }))
        }
    })
    .ok_or(Raises)
}

struct Inliner {
    /// What the server's function notes dependencies in.
    root: *mut pg_sys::PlannerInfo,
    /// Bodies around the present node.
    depth: usize,
    bodies: usize,
}

/// Called by the server's walkers for each part of a node.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: the server calls this; no frame between has destructors. The node is null or part of the copy, and the
    // context is the inliner that `walk` has passed.
    unsafe { edge(|| (*context.cast::<Inliner>()).walk(node)) }
}

impl Inliner {
    /// Puts bodies in the place of calls in a node, and in what is below it. Returns false: it does not stop.
    ///
    /// # Safety
    /// Null, or a part of the copy.
    unsafe fn walk(&mut self, node: *mut pg_sys::Node) -> bool {
        let context = (&raw mut *self).cast();
        // SAFETY: the caller's promise; what the walkers call gets this inliner back.
        unsafe {
            match node.as_ref().map(|node| node.type_) {
                None => false,
                Some(NodeTag::T_Query) => {
                    // Entries come after what is in them, so that a body is not walked twice.
                    let flags = pg_sys::QTW_EXAMINE_RTES_AFTER as i32;
                    kept!(walkers::query_tree_walker(node.cast(), Some(visit), context, flags))
                }
                Some(NodeTag::T_RangeTblEntry) => {
                    let entry = &mut *node.cast::<pg_sys::RangeTblEntry>();
                    if self.inline(entry) {
                        self.depth += 1;
                        self.walk(entry.subquery.cast());
                        self.depth -= 1;
                    }
                    false
                }
                Some(_) => kept!(walkers::expression_tree_walker(node, Some(visit), context)),
            }
        }
    }

    /// Puts the body of the function that an entry calls in the place of the call. Returns true if there is one now.
    ///
    /// # Safety
    /// An entry of the copy.
    unsafe fn inline(&mut self, entry: &mut pg_sys::RangeTblEntry) -> bool {
        // SAFETY: the caller's promise; what the server does with the entry of a query that it plans.
        unsafe {
            let Some((call, row)) = candidate(entry).filter(|_| self.has_room()) else { return false };
            // Arguments in their order, with those that are left out: the planner has them so by then.
            let (given, result) = ((*call).args, (*call).funcresulttype);
            (*call).args = kept!(pg_sys::expand_function_arguments(given, false, result, row.as_tuple()));
            let body = kept!(pg_sys::inline_set_returning_function(self.root, entry));
            if body.is_null() {
                return false;
            }
            self.bodies += 1;
            (entry.rtekind, entry.subquery, entry.security_barrier) = (RTEKind::RTE_SUBQUERY, body, false);
            true
        }
    }

    fn has_room(&self) -> bool {
        self.depth < DEEPEST && self.bodies < MOST_BODIES
    }
}
