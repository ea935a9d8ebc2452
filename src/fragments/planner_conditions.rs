//! The conditions that the planner itself asks of a table: those that a query has, and those that it concludes from them.
//! They say which partitions the server's own plan leaves out. They are found by planning the query as if its tables had
//! no partitions, which takes no longer than planning it over one table. What is sought is state of this backend, for as
//! long as the planner runs.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys;

use crate::lookup::Call;
use crate::lookup::parts;
use crate::pg::backend_local::Local;
use crate::pg::lists::nodes;
use crate::pg::tree::Tree;
use crate::pg::tree_making::{copy, replaced_in_query};

/// Marks the table: longer than a name in a query can be. Planning may run other queries, which read the table, too.
const MARK: &CStr = c"pg_arrow_cache: the table whose conditions the planner is asked for, by a name that no query has";

/// The table whose conditions are sought, and what was found. Plain data.
#[derive(Clone, Copy)]
struct Sought {
    /// 0 for none.
    table: pg_sys::Oid,
    conditions: *mut pg_sys::List,
    /// The planner has met it.
    is_met: bool,
}

const NOTHING: Sought = Sought { table: pg_sys::InvalidOid, conditions: std::ptr::null_mut(), is_met: false };

static SOUGHT: Local<Cell<Sought>> = Local::new(Cell::new(NOTHING));

/// Nothing is sought any more when it is dropped, after an error too.
struct Search;

impl Drop for Search {
    fn drop(&mut self) {
        SOUGHT.set(NOTHING);
    }
}

/// The conditions that the planner asks of a table of a query, which are about the columns of relation 1: a list in the
/// current memory context. None of a table that the query names twice. `None`
/// if the planner does not get to the table.
pub fn of(call: &Call<'_>, table: pg_sys::Oid) -> Option<*mut pg_sys::List> {
    // SAFETY: reads a catalog.
    if unsafe { kept!(pg_sys::get_rel_relkind(table)) } as u8 != pg_sys::RELKIND_PARTITIONED_TABLE {
        return Some(std::ptr::null_mut());
    }
    let params = call.params().map_or(std::ptr::null_mut(), Tree::as_ptr);
    // SAFETY: a copy of a valid query, which nobody else knows.
    unsafe {
        let query = copy(call.query().as_ptr());
        let mut named = leave_out_children(query, table);
        replaced_in_query(query, &mut |node, _depth| {
            named += node.as_a::<pg_sys::Query>().map_or(0, |below| leave_out_children(below.as_ptr(), table));
            None
        });
        if named != 1 {
            return Some(std::ptr::null_mut());
        }
        SOUGHT.set(Sought { table, ..NOTHING });
        let _search = Search;
        parts::plan(&Call::of_hook(query, call.source(), 0, params));
        let Sought { conditions, is_met, .. } = SOUGHT.get();
        is_met.then_some(conditions)
    }
}

/// Has a query level read its tables without their partitions and children, and marks the table. Returns how often it
/// names that.
///
/// # Safety
/// A valid query that the caller may change.
unsafe fn leave_out_children(query: *mut pg_sys::Query, table: pg_sys::Oid) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        let mut named = 0;
        for entry in nodes::<pg_sys::RangeTblEntry>((*query).rtable) {
            (*entry).inh = false;
            if (*entry).relid == table {
                (*entry).alias = kept!(pg_sys::makeAlias(MARK.as_ptr(), std::ptr::null_mut()));
                named += 1;
            }
        }
        named
    }
}

/// Returns true if a table's conditions are sought.
pub fn are_sought() -> bool {
    SOUGHT.get().table != pg_sys::InvalidOid
}

/// Notes the conditions of a relation that is being planned, if they are sought.
///
/// # Safety
/// The arguments must be those of a path hook.
pub unsafe fn note(rel: *mut pg_sys::RelOptInfo, entry: *mut pg_sys::RangeTblEntry) {
    let sought = SOUGHT.get();
    // SAFETY: the caller's promise. The planner's conditions are copied.
    unsafe {
        let is_marked = (*entry).alias.as_ref().is_some_and(|alias| CStr::from_ptr(alias.aliasname) == MARK);
        if (*entry).relid != sought.table || !is_marked {
            return;
        }
        let conditions: *mut pg_sys::List = copy(kept!(pg_sys::extract_actual_clauses((*rel).baserestrictinfo, false)));
        kept!(pg_sys::ChangeVarNodes(conditions.cast(), (*rel).relid as i32, 1, 0));
        // It plans a query with a lone min or max twice, at last as the query stands.
        SOUGHT.set(Sought { conditions, is_met: true, ..sought });
    }
}
