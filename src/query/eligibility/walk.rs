//! The walk of a check: each node of a query, what it says by itself, and what is below it. Each function returns true
//! to stop the walk.

use std::ffi::c_void;

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, NodeTag};

use super::checker::{ClockPlace, EligibilityChecker};
use super::node_details::{makes_a_type, names_collation, type_of};
use crate::pg::compat::tree::walkers;
use crate::pg::error_passing::edge;
use crate::pg::tree::{Tree, child, child_oids, children, match_node};
use crate::query::node_table::in_query;
use crate::query::types::is_foreign;
use crate::query::unused_columns::is_unused;
use crate::query::volatility::definition;

/// Called by the server's walkers for each part of a node; true stops the walk.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    let body = || {
        // SAFETY: the context is the checker that `check_all` passed, lent to nobody else while the walker calls; the
        // node is null or part of the tree that is checked.
        unsafe { Tree::enter(node).is_some_and(|node| (*context.cast::<EligibilityChecker>()).check_all(node)) }
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

/// The walk. Each function returns true to stop it.
impl EligibilityChecker {
    /// Checks a node and all below it.
    pub(super) fn check_all(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        let here = 0u8;
        if self.depth.is_passed(&here) {
            return self.refuse(Reason::TooComplex);
        }
        if self.is_unused_column(node) {
            return false;
        }
        let enters = self.enters_clock(node);
        let stopped = self.reason.is_some() || self.check_node(node) || self.check_below(node);
        if enters {
            self.clock = ClockPlace::Outside;
        }
        stopped
    }

    /// Returns true if this is a column that nothing uses (`unused_columns`), and more than a column of a table.
    fn is_unused_column(&self, node: Tree<'_, pg_sys::Node>) -> bool {
        let Some(column) = node.as_a::<pg_sys::TargetEntry>() else { return false };
        let is_plain = child!(column.expr).is_none_or(|expression| {
            matches!(expression.as_node().tag(), NodeTag::T_Var | NodeTag::T_Const | NodeTag::T_Param)
        });
        !is_plain && is_unused(column, self.queries)
    }

    /// Checks what is below a node.
    fn check_below(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        let context = (&raw mut *self).cast();
        match_node! { node;
            Query(query) => {
                // Which columns of a join the query uses, its column references tell (`join_columns`).
                let flags =
                    pg_sys::QTW_EXAMINE_RTES_BEFORE | pg_sys::QTW_EXAMINE_SORTGROUP | pg_sys::QTW_IGNORE_JOINALIASES;
                let around = self.queries;
                // SAFETY: the check is over before the tree is gone.
                self.queries = unsafe { Tree::enter(query.as_ptr()) }.map_or(around, |query| around.within(query));
                // SAFETY: a valid query; what the walker calls gets this checker back.
                let stopped = unsafe { kept!(walkers::query_tree_walker(query.as_ptr(), Some(visit), context, flags as i32)) };
                self.queries = around;
                stopped
            },
            // The walker above descends into it by itself.
            RangeTblEntry(_entry) => false,
            // SAFETY: a valid node of a kind that the server's walker knows; what it calls gets this checker back.
            _ => unsafe { kept!(walkers::expression_tree_walker(node.as_ptr(), Some(visit), context)) },
        }
    }

    /// Checks one node alone.
    fn check_node(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        if makes_a_type(node) {
            self.note_type(type_of(node));
        }
        self.collates_by_name = self.collates_by_name || names_collation(node);
        for function in definition::unseen_casts(node) {
            // `clock` has the server write such a text by the type's output function.
            if self.clock == ClockPlace::Inside || self.check_function(function) {
                return self.blame(function, Reason::UserDefinedFunction);
            }
        }
        match_node! { node;
            Query(query) => self.check_query_itself(&query),
            RangeTblEntry(entry) => self.check_range_table_entry(&entry),
            Var(var) => self.check_var(&var) || self.check_join_column(&var),
            SortGroupClause(clause) => self.check_clause(&clause),
            SetOperationStmt(operation) => {
                self.check_conversions(operation)
                    || children!(operation.groupClauses as SortGroupClause).any(|clause| self.check_clause(&clause))
            },
            WindowClause(window) => [window.startInRangeFunc, window.endInRangeFunc]
                .into_iter()
                .any(|function| function != pg_sys::InvalidOid && self.check_function(function)),
            FuncExpr(call) => self.check_call(call),
            WindowFunc(call) => {
                self.check_function(call.winfnoid) || self.check_missing_arguments(call.winfnoid, child!(call.args))
            },
            SQLValueFunction(value) => self.check_session_value(&value),
            OpExpr | T_DistinctExpr | T_NullIfExpr (operator) => {
                self.compares_with_time(operator)
                    || self.joins_otherwise(operator)
                    || self.check_operator(operator.opno)
                    || self.check_functions_in(node)
            },
            ScalarArrayOpExpr(operator) => self.check_operator(operator.opno) || self.check_functions_in(node),
            RowCompareExpr(row) => {
                child_oids!(row.opnos).any(|operator| self.check_operator(operator)) || self.check_functions_in(node)
            },
            MinMaxExpr(expression) => {
                // Its comparison function is found through the type, not named by the tree.
                self.types.note_contained(expression.minmaxtype);
                (is_foreign(expression.minmaxtype) && self.refuse(Reason::UserDefinedFunction))
                    || (self.clock == ClockPlace::Inside && self.check_comparison_in_clock(expression.minmaxtype))
            },
            SubscriptingRef(subscript) => {
                // SAFETY: reads a catalog about a type of the tree.
                let handler = unsafe { kept!(pg_sys::get_typsubscript(subscript.refcontainertype, std::ptr::null_mut())) };
                self.check_function(handler)
            },
            _ => self.check_other_node(node),
        }
    }

    /// Checks a node of a kind that names no function, or shows it to the server's own walker of functions.
    fn check_other_node(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        if let Some(reason) = in_query(node.tag()).refusal {
            return self.refuse(reason);
        }
        match_node! { node;
            Const(constant) => self.note_type(constant.consttype),
            Param(param) => self.note_type(param.paramtype),
            RelabelType(relabel) => self.note_type(relabel.resulttype),
            // Rows without a name are compared column by column.
            RowExpr(row) => {
                for column in children!(row.args as Node) {
                    self.types.note_contained(type_of(column));
                }
            },
            CoerceViaIO(coercion) => return self.check_coercion(node, coercion),
            RangeTblFunction(function) => {
                if self.check_listed_columns(function) {
                    return true;
                }
            },
            _ => {}
        }
        self.check_functions_in(node)
    }
}
