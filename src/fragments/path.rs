//! The path hook's part: while a combined query is planned, its named tuplestore gets one path, our scan of the parts.
//! What is planned is state of this backend, for as long as the planner runs.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag};

use super::scan;
use crate::pg::backend_local::Local;
use crate::pg::error_passing::edge;
use crate::query::opened_relations::SCAN_NAME;
use crate::query::scan_of_parts::TUPLESTORE_NAME;

/// The combined query that is being planned. Plain data.
#[derive(Clone, Copy)]
struct Planned {
    /// Its recipe; null for none.
    recipe: *mut pg_sys::List,
    /// What its parts cost.
    cost: f64,
}

const NOTHING: Planned = Planned { recipe: std::ptr::null_mut(), cost: 0.0 };

static PLANNED: Local<Cell<Planned>> = Local::new(Cell::new(NOTHING));

struct PathMethods(pg_sys::CustomPathMethods);

// SAFETY: a constant table of function pointers and literals.
unsafe impl Sync for PathMethods {}

static PATH_METHODS: PathMethods = PathMethods(pg_sys::CustomPathMethods {
    CustomName: SCAN_NAME.as_ptr(),
    PlanCustomPath: Some(plan_path),
    ReparameterizeCustomPathByChild: None,
});

/// Notes the recipe of the query that is planned now, and what its parts cost. None is planned yet.
pub fn begin(recipe: *mut pg_sys::List, cost: f64) {
    PLANNED.set(Planned { recipe, cost });
}

/// The query was planned.
pub fn end() {
    PLANNED.set(NOTHING);
}

/// Returns true if the planner plans something of ours, so that it is told of the paths of relations.
pub fn attends() -> bool {
    !PLANNED.get().recipe.is_null()
}

/// Puts the scan of the parts in the place of all paths of the named tuplestore of the combined query that is being
/// planned.
///
/// # Safety
/// The arguments must be those of a path hook.
pub unsafe fn attend(rel: *mut pg_sys::RelOptInfo, entry: *mut pg_sys::RangeTblEntry) {
    let Planned { recipe, cost } = PLANNED.get();
    // SAFETY: the caller's promise.
    unsafe {
        let is_ours = (*entry).rtekind == pg_sys::RTEKind::RTE_NAMEDTUPLESTORE
            && !(*entry).enrname.is_null()
            && CStr::from_ptr((*entry).enrname) == TUPLESTORE_NAME;
        if recipe.is_null() || !is_ours {
            return;
        }
        // As much as the plans of all parts, so that the server chooses between plans as it would without us. What is
        // to be computed is known when the plan starts; a rescan computes it again.
        let path = pg_sys::CustomPath {
            path: pg_sys::Path {
                type_: NodeTag::T_CustomPath,
                pathtype: NodeTag::T_CustomScan,
                parent: rel,
                pathtarget: (*rel).reltarget,
                rows: (*rel).rows,
                startup_cost: cost,
                total_cost: cost + (*rel).rows * pg_sys::cpu_tuple_cost,
                ..Default::default()
            },
            custom_private: recipe,
            methods: &raw const PATH_METHODS.0,
            ..Default::default()
        };
        let place: *mut pg_sys::CustomPath = kept!(pg_sys::palloc(size_of::<pg_sys::CustomPath>())).cast();
        place.write(path);
        (*rel).pathlist = std::ptr::null_mut();
        (*rel).partial_pathlist = std::ptr::null_mut();
        kept!(pg_sys::add_path(rel, place.cast()));
    }
}

/// The plan node of our path.
unsafe extern "C-unwind" fn plan_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    targets: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    _plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    let body = || {
        // SAFETY: the planner's own arguments; the relation is the named tuplestore.
        unsafe {
            let scan = scan::plan_node(kept!(pg_sys::build_physical_tlist(root, rel)), (*path).custom_private);
            (*scan).scan.plan.targetlist = targets;
            (*scan).scan.plan.qual = kept!(pg_sys::extract_actual_clauses(clauses, false));
            (*scan).flags = (*path).flags;
            scan.cast()
        }
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}
