//! Functions in SQL, whose bodies the planner puts in the place of calls: of those that return sets and stand in FROM
//! (optimizer/prep/prepjointree.c, `preprocess_function_rtes`), and of those that return values
//! (optimizer/util/clauses.c, `inline_function`). Here that is done in a copy of a query, which is planned in its
//! place: so what the bodies do is seen before planning, and means in the plan what it meant here. Keeps nothing.

use std::ffi::c_void;

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, NodeTag, RTEKind};

use super::catalog_row::CatalogRow;
use super::compat::tree::walkers;
use super::error_passing::edge;
use super::inlined_call::{Asked, expression_for};
use super::lists::{node_at, nodes};
use super::object_ids::{FIRST_UNPINNED_OID, SQL_LANGUAGE};
use super::sql_body;
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

/// The call that an entry of a range table consists of, if it calls a function of a user that returns a set, with the
/// row of its function, if the planner might put a body in the place of it. It does not do so if the function is
/// VOLATILE, STRICT or SECURITY DEFINER; code that supports a function may decide otherwise.
///
/// # Safety
/// An entry of a valid query, or of a copy of one.
unsafe fn set_of_rows(entry: &pg_sys::RangeTblEntry) -> Option<(*mut pg_sys::FuncExpr, CatalogRow)> {
    if entry.rtekind != RTEKind::RTE_FUNCTION {
        return None;
    }
    // SAFETY: the functions of a valid entry, and an expression, which begins with its tag.
    let call = unsafe {
        let function: *mut pg_sys::RangeTblFunction = node_at(entry.functions, 0)?;
        let call: *mut pg_sys::FuncExpr = (*function).funcexpr.cast();
        let is_lone = nodes::<pg_sys::Node>(entry.functions).len() == 1 && !entry.funcordinality;
        let is_call = is_lone && (*(*function).funcexpr).type_ == NodeTag::T_FuncExpr;
        if !is_call || !(*call).funcretset {
            return None;
        }
        call
    };
    // SAFETY: a valid call.
    let row = row_of(unsafe { (*call).funcid })?;
    let form = row.function()?;
    let may_be = form.prolang.to_u32() == SQL_LANGUAGE
        && form.provolatile as u8 != pg_sys::PROVOLATILE_VOLATILE
        && !form.proisstrict
        && !form.prosecdef
        && form.prosupport == pg_sys::InvalidOid;
    may_be.then_some((call, row))
}

/// The row of the function that a call calls, if a body may stand in for it.
fn value(call: &pg_sys::FuncExpr) -> Option<CatalogRow> {
    if call.funcretset { None } else { row_of(call.funcid).filter(sql_body::may_stand_in) }
}

/// The row of a function of a user.
fn row_of(function: pg_sys::Oid) -> Option<CatalogRow> {
    let is_of_user = function.to_u32() >= FIRST_UNPINNED_OID;
    if is_of_user { CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, function) } else { None }
}

/// A query with bodies in the place of calls of functions in SQL; `None` if there are none, or too many. What the
/// server has locked for them stays locked, as after planning.
///
/// # Errors
/// `UserDefinedFunction` if the server would raise an error, should planning come to such a call.
///
/// # Safety
/// A rewritten query that nobody has planned.
pub unsafe fn inlined(query: *mut pg_sys::Query) -> Result<Option<Inlined>, Reason> {
    let mut is_candidate = |node: Tree<'_, pg_sys::Node>| {
        node.as_a::<pg_sys::FuncExpr>().is_some_and(|call| value(&call).is_some())
            // SAFETY: an entry of a valid query.
            || node.as_a::<pg_sys::RangeTblEntry>().is_some_and(|entry| unsafe { set_of_rows(&entry) }.is_some())
    };
    // SAFETY: the caller's promise.
    if unsafe { search(query.cast(), 0, &mut is_candidate) } != Some(true) {
        return Ok(None);
    }
    // The statement need not come to the call: it may stand where the planner finds that nothing is to be read.
    let made = subtransaction::attempt(|| {
        let (global, root) = (new_node::<pg_sys::PlannerGlobal>(), new_node::<pg_sys::PlannerInfo>());
        // SAFETY: new nodes, which say as much as the server's functions look at; a copy, which nobody else has.
        unsafe {
            (*root).glob = global;
            let mut inliner = Inliner::new(root);
            let query = inliner.query(copy(query));
            let (items, depends_on_role) = ((*global).invalItems, (*global).dependsOnRole);
            let has_some = inliner.bodies > 0 && !inliner.is_too_large;
            Some(has_some.then_some(Inlined { query, items, depends_on_role }))
        }
    });
    made.ok_or(Reason::UserDefinedFunction)
}

