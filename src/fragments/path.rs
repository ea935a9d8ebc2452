//! The path hook's part: while a combined query is planned, its named tuplestore gets one path, our scan of the parts.
//! What is planned is state of this backend, for as long as the planner runs.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag};

use super::recipe::count_parts;
use super::scan;
use crate::pg::backend_local::Local;
use crate::pg::error_passing::edge;
use crate::query::plan_kinds::SCAN_NAME;
use crate::query::plan_kinds::TUPLESTORE_NAME;

/// The recipe of the combined query that is being planned; null for none.
static PLANNED: Local<Cell<*mut pg_sys::List>> = Local::new(Cell::new(std::ptr::null_mut()));

/// What a part is taken to cost: enough for the planner to keep the rows rather than to scan again.
const COST_OF_PART: f64 = 100.0;

struct PathMethods(pg_sys::CustomPathMethods);

// SAFETY: a constant table of function pointers and literals.
unsafe impl Sync for PathMethods {}

static PATH_METHODS: PathMethods = PathMethods(pg_sys::CustomPathMethods {
    CustomName: SCAN_NAME.as_ptr(),
    PlanCustomPath: Some(plan_path),
    ReparameterizeCustomPathByChild: None,
});

/// Notes which recipe the query that is planned now is combined by; null for none. Returns what was noted before.
pub fn set_planned(recipe: *mut pg_sys::List) -> *mut pg_sys::List {
    PLANNED.replace(recipe)
}

/// Is a combined query being planned?
pub fn is_planning() -> bool {
    !PLANNED.get().is_null()
}

/// What the scan of so many parts is taken to cost.
pub fn cost_of_parts(parts: usize) -> f64 {
    COST_OF_PART * parts as f64
}

/// Puts the scan of the parts in the place of all paths of the named tuplestore of the combined query that is being
/// planned.
///
/// # Safety
/// The arguments must be those of a path hook.
pub unsafe fn add_path(rel: *mut pg_sys::RelOptInfo, entry: *mut pg_sys::RangeTblEntry) {
    let recipe = PLANNED.get();
    // SAFETY: the caller's promise.
    unsafe {
        let is_ours = (*entry).rtekind == pg_sys::RTEKind::RTE_NAMEDTUPLESTORE
            && !(*entry).enrname.is_null()
            && CStr::from_ptr((*entry).enrname) == TUPLESTORE_NAME;
        if recipe.is_null() || !is_ours {
            return;
        }
        // What is to be computed is known when the plan starts; a rescan computes it again.
        let startup_cost = cost_of_parts(count_parts(recipe));
        let path = pg_sys::CustomPath {
            path: pg_sys::Path {
                type_: NodeTag::T_CustomPath,
                pathtype: NodeTag::T_CustomScan,
                parent: rel,
                pathtarget: (*rel).reltarget,
                rows: (*rel).rows,
                startup_cost,
                total_cost: startup_cost + (*rel).rows * pg_sys::cpu_tuple_cost,
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
        // SAFETY: the planner's own arguments; the relation is the named tuplestore, whose entry lists its columns.
        unsafe {
            let number = (*rel).relid;
            let entry = *(*root).simple_rte_array.add(number as usize);
            let scan = scan::plan_node(columns_of(&*entry, number), (*path).custom_private);
            (*scan).scan.plan.targetlist = targets;
            (*scan).scan.plan.qual = kept!(pg_sys::extract_actual_clauses(clauses, false));
            (*scan).flags = (*path).flags;
            scan.cast()
        }
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

/// Target entries for the columns of a named tuplestore with this number in its range table.
unsafe fn columns_of(entry: &pg_sys::RangeTblEntry, number: u32) -> *mut pg_sys::List {
    use crate::pg::lists::{integers, oids};
    // SAFETY: the three lists of an entry have one element for each column.
    unsafe {
        let modifiers = integers(entry.coltypmods);
        let collations = oids(entry.colcollations);
        (oids(entry.coltypes).zip(modifiers).zip(collations).zip(1i16..)).fold(
            std::ptr::null_mut(),
            |list, (((type_oid, modifier), collation), place)| {
                let var = kept!(pg_sys::makeVar(number as _, place, type_oid, modifier, collation, 0));
                let target = kept!(pg_sys::makeTargetEntry(var.cast(), place, std::ptr::null_mut(), false));
                kept!(pg_sys::lappend(list, target.cast()))
            },
        )
    }
}
