//! Plans that serve without being planned: made from the real plan of a query that was a hit, kept for queries of its form whose plans
//! have the same facts (`query::plan_facts`).
//!
//! A template has what the server wants of a plan before and beside running it: the range table with its permissions, the
//! columns, the costs. Its tree is one Custom Scan without rows. `placeholder` gives it to the server in a query's place;
//! `stub` puts the scan of an entry there once it is known that the answer holds, in prepared plans too.

use std::cell::RefCell;
use std::ffi::c_void;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;

use pgrx::pg_sys::{self, NodeTag};

use super::scan;
use super::stub;
use crate::arrow::column::{self, Column};
use crate::error::none_if_out_of_memory;
use crate::pg::compat;
use crate::pg::lists::{integers, nodes};
use crate::pg::tree::Tree;
use crate::query::key::HashedText;
use crate::query::opened_relations::opened_by;
use crate::query::relations;

/// A larger template is not kept: what it saves is little beside its query. In bytes.
const LARGEST: usize = 30 * 1024;
/// Longest text that is remembered beside a template, in bytes.
const LONGEST_TEXT: usize = 2 * 1024;

/// What is kept of a plan. Lives in a memory context of its own, which goes with it.
pub struct Template {
    context: pg_sys::MemoryContext,
    plan: *mut pg_sys::PlannedStmt,
    columns: Vec<Column>,
    descriptor: Vec<u8>,
    /// The relations that the plan reads, ascending.
    relations: Vec<u32>,
    /// All of them, in the order in which planning locks them, if some are partitions, or inherit: the query does not name these.
    locks: Vec<pg_sys::Oid>,
    /// Some of these are left out when the plan starts.
    prunes_at_start: bool,
    /// What a portal that may stay open holds open: lists of OIDs.
    tables: *mut pg_sys::List,
    indexes: *mut pg_sys::List,
    /// The text of a prepared statement that the template served, with the number of its plan.
    text: RefCell<Option<(u64, HashedText)>>,
}

