//! Functions of users in SQL that are still called where the planner begins (`pg::inlining`): STRICT ones with CASE,
//! say. The planner may put their bodies in the place of the calls, compute them, or leave them to be run. Whatever it
//! does, they come to what their bodies consist of, which is checked like the query. Names in a body that is a text are
//! resolved when it runs, so the key says how (`name_resolution`), and a kept plan is answered only under the
//! definitions, the settings and the role that it was made under.

use pgrx::pg_sys;

use super::checker::{Blamed, EligibilityChecker};
use crate::pg::catalog_row::CatalogRow;
use crate::pg::compat::tree::KEEPS_BODIES;
use crate::pg::sql_body::{body_of, may_stand_in};
use crate::pg::subtransaction;
use crate::pg::tree::Tree;
use crate::pg::tree_search::search;
use crate::pg::type_catalog::{input_function, kind_of};
use crate::query::volatility::definition::Definition;

/// Why such a function is refused, as the rest of the sentence "It calls …,".
const NO_EXPRESSION: &str = "whose body is not one expression without tables and sub-queries";
const RUNS_OTHERWISE: &str = "which PostgreSQL does not inline, and whose body does not tell what it comes to";

impl EligibilityChecker {
    /// Checks a call of a function in SQL, whose row is `row`. True stops the walk.
    pub(super) fn check_run_body(&mut self, call: Tree<'_, pg_sys::FuncExpr>, row: &CatalogRow) -> bool {
        let function = call.funcid;
        // What the server has made of a body for the session may be older than the settings and names of now.
        if KEEPS_BODIES || !may_stand_in(row) || is_polymorphic(row) || is_temporary(row) {
            return self.blame_because(function, RUNS_OTHERWISE);
        }
        if !self.defined.insert(function) {
            return false;
        }
        // SAFETY: a valid call, whose types do not follow from those of its arguments.
        let body = subtransaction::attempt(|| unsafe { body_of(call.as_ptr(), row) });
        let Some(body) = body else {
            return self.blame_because(function, NO_EXPRESSION);
        };
        if self.is_in_built_in || (row.is_null(pg_sys::Anum_pg_proc_prosqlbody as i16) && reads_a_literal(body)) {
            return self.blame_because(function, RUNS_OTHERWISE);
        }
        self.runs_bodies = true;
        self.reads_settings = true;
        let refused = self.check_definition(function, Some(Definition { trees: vec![body], ..Definition::default() }));
        if refused {
            self.offender.get_or_insert(Blamed { function, because: None });
        }
        refused
    }
}

/// Returns true if a body may have another constant when it is read again: the word `now`, a name, or what a setting
/// decides on. The input functions of such types are not IMMUTABLE.
fn reads_a_literal(body: *mut pg_sys::Node) -> bool {
    let mut is_it = |node: Tree<'_, pg_sys::Node>| {
        node.as_a::<pg_sys::Const>().is_some_and(|constant| {
            // SAFETY: reads a catalog about the input function of a type.
            let volatility = || unsafe { kept!(pg_sys::func_volatile(input_function(constant.consttype).0)) } as u8;
            !constant.constisnull && volatility() != pg_sys::PROVOLATILE_IMMUTABLE
        })
    };
    // SAFETY: an expression of a valid tree.
    let found = unsafe { search(body, 0, &mut is_it) };
    found != Some(false)
}

/// Returns true if a function goes with its session, which nobody is told: later another one may have its OID.
fn is_temporary(row: &CatalogRow) -> bool {
    // SAFETY: reads a catalog about a schema.
    row.function().is_none_or(|form| unsafe { kept!(pg_sys::isAnyTempNamespace(form.pronamespace)) })
}

/// Returns true if what a function takes or returns depends on the call, so that each call may have another body.
fn is_polymorphic(row: &CatalogRow) -> bool {
    row.arguments()
        .is_none_or(|arguments| arguments.iter().any(|argument| kind_of(argument.type_oid) == pg_sys::TYPTYPE_PSEUDO))
}