struct Inliner {
    /// What the server's functions note dependencies in.
    root: *mut pg_sys::PlannerInfo,
    /// The queries around the present node, the outermost first.
    queries: Vec<*mut pg_sys::Query>,
    /// The functions whose bodies are around the present node.
    around: Vec<pg_sys::Oid>,
    /// How many expressions around the present node have a value that parts of them refer to (CASE x WHEN …).
    cases: usize,
    bodies: usize,
    /// How many bodies of functions that return sets are around the present node.
    depth: usize,
    is_too_large: bool,
}

/// Called by the server for each part of a node that it copies.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> *mut pg_sys::Node {
    // SAFETY: the server calls this; no frame between has destructors. The node is null or part of the copy, and the
    // context is the inliner that a call of the server's mutators has passed.
    unsafe { edge(|| (*context.cast::<Inliner>()).node(node)) }
}

/// Each function takes a part of a query that nobody else has, and gives what is to stand in its place.
impl Inliner {
    fn new(root: *mut pg_sys::PlannerInfo) -> Self {
        Self { root, queries: Vec::new(), around: Vec::new(), cases: 0, bodies: 0, depth: 0, is_too_large: false }
    }

    unsafe fn node(&mut self, node: *mut pg_sys::Node) -> *mut pg_sys::Node {
        // SAFETY: null, or a valid node, which begins with its tag.
        unsafe {
            match node.as_ref().map(|node| node.type_) {
                None => node,
                Some(NodeTag::T_Query) => self.query(node.cast()).cast(),
                Some(NodeTag::T_FuncExpr) => self.call(node.cast()),
                Some(NodeTag::T_CaseExpr | NodeTag::T_ArrayCoerceExpr) => {
                    self.cases += 1;
                    let made = self.below(node);
                    self.cases -= 1;
                    made
                }
                Some(_) => self.below(node),
            }
        }
    }

    unsafe fn below(&mut self, node: *mut pg_sys::Node) -> *mut pg_sys::Node {
        let context = (&raw mut *self).cast();
        // SAFETY: a valid node; what the server calls gets this inliner back.
        unsafe { kept!(walkers::expression_tree_mutator(node, Some(visit), context)) }
    }

    unsafe fn query(&mut self, query: *mut pg_sys::Query) -> *mut pg_sys::Query {
        self.queries.push(query);
        let context = (&raw mut *self).cast();
        // SAFETY: a valid query; what the server calls gets this inliner back. The entries belong to the new query.
        let made = unsafe {
            let made = kept!(walkers::query_tree_mutator(query, Some(visit), context, 0));
            for entry in nodes::<pg_sys::RangeTblEntry>((*made).rtable) {
                let entry = &mut *entry;
                if self.put_set(entry) {
                    self.depth += 1;
                    entry.subquery = self.query(entry.subquery);
                    self.depth -= 1;
                }
            }
            made
        };
        self.queries.pop();
        made
    }

    /// Puts the body of the function that an entry calls in the place of the call. Returns true if there is one now.
    unsafe fn put_set(&mut self, entry: &mut pg_sys::RangeTblEntry) -> bool {
        // SAFETY: an entry of the copy; what the server does with the entry of a query that it plans.
        unsafe {
            let Some((call, row)) = set_of_rows(entry) else { return false };
            // Arguments in their order, with those that are left out: the planner has them so by then.
            let (given, result) = ((*call).args, (*call).funcresulttype);
            (*call).args = kept!(pg_sys::expand_function_arguments(given, false, result, row.as_tuple()));
            let body = kept!(pg_sys::inline_set_returning_function(self.root, entry));
            if body.is_null() || !self.has_room() {
                return false;
            }
            (entry.rtekind, entry.subquery, entry.security_barrier) = (RTEKind::RTE_SUBQUERY, body, false);
            true
        }
    }

    /// A call, or the body of its function. Arguments come first.
    unsafe fn call(&mut self, call: *mut pg_sys::FuncExpr) -> *mut pg_sys::Node {
        // SAFETY: a valid call; what the server does with one before it looks at the function.
        unsafe {
            let Some(row) = value(&*call) else { return self.below(call.cast()) };
            let (given, result) = ((*call).args, (*call).funcresulttype);
            let given = kept!(pg_sys::expand_function_arguments(given, false, result, row.as_tuple()));
            (*call).args = self.below(given.cast()).cast();
            let function = (*call).funcid;
            if self.is_too_large || self.around.contains(&function) {
                return call.cast();
            }
            let asked = Asked { row: &row, queries: &self.queries, is_in_case: self.cases > 0 };
            let Some(body) = expression_for(call, &asked).filter(|_| self.has_room()) else { return call.cast() };
            kept!(pg_sys::record_plan_function_dependency(self.root, function));
            self.around.push(function);
            let made = self.node(body);
            self.around.pop();
            made
        }
    }

    /// Returns true if one more body may be put here, and counts it. Otherwise the query is given up: what is written
    /// twice in it, as in GROUP BY, must stay alike.
    fn has_room(&mut self) -> bool {
        self.bodies += 1;
        self.is_too_large |= self.bodies > MOST_BODIES || self.depth + self.around.len() > DEEPEST;
        !self.is_too_large
    }
}
