//! A call of the planner: a rewritten query, and what is known of it before it is planned. The hook vouches for the
//! arguments once (`Call::of_hook`). A plain value.

use std::ffi::{c_char, c_int};

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::fingerprint::Fingerprint;
use super::portal;
use crate::pg::inlining::{Inlined, inlined};
use crate::pg::tree::Tree;
use crate::query::handed_times::with_times;
use crate::query::statement_terms::StatementTerms;
use crate::query::statement_text::{self, Text};
use crate::session;

/// The arguments of a planner hook, valid for `'m`: as long as the message that the query came with.
#[derive(Clone, Copy)]
pub struct Call<'m> {
    query: Tree<'m, pg_sys::Query>,
    /// The text that the query is part of, which ends in NUL.
    text: *const c_char,
    options: c_int,
    /// The values of its parameters, if it is planned for them.
    params: Option<Tree<'m, pg_sys::ParamListInfoData>>,
    /// The bodies of functions that were put into the query.
    bodies: Option<Bodies>,
}

/// Bodies of functions that stand in the place of the calls.
#[derive(Clone, Copy)]
struct Bodies {
    /// How many messages about changes of definitions the backend had received before.
    messages: u64,
    /// The functions that plans rest on.
    items: *mut pg_sys::List,
    depends_on_role: bool,
}

impl<'m> Call<'m> {
    /// The call of a hook.
    ///
    /// # Safety
    /// The arguments must be those of a planner hook, and nobody may have planned the query yet, which changes it.
    pub unsafe fn of_hook(
        query: *mut pg_sys::Query,
        text: *const c_char,
        options: c_int,
        params: pg_sys::ParamListInfo,
    ) -> Self {
        // SAFETY: the caller promises that the query is valid, so it is not null; the parameters may be.
        let (query, params) = unsafe { (Tree::enter(query).unwrap_unchecked(), Tree::enter(params)) };
        Self { query, text, options, params, bodies: None }
    }

    /// The call that plans another query in the place of this one.
    ///
    /// # Safety
    /// A valid query, which nobody has planned.
    pub unsafe fn of_other(self, query: *mut pg_sys::Query, options: c_int) -> Self {
        // SAFETY: the caller promises that the query is valid, so it is not null.
        Self { query: unsafe { Tree::enter(query).unwrap_unchecked() }, options, ..self }
    }

    /// Puts bodies in the place of calls, as planning would. Returns true if there are some now.
    ///
    /// # Errors
    /// As `inlined`.
    pub fn put_bodies(&mut self) -> Result<bool, Reason> {
        // SAFETY: called inside a transaction; a query that nobody has planned.
        let (messages, inlined) = unsafe {
            kept!(pg_sys::AcceptInvalidationMessages());
            (portal::messages_received(), inlined(self.query.as_ptr()))
        };
        if let Some(Inlined { query, items, depends_on_role }) = inlined? {
            // SAFETY: a copy just made.
            *self = unsafe { self.of_other(query, self.options) };
            self.bodies = Some(Bodies { messages, items, depends_on_role });
        }
        Ok(self.bodies.is_some())
    }

    /// Puts times that a query without FROM hands on where they are used, as planning would. Returns true if there are
    /// some.
    pub fn put_times(&mut self) -> bool {
        let Some(query) = with_times(self.query) else { return false };
        // SAFETY: a copy just made.
        *self = unsafe { self.of_other(query, self.options) };
        true
    }

    /// Returns true if bodies were put into the query, which its plan is to know of.
    pub fn has_bodies(&self) -> bool {
        self.bodies.is_some()
    }

    /// How many messages about changes of definitions the backend had received before bodies were put into the query.
    pub fn messages_before_bodies(&self) -> Option<u64> {
        self.bodies.map(|bodies| bodies.messages)
    }

    /// Adds what was inlined to what a plan just made rests on.
    ///
    /// # Safety
    /// A plan just made for this call, in the current memory context.
    pub unsafe fn note_bodies(&self, plan: *mut pg_sys::PlannedStmt) {
        let Some(Bodies { items, depends_on_role, .. }) = self.bodies else { return };
        // SAFETY: the caller's promise.
        unsafe {
            (*plan).invalItems = kept!(pg_sys::list_concat((*plan).invalItems, items));
            (*plan).dependsOnRole |= depends_on_role;
        }
    }

    /// The arguments of the hook.
    pub fn arguments(&self) -> (*mut pg_sys::Query, *const c_char, c_int, pg_sys::ParamListInfo) {
        (self.query.as_ptr(), self.text, self.options, self.params.map_or(std::ptr::null_mut(), Tree::as_ptr))
    }

    /// The rewritten query.
    pub fn query(&self) -> Tree<'m, pg_sys::Query> {
        self.query
    }

    /// The text that the query is part of.
    pub fn source(&self) -> *const c_char {
        self.text
    }

    /// Cursor options.
    pub fn options(&self) -> c_int {
        self.options
    }

    /// The values of its parameters, if it is planned for them.
    pub fn params(&self) -> Option<Tree<'m, pg_sys::ParamListInfoData>> {
        self.params
    }

    /// Returns true if it is planned for the values of its parameters.
    pub fn has_values(&self) -> bool {
        self.params.is_some()
    }

    /// Returns true if its text is that of the message under way. The text of a prepared statement is a copy.
    pub fn is_of_message(&self) -> bool {
        // SAFETY: a plain global of the backend.
        std::ptr::eq(self.text, unsafe { pg_sys::debug_query_string })
    }

    /// Returns true if it is part of the message under way, in which nothing runs yet.
    pub fn is_of_client(&self) -> bool {
        // SAFETY: a plain global of the backend.
        session::at_top_level() && self.is_of_message() && unsafe { pg_sys::ActivePortal.is_null() }
    }

    /// Returns true if the plan that is made now is for one execution, in the message under way. In the simple protocol
    /// nothing but the query is under way; a Bind plans for the values that it was given, and always tells the error
    /// context which (postgres.c, `exec_bind_message`). Utility statements have a portal, procedural languages an error
    /// context and, inside a statement, a level.
    pub fn is_one_shot(&self) -> bool {
        // SAFETY: a plain global of the backend.
        self.is_of_client() && (self.has_values() || unsafe { pg_sys::error_context_stack.is_null() })
    }

    /// Where its own text lies.
    pub fn own_text(&self) -> Text {
        let (mut location, mut length) = (self.query.stmt_location, self.query.stmt_len);
        if location <= 0 && length <= 0 {
            (location, length) = session::wrapped_text(self.text).unwrap_or((location, length));
        }
        // SAFETY: a call's text ends in NUL, and stays as long as the call.
        unsafe { Text::of(self.text, location, length) }
    }

    /// The fingerprint of its text, by which quick statements are known.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        Fingerprint::of_text(statement_text::raw(&self.own_text()))
    }

    /// Returns true if there may be a hint before the query.
    pub fn has_hint(&self) -> bool {
        StatementTerms::of(self.own_text()) != Ok(StatementTerms::USUAL)
    }
}