impl Template {
    /// A template of a plan with these columns. `None` if the plan does not lend itself to it, or there is no memory.
    ///
    /// # Safety
    /// `real` must be a valid plan that may be cached.
    pub unsafe fn of(real: *mut pg_sys::PlannedStmt, columns: &[Column]) -> Option<Rc<Self>> {
        // SAFETY: as the caller promises.
        unsafe {
            let mut descends = false;
            for entry in nodes::<pg_sys::RangeTblEntry>((*real).rtable) {
                if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
                    // Foreign tables are asked more than a version.
                    if (*entry).relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE {
                        return None;
                    }
                    descends |= (*entry).inh;
                }
            }
            if (*real).transientPlan {
                return None;
            }
            let context = none_if_out_of_memory(|| {
                pg_sys::AllocSetContextCreateInternal(
                    pg_sys::TopMemoryContext,
                    c"pg_arrow_cache template".as_ptr(),
                    pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
                    pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
                )
            })?;
            let mut template = Self {
                context,
                plan: std::ptr::null_mut(),
                columns: columns.to_vec(),
                descriptor: column::describe(columns),
                relations: relations::of_plan(Tree::enter(real)?, Vec::new()),
                locks: if descends { relations::read_by(Tree::enter(real)?).collect() } else { Vec::new() },
                prunes_at_start: false,
                tables: std::ptr::null_mut(),
                indexes: std::ptr::null_mut(),
                text: RefCell::new(None),
            };
            let caller = pg_sys::MemoryContextSwitchTo(context);
            let filled = none_if_out_of_memory(AssertUnwindSafe(|| template.fill(real)));
            pg_sys::MemoryContextSwitchTo(caller);
            let small = pg_sys::MemoryContextMemAllocated(context, true) <= LARGEST;
            (filled.is_some() && small).then(|| Rc::new(template))
        }
    }

    /// Copies what is wanted of the plan into the current memory context.
    ///
    /// # Safety
    /// As `of`.
    unsafe fn fill(&mut self, real: *mut pg_sys::PlannedStmt) {
        // SAFETY: as the caller promises; the parts that the executor only reads are copied, the others dropped.
        unsafe {
            let scan: *mut pg_sys::CustomScan = pg_sys::palloc0(std::mem::size_of::<pg_sys::CustomScan>()).cast();
            stub::shape_like(&mut *scan, real, &self.columns);
            let tree = &*(*real).planTree;
            let plan = &mut (*scan).scan.plan;
            plan.startup_cost = tree.startup_cost;
            plan.total_cost = tree.total_cost;
            plan.plan_rows = tree.plan_rows;
            plan.plan_width = tree.plan_width;
            (*scan).methods = scan::placeholder_methods();
            // Names of columns belong to the real plan.
            plan.targetlist = pg_sys::copyObjectImpl(plan.targetlist.cast()).cast();
            let stub = stub::stripped(real, scan.cast());
            (*stub).rtable = pg_sys::copyObjectImpl((*stub).rtable.cast()).cast();
            compat::copy_permissions(stub);
            (*stub).relationOids = pg_sys::list_copy((*stub).relationOids);
            // The verdict: a placeholder is not judged again.
            (*stub).invalItems = std::ptr::null_mut();
            let opened = Tree::enter(real).map(opened_by).unwrap_or_default();
            self.prunes_at_start = opened.prunes_at_start;
            for table in opened.tables {
                self.tables = pg_sys::list_append_unique_oid(self.tables, table);
            }
            for index in opened.indexes {
                self.indexes = pg_sys::list_append_unique_oid(self.indexes, index);
            }
            self.plan = stub;
        }
    }

    /// The columns of the answer.
    pub fn columns(&self) -> &[Column] {
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

    /// The relations that planning locks besides those that a query names, which were locked when it was analysed: a list of OIDs
    /// in the current memory context.
    ///
    /// # Safety
    /// Called with a current memory context.
    pub unsafe fn descendants(&self) -> *mut pg_sys::List {
        let mut list = std::ptr::null_mut();
        for relation in &self.locks {
            // SAFETY: as the caller promises.
            list = unsafe { pg_sys::lappend_oid(list, *relation) };
        }
        list
    }

    /// The text of the statement whose plan has this number, if it was the last one that was remembered.
    pub fn text_of(&self, plan: u64) -> Option<HashedText> {
        self.text.borrow().as_ref().filter(|(own, _)| *own == plan).map(|(_, text)| text.clone())
    }

    /// Remembers the text of the statement whose plan has this number, unless it is a long one: those are made anew each time.
    pub fn remember_text(&self, plan: u64, text: &HashedText) {
        if text.bytes.len() <= LONGEST_TEXT {
            *self.text.borrow_mut() = Some((plan, text.clone()));
        }
    }

    /// The scan of the template, without an entry.
    ///
    /// # Safety
    /// What it points to lives as long as the template.
    pub unsafe fn scan(&self) -> pg_sys::CustomScan {
        // SAFETY: the tree of a template is such a node.
        unsafe { *(*self.plan).planTree.cast::<pg_sys::CustomScan>() }
    }

    /// A plan that stands for `pending`, for a query of the template's form, in the current memory context.
    ///
    /// # Safety
    /// The plan must not outlive the template, unless it is copied; `query` must be valid.
    pub unsafe fn placeholder(&self, query: *const pg_sys::Query, pending: *mut c_void) -> *mut pg_sys::PlannedStmt {
        // SAFETY: as the caller promises; both are copies of nodes of their size.
        unsafe {
            let scan: *mut pg_sys::CustomScan = pg_sys::palloc(std::mem::size_of::<pg_sys::CustomScan>()).cast();
            scan.copy_from_nonoverlapping((*self.plan).planTree.cast(), 1);
            // As numbers, which copying a plan leaves as they are.
            let address = pending as usize as u64;
            (*scan).custom_private = pg_sys::lappend_int(std::ptr::null_mut(), (address >> 32) as i32);
            (*scan).custom_private = pg_sys::lappend_int((*scan).custom_private, address as i32);
            let plan: *mut pg_sys::PlannedStmt = pg_sys::palloc(std::mem::size_of::<pg_sys::PlannedStmt>()).cast();
            plan.copy_from_nonoverlapping(self.plan, 1);
            (*plan).planTree = scan.cast();
            (*plan).canSetTag = (*query).canSetTag;
            (*plan).queryId = (*query).queryId;
            (*plan).stmt_location = (*query).stmt_location;
            (*plan).stmt_len = (*query).stmt_len;
            plan
        }
    }

    /// Do plans like it leave out partitions when they start?
    pub fn prunes_at_start(&self) -> bool {
        self.prunes_at_start
    }

    /// The tables and indexes that plans like it hold open: lists of OIDs.
    pub fn opened(&self) -> (*mut pg_sys::List, *mut pg_sys::List) {
        (self.tables, self.indexes)
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        // SAFETY: the context is the template's own, and nobody uses what it holds any more.
        unsafe { pg_sys::MemoryContextDelete(self.context) };
    }
}

/// What a plan stands for, if it is a placeholder.
///
/// # Safety
/// `plan` must be valid.
pub unsafe fn stands_for(plan: *const pg_sys::PlannedStmt) -> Option<*mut c_void> {
    // SAFETY: as the caller promises; only placeholders have these methods.
    unsafe {
        let tree = (*plan).planTree;
        if tree.is_null() || (*tree).type_ != NodeTag::T_CustomScan {
            return None;
        }
        let scan: *const pg_sys::CustomScan = tree.cast();
        if !std::ptr::eq((*scan).methods, scan::placeholder_methods()) {
            return None;
        }
        let mut words = integers((*scan).custom_private).map(|word| u64::from(word.cast_unsigned()));
        let address = words.next()? << 32 | words.next()?;
        Some(address as usize as *mut c_void)
    }
}
