//! Plans that serve without being planned: made from the real plan of a query that was a hit, kept for queries of its
//! form whose plans have the same facts (`query::plan_facts`).
//!
//! A template has everything that the server needs of a plan except its running: the range table with its permissions,
//! the columns, the costs. Its tree is one Custom Scan without rows. `lookup` gives a copy of it to the server as a
//! placeholder in a query's place; `serving_plan` puts the scan of an entry there once it is known that the answer
//! holds, in prepared plans too.
//!
//! Templates belong to one backend and do not change after they were made.

use std::ffi::c_void;
use std::rc::Rc;

use pgrx::pg_sys;

use super::open_relations::OpenRelations;
use super::placeholder_scan;
use super::scan_plan::{plan_with, scan_like, take_estimates};
use crate::arrow::column::{self, Column};
use crate::error::is_about_memory;
use crate::pg::compat;
use crate::pg::error_passing::unless;
use crate::pg::memory_context::room_for;
use crate::pg::tree::{Tree, children};
use crate::query::{plan_marker, relations};

/// A larger template is not kept, in bytes: compared with running its query, planning it takes little time.
const LARGEST: usize = 30 * 1024;

/// What is kept of a plan. Lives in a memory context of its own, which goes with it.
pub struct Template {
    context: pg_sys::MemoryContext,
    plan: *mut pg_sys::PlannedStmt,
    columns: Rc<[Column]>,
    descriptor: Vec<u8>,
    /// The relations that the plan reads, ascending.
    relations: Vec<u32>,
    /// All of them, if some are partitions, or inherit: the query does not name these.
    locks: Vec<pg_sys::Oid>,
    /// What a portal that may stay open holds open.
    open: OpenRelations,
}

impl Template {
    /// A template of a plan with these columns. `None` if such a plan cannot be had without planning, or there is no
    /// memory.
    pub fn of(real: Tree<'_, pg_sys::PlannedStmt>, columns: &Rc<[Column]>) -> Option<Rc<Self>> {
        let mut descends = false;
        for entry in children!(real.rtable as RangeTblEntry) {
            if entry.rtekind == pg_sys::RTEKind::RTE_RELATION {
                // A foreign table needs more checks than that of a version.
                if entry.relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE {
                    return None;
                }
                descends |= entry.inh;
            }
        }
        if real.transientPlan {
            return None;
        }
        let context = unless(is_about_memory, new_context)?;
        let locks = if descends { relations::read_by(real).collect() } else { Vec::new() };
        let relations = relations::of_plan(real, Vec::new());
        let mut template = Self {
            context,
            plan: std::ptr::null_mut(),
            columns: Rc::clone(columns),
            descriptor: column::describe(columns),
            relations,
            locks,
            open: OpenRelations::NONE,
        };
        // SAFETY: the context was made just now.
        let (filled, size) = unsafe {
            let caller = pg_sys::MemoryContextSwitchTo(context);
            let filled = unless(is_about_memory, || template.fill(real)).flatten();
            pg_sys::MemoryContextSwitchTo(caller);
            (filled, kept!(pg_sys::MemoryContextMemAllocated(context, true)))
        };
        (filled.is_some() && size <= LARGEST).then(|| Rc::new(template))
    }

    /// Copies what is wanted of the plan into the current memory context: the parts that the executor only reads.
    /// `None` when there is no memory.
    fn fill(&mut self, real: Tree<'_, pg_sys::PlannedStmt>) -> Option<()> {
        let mut scan = scan_like(real, &self.columns);
        scan.methods = placeholder_scan::methods();
        let own = &mut scan.scan.plan;
        take_estimates(own, real);
        // SAFETY: nodes and lists of the real plan, or made here.
        unsafe {
            // Names of columns belong to the real plan.
            own.targetlist = kept!(pg_sys::copyObjectImpl(own.targetlist.cast())).cast();
            let tree: *mut pg_sys::CustomScan = kept!(pg_sys::palloc(std::mem::size_of::<pg_sys::CustomScan>())).cast();
            tree.write(scan);
            let plan = plan_with(real, tree.cast())?;
            (*plan).rtable = kept!(pg_sys::copyObjectImpl((*plan).rtable.cast())).cast();
            compat::copy_permissions(&mut *plan);
            (*plan).relationOids = kept!(pg_sys::list_copy((*plan).relationOids));
            // The marker of the real plan: the eligibility of a placeholder is not checked again.
            (*plan).invalItems = std::ptr::null_mut();
            self.plan = plan;
        }
        self.open = OpenRelations::of(real);
        Some(())
    }

    /// The columns of the answer.
    pub fn columns(&self) -> &Rc<[Column]> {
        &self.columns
    }

    /// The columns as entries describe them.
    pub fn descriptor(&self) -> &[u8] {
        &self.descriptor
    }

    /// The relations that plans like it read, ascending.
    pub fn relations(&self) -> &[u32] {
        &self.relations
    }

    /// The relations that planning locks besides those that a query names, which were locked when it was analysed: a
    /// list of OIDs in the current memory context.
    pub fn descendants(&self) -> *mut pg_sys::List {
        self.locks.iter().fold(std::ptr::null_mut(), |list, relation| {
            // SAFETY: a list of OIDs that was made here.
            unsafe { kept!(pg_sys::lappend_oid(list, *relation)) }
        })
    }

    /// What plans like it hold open. The lists live as long as the template.
    pub fn open_relations(&self) -> OpenRelations {
        self.open
    }

    /// The scan of the template, without an entry. What it points to lives as long as the template.
    pub fn scan(&self) -> pg_sys::CustomScan {
        // SAFETY: `fill` has made such a node.
        unsafe { *(*self.plan).planTree.cast::<pg_sys::CustomScan>() }
    }

    /// A plan that stands for `pending`, for a query of the template's form, in the current memory context. It shares
    /// parts with the template, which must outlive it unless it is copied. It costs what the plan that computed the
    /// answer was estimated to cost: the server adds such costs up. `None` when there is no memory.
    pub fn placeholder(
        &self,
        query: Tree<'_, pg_sys::Query>,
        pending: *mut c_void,
        cost: f64,
    ) -> Option<*mut pg_sys::PlannedStmt> {
        let items = plan_marker::items_of_placeholder(pending)?;
        // SAFETY: a live context; both are copies of nodes of their size, which `fill` has made.
        unsafe {
            let scan = room_for::<pg_sys::CustomScan>(pg_sys::CurrentMemoryContext)?;
            scan.write(self.scan());
            (*scan).scan.plan.total_cost = cost;
            (*scan).scan.plan.startup_cost = (*scan).scan.plan.startup_cost.min(cost);
            let plan = room_for::<pg_sys::PlannedStmt>(pg_sys::CurrentMemoryContext)?;
            plan.copy_from_nonoverlapping(self.plan, 1);
            (*plan).planTree = scan.cast();
            (*plan).invalItems = items;
            (*plan).canSetTag = query.canSetTag;
            (*plan).queryId = query.queryId;
            (*plan).stmt_location = query.stmt_location;
            (*plan).stmt_len = query.stmt_len;
            Some(plan)
        }
    }
}

/// The memory context of a template.
fn new_context() -> pg_sys::MemoryContext {
    // SAFETY: a parent that lives as long as the backend, and a literal name.
    unsafe {
        kept!(pg_sys::AllocSetContextCreateInternal(
            pg_sys::TopMemoryContext,
            c"pg_arrow_cache template".as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        ))
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        // SAFETY: the context is the template's own, and nobody uses what it holds any more.
        unsafe { kept!(pg_sys::MemoryContextDelete(self.context)) };
    }
}
