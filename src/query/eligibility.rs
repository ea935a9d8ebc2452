//! Whether the answer to a query may be kept at all. Walks a rewritten query tree and finds the first reason not to.
//! What it finds depends on the query's form (`identity`) and the definitions in the catalogs alone, so it is done once
//! for all queries of a form. A node of a kind that is not known (`node_details`) is a reason too.

mod checker;
mod coercions;
mod declared_functions;
mod join_columns;
mod named_functions;
mod node_details;
mod readings;
mod run_bodies;
mod session_values;
mod set_operations;
mod walk;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::row_types_and_settings::Extras;
use super::trusted_extensions;
use crate::pg::backend::WalkDepth;
use crate::pg::tree::Tree;
pub use checker::Blamed;
use checker::{ClockPlace, EligibilityChecker};
pub use declared_functions::{PURE, may_be_declared};

/// What an eligible query asks that its answer depends on.
#[derive(Clone, Copy, Debug)]
pub struct QueryTraits {
    /// Rows that are computed later may differ: they depend on settings, all of which are in the key, on who asks, or
    /// on definitions that no lock protects.
    pub reads_session: bool,
    /// Values of enums are in it, or may be.
    pub rests_on_enums: bool,
    /// What else the answer rests on.
    pub extras: Extras,
    /// Executing it again gives the same rows (`checking` says so), if no LIMIT leaves rows out.
    pub repeatable: bool,
    /// A LIMIT may leave rows out.
    pub is_limited: bool,
    /// How many clock expressions it has (`clock`).
    pub clocks: usize,
    /// It calls functions that are declared pure: what they read is seen when they run.
    pub calls_declared: bool,
    /// It calls functions in SQL whose bodies the server runs.
    pub runs_bodies: bool,
    /// Bodies of functions stand in it: the planner asks for the right to execute these (`lookup::Call`).
    pub has_bodies: bool,
    /// Some extensions were trusted when it was checked.
    pub trusts: bool,
}

impl QueryTraits {
    /// Returns true if planning it may ask for the right to execute functions that are not the server's own.
    pub fn asks_for_rights(&self) -> bool {
        self.resolves_names() || self.has_bodies || self.trusts
    }

    /// Returns true if names in functions are resolved while it runs. What they stand for by then is told by the
    /// version of all definitions and the way of resolving names (`name_resolution`).
    pub fn resolves_names(&self) -> bool {
        self.calls_declared || self.runs_bodies
    }
}

/// Checks a rewritten query before the planner takes it apart. Returns its traits, or the first reason found not to
/// cache the answer, and the function that is to blame then, if it is one.
pub fn check_query(query: Tree<'_, pg_sys::Query>) -> (Result<QueryTraits, Reason>, Option<Blamed>) {
    if reads_nothing(query) {
        return (Err(Reason::NoRelation), None);
    }
    let here = 0u8;
    let mut checker = EligibilityChecker::new(WalkDepth::from(&here));
    checker.check_all(query.as_node());
    let offender = checker.offender.filter(|_| checker.reason != Some(Reason::MovingClock));
    let traits = checker.conclude().and_then(|()| {
        if !checker.reads_something {
            return Err(Reason::NoRelation);
        }
        let trusts = trusted_extensions::fingerprint() != 0;
        Ok(QueryTraits {
            reads_session: checker.reads_session(),
            rests_on_enums: checker.types.enums,
            extras: Extras::keep(&checker.types.row_types, &checker.settings),
            repeatable: false,
            is_limited: false,
            clocks: checker.clocks,
            calls_declared: checker.calls_declared,
            runs_bodies: checker.runs_bodies,
            has_bodies: false,
            trusts,
        })
    });
    (traits, offender)
}

/// Checks an expression, or a list of expressions, that is part of no query: a constraint, say. Returns whether its
/// value depends on settings in the key, or on definitions that queries with the same types would rest on.
///
/// # Errors
/// The first reason found not to cache what rests on it.
pub fn check_expression(expression: Option<Tree<'_, pg_sys::Node>>) -> Result<bool, Reason> {
    let here = 0u8;
    let mut checker = EligibilityChecker::new(WalkDepth::from(&here));
    checker.clock = ClockPlace::Elsewhere;
    if let Some(expression) = expression {
        checker.check_all(expression);
    }
    checker.conclude()?;
    Ok(checker.reads_session())
}

/// Returns true if it can be told without a walk that the query reads nothing. Some clients send thousands of
/// statements such as `SELECT 1`.
pub fn reads_nothing(query: Tree<'_, pg_sys::Query>) -> bool {
    query.rtable.is_null() && !query.hasSubLinks
}
