//! Conditions on columns of a table, in the words of the planner's pruning.

use pgrx::pg_sys;

use crate::pg::tree::Tree;
use crate::pg::tree_making::{column_like, copy, list_of, new_node, replaced};

/// A condition `column operator constant` of a query's WHERE, which only rows pass for which it is true.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The condition itself, with the column on the left.
    pub clause: *mut pg_sys::Node,
    /// The column's number in the table that the query names.
    pub column: i16,
    /// The constant, which is not null; a null pointer if its value is known later.
    pub value: *mut pg_sys::Const,
}

/// What a bound says of the columns of a table, which are those of relation 1.
#[derive(Clone, Copy)]
pub struct AboutTable {
    /// The bound.
    pub holds: *mut pg_sys::Node,
    /// What is true of all rows that do not pass it; null if that is not known.
    pub fails: *mut pg_sys::Node,
}

impl Bound {
    /// What it says of the table; `None` if its value is not known.
    pub fn about_table(&self) -> Option<AboutTable> {
        if self.value.is_null() {
            return None;
        }
        let mut named = None;
        let mut name = |node: Tree<'_, pg_sys::Node>, _depth: u32| {
            node.as_a::<pg_sys::Var>()?;
            // SAFETY: a column of a valid query.
            let own: *mut pg_sys::Node = unsafe { column_like(1, self.column, node.as_ptr()).cast() };
            named = Some(own);
            Some(own)
        };
        // SAFETY: a comparison of a column with a constant, of which copies are changed; reads a catalog.
        unsafe {
            let holds: *mut pg_sys::OpExpr = replaced(self.clause, &mut name).cast();
            let negator = kept!(pg_sys::get_negator((*holds).opno));
            let fails = if negator == pg_sys::InvalidOid || !kept!(pg_sys::op_strict((*holds).opno)) {
                std::ptr::null_mut()
            } else {
                let opposite = copy(holds);
                (*opposite).opno = negator;
                (*opposite).opfuncid = kept!(pg_sys::get_opcode(negator));
                let is_null = new_node::<pg_sys::NullTest>();
                (*is_null).arg = named?.cast();
                (*is_null).nulltesttype = pg_sys::NullTestType::IS_NULL;
                kept!(pg_sys::make_orclause(list_of([opposite.cast::<pg_sys::Node>(), is_null.cast()]))).cast()
            };
            Some(AboutTable { holds: holds.cast(), fails })
        }
    }
}
