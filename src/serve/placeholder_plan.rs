//! The plan of a placeholder, which stands for a stored answer. It is never run: another one takes its place when its
//! query is started. Until then other libraries see it, and the server adds up what it costs. It is made of the query
//! alone, and asks for all rights that the query asks for.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag};

use crate::error::CacheError;
use crate::pg::compat;
use crate::pg::error_passing::edge;
use crate::pg::memory_context::room_for;
use crate::pg::tree::{Tree, children};
use crate::pg::tree_search::search;
use crate::query::plan_marker;

struct ScanMethods(pg_sys::CustomScanMethods);

// SAFETY: a constant table of function pointers and literals.
unsafe impl Sync for ScanMethods {}

static METHODS: ScanMethods = ScanMethods(pg_sys::CustomScanMethods {
    CustomName: c"ArrowCachePlaceholder".as_ptr(),
    CreateCustomScanState: Some(run_placeholder),
});

/// Makes the node type known by name.
pub fn register() {
    // SAFETY: a constant table, registered once while libraries are preloaded.
    unsafe { kept!(pg_sys::RegisterCustomScanMethods(&raw const METHODS.0)) };
}

/// A plan that stands for `pending`, an answer to this query, in the current memory context. It shares parts with the
/// query. It costs what the plan cost that computed the answer. `None` if the present role lacks some right that the
/// query asks for: a plan may leave out what needs that right. Or when there is no memory.
pub fn placeholder(
    query: Tree<'_, pg_sys::Query>,
    pending: *mut c_void,
    cost: f64,
) -> Option<*mut pg_sys::PlannedStmt> {
    let items = plan_marker::items_of_placeholder(pending)?;
    // SAFETY: a live context, and room for what is written. The query is one that nobody has planned.
    unsafe {
        let scan = room_for::<pg_sys::CustomScan>(pg_sys::CurrentMemoryContext)?;
        scan.write(pg_sys::CustomScan { methods: &raw const METHODS.0, ..Default::default() });
        let own = &mut (*scan).scan.plan;
        (own.type_, own.targetlist, own.total_cost) = (NodeTag::T_CustomScan, query.targetList, cost);
        let plan = room_for::<pg_sys::PlannedStmt>(pg_sys::CurrentMemoryContext)?;
        plan.write(pg_sys::PlannedStmt {
            type_: NodeTag::T_PlannedStmt,
            commandType: query.commandType,
            queryId: query.queryId,
            canSetTag: query.canSetTag,
            planTree: scan.cast(),
            invalItems: items,
            stmt_location: query.stmt_location,
            stmt_len: query.stmt_len,
            ..Default::default()
        });
        if is_flat(query) {
            compat::add_relations(&mut *plan, query);
            return Some(plan);
        }
        let mut add = |node: Tree<'_, pg_sys::Node>| {
            if let Some(query) = node.as_a::<pg_sys::Query>() {
                compat::add_relations(&mut *plan, query);
            }
            false
        };
        search(query.as_node().as_ptr(), 0, &mut add)?;
        compat::is_permitted(Tree::enter(plan)?).then_some(plan)
    }
}

/// Returns true if there is no query within a query. All its plans ask for the same rights.
fn is_flat(query: Tree<'_, pg_sys::Query>) -> bool {
    let mut entries = children!(query.rtable as RangeTblEntry);
    !query.hasSubLinks && query.cteList.is_null() && entries.all(|entry| entry.rtekind != pg_sys::RTEKind::RTE_SUBQUERY)
}

unsafe extern "C-unwind" fn run_placeholder(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    let body = || {
        // Somebody has started the plan around the hooks.
        CacheError::placeholder_run().raise()
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}
