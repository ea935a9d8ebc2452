//! The functions and operators that a node of a query names, and what these consist of. Each function returns true to
//! stop the walk.

use std::ffi::c_void;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::{ClockPlace, EligibilityChecker};
use super::declared_functions::is_declared;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::error_passing::edge;
use crate::pg::lists::oids;
use crate::pg::object_ids::{FIRST_UNPINNED_OID, SQL_LANGUAGE};
use crate::pg::tree::{Tree, child};
use crate::query::clock::asks_for_time;
use crate::query::function_table::has;
use crate::query::function_table::properties::{FROM_TODAY, LISTING_COLUMNS, SEARCHING};
use crate::query::trusted_extensions::{is_family_of_user, is_of_user, is_trusted_function, is_trusted_operator};
use crate::query::volatility::definition::{self, Definition};
use crate::query::volatility::{self, FunctionVerdict};

/// Why a call of a user's function is refused, as the rest of the sentence "It calls …,".
const NOT_SQL: &str = "which is not written in SQL, nor declared pure";

/// Called by the server for each function that a node calls, operators' and casts' included.
unsafe extern "C-unwind" fn visit_function(function: pg_sys::Oid, context: *mut c_void) -> bool {
    let body = || {
        // SAFETY: the context is the checker that `check_functions_in` passed, for the time of the call.
        unsafe { (*context.cast::<EligibilityChecker>()).check_function(function) }
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

impl EligibilityChecker {
    /// Checks how something is sorted or grouped.
    pub(super) fn check_clause(&mut self, clause: &pg_sys::SortGroupClause) -> bool {
        self.check_operator(clause.eqop) || self.check_operator(clause.sortop)
    }

    /// Checks an operator and the function behind it; InvalidOid stands for none.
    ///
    /// The planner may put its negator or its commutator in its place, which its owner names. Those of users are
    /// therefore refused whatever their functions are, and so are built-in ones that a superuser has given one of a
    /// user's, or code of a user to hash or sort by.
    pub(super) fn check_operator(&mut self, operator: pg_sys::Oid) -> bool {
        if operator == pg_sys::InvalidOid {
            return false;
        }
        // SAFETY: reads catalogs about an operator that the query uses.
        let related =
            unsafe { [operator, kept!(pg_sys::get_negator(operator)), kept!(pg_sys::get_commutator(operator))] };
        related.into_iter().filter(|one| *one != pg_sys::InvalidOid).any(|one| {
            // SAFETY: reads a catalog; InvalidOid for what is no operator.
            let function = unsafe { kept!(pg_sys::get_opcode(one)) };
            let is_of_user = one.to_u32() >= FIRST_UNPINNED_OID && !is_trusted_operator(one);
            if is_of_user || hash_or_sort_by_user(one) {
                return self.blame(function, Reason::UserDefinedFunction);
            }
            self.check_function(function)
        })
    }

    pub(super) fn check_call(&mut self, call: Tree<'_, pg_sys::FuncExpr>) -> bool {
        if self.clock == ClockPlace::Inside && asks_for_time(call.funcid) {
            // One that is marked IMMUTABLE is computed when its query is planned, and a kept plan keeps that.
            if !volatility::is_stable(call.funcid) {
                return self.blame(call.funcid, Reason::SessionFunction);
            }
            return self.check_definition(call.funcid, definition::of(call.funcid));
        }
        if self.clock == ClockPlace::Outside && has(call.funcid, FROM_TODAY) && volatility::is_stable(call.funcid) {
            self.note_day();
            return self.check_definition_at(ClockPlace::FromToday, call.funcid, definition::of(call.funcid));
        }
        if call.funcid.to_u32() >= FIRST_UNPINNED_OID {
            return (!is_trusted_function(call.funcid) && self.check_call_of_user(call))
                || self.check_missing_arguments(call.funcid, child!(call.args));
        }
        if self.reads_named_state(call) {
            return self.reason.is_some() || self.check_body_of(call.funcid);
        }
        if has(call.funcid, LISTING_COLUMNS) {
            return self.check_call_with_columns(call);
        }
        self.check_function(call.funcid) || self.check_missing_arguments(call.funcid, child!(call.args))
    }

    /// Checks a call of a function that is not built in.
    fn check_call_of_user(&mut self, call: Tree<'_, pg_sys::FuncExpr>) -> bool {
        let Some(row) = CatalogRow::find(pg_sys::SysCacheIdentifier::PROCOID, call.funcid) else {
            return self.blame(call.funcid, Reason::UserDefinedFunction);
        };
        if is_declared(call.funcid, &row) {
            return self.check_declared(call, &row);
        }
        let is_in_sql = row.function().is_some_and(|form| form.prolang.to_u32() == SQL_LANGUAGE);
        if is_in_sql {
            return self.check_run_body(call, &row);
        }
        self.blame_because(call.funcid, NOT_SQL)
    }

    /// Checks what the planner adds to a call that leaves arguments out.
    pub(super) fn check_missing_arguments(
        &mut self,
        function: pg_sys::Oid,
        given: Option<Tree<'_, pg_sys::List>>,
    ) -> bool {
        let given = given.map_or(0, Tree::length);
        self.check_definition(function, definition::of_missing_arguments(function, given))
    }

    /// Checks the functions that a node names, as far as the server tells them.
    pub(super) fn check_functions_in(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        let context = (&raw mut *self).cast();
        // SAFETY: a valid node; what the server calls gets this checker back.
        unsafe { kept!(pg_sys::check_functions_in_node(node.as_ptr(), Some(visit_function), context)) }
    }

    /// Checks a function, and what it consists of.
    pub(super) fn check_function(&mut self, function: pg_sys::Oid) -> bool {
        match volatility::check(function) {
            FunctionVerdict::Sound => {}
            FunctionVerdict::ReadsSettings => self.reads_settings = true,
            FunctionVerdict::CallsOutputFunctions => {
                self.calls_output = true;
                self.reads_settings = true;
            }
            FunctionVerdict::Unsound(reason) => return self.blame(function, reason),
        }
        if function.to_u32() >= FIRST_UNPINNED_OID && !is_aggregate(function) {
            // One that counts like a built-in one, and is no more than its code.
            return false;
        }
        if has(function, SEARCHING) && self.reads_search_configuration() {
            return true;
        }
        self.defined.insert(function) && self.check_definition(function, definition::of(function))
    }

    /// Checks what a function consists of, as if the query had it in its place.
    pub(super) fn check_definition(&mut self, function: pg_sys::Oid, definition: Option<Definition>) -> bool {
        // What asks for the time there is in no clock expression of the query.
        self.check_definition_at(ClockPlace::Elsewhere, function, definition)
    }

    /// As `check_definition`, where of the time this much is in the key.
    fn check_definition_at(&mut self, at: ClockPlace, function: pg_sys::Oid, definition: Option<Definition>) -> bool {
        let Some(definition) = definition else { return self.blame(function, Reason::UserDefinedFunction) };
        let place = std::mem::replace(&mut self.clock, at);
        let around = self.is_in_built_in;
        self.is_in_built_in |= function.to_u32() < FIRST_UNPINNED_OID;
        let refused = definition.functions.iter().any(|part| self.check_function(*part))
            // SAFETY: trees that the server has read into the current memory context, for this check alone.
            || definition.trees.iter().filter_map(|tree| unsafe { Tree::enter(*tree) }).any(|tree| self.check_all(tree));
        (self.clock, self.is_in_built_in) = (place, around);
        refused
    }
}

fn is_aggregate(function: pg_sys::Oid) -> bool {
    // SAFETY: reads a catalog; what is not there is none.
    (unsafe { kept!(pg_sys::get_func_prokind(function)) }) as u8 == pg_sys::PROKIND_AGGREGATE
}

/// Returns true if code of a user hashes or sorts values where they are compared with this operator in bulk. An
/// operator of the server's that has no family of the server's may be put into one by a superuser. If it has one, the
/// planner sorts by that: it takes the first family of the list, which is in the order of OIDs (an index scan of
/// pg_amop), and OIDs of users are the greater ones. It takes another family only to merge with the rows of an index of
/// that family, in one of several plans.
fn hash_or_sort_by_user(operator: pg_sys::Oid) -> bool {
    let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: reads catalogs about an operator that the query uses; the list holds OIDs.
    unsafe {
        let hashes = kept!(pg_sys::get_op_hash_functions(operator, &raw mut left, &raw mut right));
        let sorting = oids(kept!(pg_sys::get_mergejoin_opfamilies(operator))).next();
        (hashes && (is_of_user(left) || is_of_user(right))) || sorting.is_some_and(is_family_of_user)
    }
}
