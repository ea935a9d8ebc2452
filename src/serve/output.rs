//! What EXPLAIN (VERBOSE) says a serving plan puts out: the names of its columns. The expressions that made them belong to
//! the real plan.

use pgrx::pg_sys::{self, NodeTag};

use crate::pg::lists::nodes;

/// An expression of this type that says nothing about its value, `VALUE`, in the current memory context: what a serving plan
/// puts out, unless it is shown to somebody.
pub fn some_value(type_oid: pg_sys::Oid, typmod: i32, collation: pg_sys::Oid) -> *mut pg_sys::Expr {
    // SAFETY: a node of this size, zeroed.
    unsafe {
        let value: *mut pg_sys::CoerceToDomainValue =
            pg_sys::palloc0(std::mem::size_of::<pg_sys::CoerceToDomainValue>()).cast();
        (*value).xpr.type_ = NodeTag::T_CoerceToDomainValue;
        (*value).typeId = type_oid;
        (*value).typeMod = typmod;
        (*value).collation = collation;
        (*value).location = -1;
        value.cast()
    }
}

/// Has EXPLAIN call the columns of a serving plan by their names: those of an entry of its range table that is nothing but
/// names. In the current memory context; lists that others share stay as they are.
///
/// # Safety
/// `stub` must be a plan that this backend owns, whose tree is `scan`.
pub unsafe fn name_columns(stub: *mut pg_sys::PlannedStmt, scan: &mut pg_sys::CustomScan) {
    // SAFETY: as the caller promises; the entry is a node of its size, zeroed.
    unsafe {
        let number = pg_sys::list_length((*stub).rtable) + 1;
        let mut names = std::ptr::null_mut();
        let mut list = std::ptr::null_mut();
        for target in nodes::<pg_sys::TargetEntry>(scan.scan.plan.targetlist) {
            let column = &*(*target).expr.cast::<pg_sys::Var>();
            let name = if (*target).resname.is_null() { c"?column?".as_ptr() } else { (*target).resname };
            names = pg_sys::lappend(names, pg_sys::makeString(pg_sys::pstrdup(name)).cast());
            let named = pg_sys::makeVar(number, (*target).resno, column.vartype, column.vartypmod, column.varcollid, 0);
            let entry = pg_sys::makeTargetEntry(named.cast(), (*target).resno, std::ptr::null_mut(), false);
            list = pg_sys::lappend(list, entry.cast());
        }
        let entry: *mut pg_sys::RangeTblEntry = pg_sys::palloc0(std::mem::size_of::<pg_sys::RangeTblEntry>()).cast();
        (*entry).type_ = NodeTag::T_RangeTblEntry;
        (*entry).rtekind = pg_sys::RTEKind::RTE_RESULT;
        (*entry).eref = pg_sys::makeAlias(c"*RESULT*".as_ptr(), names);
        (*stub).rtable = pg_sys::lappend(pg_sys::list_copy((*stub).rtable), entry.cast());
        scan.custom_scan_tlist = list;
        // Entries that the plan does not claim to read are not written before their columns' names.
        scan.custom_relids = pg_sys::bms_make_singleton(1);
    }
}
