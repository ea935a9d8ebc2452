//! What a check of a query tree has found so far, and what follows from it once all of the tree was seen.

use std::collections::HashSet;
use std::ffi::CString;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::pg::backend::WalkDepth;
use crate::query::enclosing::Enclosing;
use crate::query::types::TypeFacts;

/// A function that is to blame for a refusal.
#[derive(Clone, Copy, Debug)]
pub struct Blamed {
    /// The function.
    pub function: pg_sys::Oid,
    /// What is wrong with it, as the rest of the sentence "It calls …,".
    pub because: Option<&'static str>,
}

/// Where in a query the check is, as far as the clock is concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ClockPlace {
    /// In no clock expression.
    Outside,
    /// In one.
    Inside,
    /// In what a function consists of that counts from today: CURRENT_DATE is in the key.
    FromToday,
    /// Not in the query itself: in what a function consists of, or in a constraint. No value of the clock there is in
    /// the key.
    Elsewhere,
}

/// The findings of one check.
pub(super) struct EligibilityChecker {
    /// The first reason found not to cache the answer.
    pub(super) reason: Option<Reason>,
    /// The function that is to blame, if it is one.
    pub(super) offender: Option<Blamed>,
    /// A function was met that calls output functions of its arguments' types.
    pub(super) calls_output: bool,
    /// A function was met whose result depends on settings.
    pub(super) reads_settings: bool,
    /// Functions whose definitions have been checked.
    pub(super) defined: HashSet<pg_sys::Oid>,
    /// A function was met that is declared pure.
    pub(super) calls_declared: bool,
    /// A function in SQL was met whose body the server runs.
    pub(super) runs_bodies: bool,
    /// What is checked belongs to what a built-in function consists of, its defaults included. No query tree tells that
    /// functions of users are called there.
    pub(super) is_in_built_in: bool,
    /// A collation was met that can be dropped: no lock protects it until the server uses it.
    pub(super) collates_by_name: bool,
    /// The types met.
    pub(super) types: TypeFacts,
    /// Custom settings that the query reads by name.
    pub(super) settings: Vec<CString>,
    /// Where the check is.
    pub(super) clock: ClockPlace,
    /// A side of the comparison that the check is in: what is compared with a column of a table, if gaps can be found.
    pub(super) bounded: *mut pg_sys::Node,
    /// How many clock expressions were met.
    pub(super) clocks: usize,
    /// The call whose columns the query lists, which have been checked (`readings`).
    pub(super) lists_columns: *mut pg_sys::FuncExpr,
    /// Texts become dates (`coercions`), or ages are counted from today: this counts as one of them.
    pub(super) reads_day: bool,
    /// The query reads something: a relation, a function in FROM, or VALUES.
    pub(super) reads_something: bool,
    /// The queries around the node that is checked. The tree outlives the check.
    pub(super) queries: Enclosing<'static>,
    pub(super) depth: WalkDepth,
}

impl EligibilityChecker {
    /// A check that has not begun.
    pub(super) fn new(depth: WalkDepth) -> Self {
        Self {
            reason: None,
            offender: None,
            calls_output: false,
            reads_settings: false,
            defined: HashSet::new(),
            calls_declared: false,
            runs_bodies: false,
            is_in_built_in: false,
            collates_by_name: false,
            types: TypeFacts::NONE,
            settings: Vec::new(),
            clock: ClockPlace::Outside,
            bounded: std::ptr::null_mut(),
            clocks: 0,
            lists_columns: std::ptr::null_mut(),
            reads_day: false,
            reads_something: false,
            queries: Enclosing::NONE,
            depth,
        }
    }

    /// Stops the walk for `reason`: returns true.
    pub(super) fn refuse(&mut self, reason: Reason) -> bool {
        self.reason.get_or_insert(reason);
        true
    }

    /// Stops the walk because of a function: returns true.
    pub(super) fn blame(&mut self, function: pg_sys::Oid, reason: Reason) -> bool {
        self.blame_with(Blamed { function, because: None }, reason)
    }

    /// Stops the walk because of a function of a user, and of something about it that the reason does not tell.
    pub(super) fn blame_because(&mut self, function: pg_sys::Oid, because: &'static str) -> bool {
        self.blame_with(Blamed { function, because: Some(because) }, Reason::UserDefinedFunction)
    }

    fn blame_with(&mut self, offender: Blamed, reason: Reason) -> bool {
        if self.reason.is_none() {
            self.offender = Some(offender);
        }
        self.refuse(reason)
    }

    pub(super) fn note_type(&mut self, type_oid: pg_sys::Oid) {
        self.types.note(type_oid);
    }

    /// Returns true if rows that are computed later may differ, because of settings or of definitions that no lock
    /// protects.
    pub(super) fn reads_session(&self) -> bool {
        self.reads_settings
            || self.collates_by_name
            || self.types.enums
            || self.types.text_search
            || !self.types.row_types.is_empty()
            || self.calls_declared
            || self.runs_bodies
    }

    /// What only shows when all was seen.
    pub(super) fn conclude(&self) -> Result<(), Reason> {
        if let Some(reason) = self.reason {
            return Err(reason);
        }
        let unseen_calls = self.calls_output && self.types.foreign;
        for (found, reason) in [
            (unseen_calls, Reason::StableFunction),
            (self.types.too_complex, Reason::TooComplex),
            (self.types.temporary, Reason::TemporaryRelation),
            (self.types.are_compared_unseen(), Reason::UserDefinedFunction),
        ] {
            if found {
                return Err(reason);
            }
        }
        Ok(())
    }
}
