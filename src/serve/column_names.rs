//! The columns of a serving plan as EXPLAIN (VERBOSE) shows them: by their names. The expressions that made them belong
//! to the real plan.

use pgrx::pg_sys::{self, NodeTag};

use crate::pg::tree::{Tree, child, children};

/// An entry of a range table that has nothing but the names of columns, and a target list that refers to it.
pub struct NamedColumns {
    /// The entry.
    pub entry: *mut pg_sys::RangeTblEntry,
    /// The target list.
    pub targets: *mut pg_sys::List,
}

/// The columns of a scan by their names, for place `number` (from 1) in the range table. In the current memory context.
pub fn named(scan: Tree<'_, pg_sys::CustomScan>, number: i32) -> NamedColumns {
    let mut names = std::ptr::null_mut();
    let mut targets = std::ptr::null_mut();
    for target in children!(scan.scan.plan.targetlist as TargetEntry) {
        let Some(column) = child!(target.expr).and_then(Tree::as_a::<pg_sys::Var>) else { continue };
        let name = if target.resname.is_null() { c"?column?".as_ptr() } else { target.resname.cast_const() };
        // SAFETY: a name of the plan or a literal; nodes of the server, made in the current memory context.
        unsafe {
            names = kept!(pg_sys::lappend(names, kept!(pg_sys::makeString(kept!(pg_sys::pstrdup(name)))).cast()));
            let named =
                kept!(pg_sys::makeVar(number, target.resno, column.vartype, column.vartypmod, column.varcollid, 0));
            let entry = kept!(pg_sys::makeTargetEntry(named.cast(), target.resno, std::ptr::null_mut(), false));
            targets = kept!(pg_sys::lappend(targets, entry.cast()));
        }
    }
    // SAFETY: the entry is a node of its size, zeroed.
    unsafe {
        let entry: *mut pg_sys::RangeTblEntry =
            kept!(pg_sys::palloc0(std::mem::size_of::<pg_sys::RangeTblEntry>())).cast();
        (*entry).type_ = NodeTag::T_RangeTblEntry;
        (*entry).rtekind = pg_sys::RTEKind::RTE_RESULT;
        (*entry).eref = kept!(pg_sys::makeAlias(c"*RESULT*".as_ptr(), names));
        NamedColumns { entry, targets }
    }
}
