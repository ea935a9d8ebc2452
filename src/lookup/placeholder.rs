//! Hits without planning. When a query is planned to which an answer is stored, and a plan with the facts of the one that computed it
//! was seen before, the planner hook hands out a *placeholder*: a plan that has the columns, costs and permissions of the real one and
//! stands for the stored answer.
//! Whether that answer holds is decided when the plan is started, under its own snapshot, as for any other hit; if not, the
//! query is planned then.
//!
//! A placeholder must reach no plan that is kept, and not outlive its message. So it is handed out only for a query of the
//! simple protocol, and for a plan that is made for the values of one Bind.

use std::ffi::{c_char, c_int};

use arrow_cache_core::{CacheKey, text_shape};
use pgrx::pg_sys;

use super::count_and_log;
use super::find::{self, current_versions};
use crate::invalidation::own_writes;
use crate::lookup::known;
use crate::lookup::{portal, snapshot};
use crate::pg::tree::Tree;
use crate::query::hashes::{FactsHash, FormHash, FormId, TreeHash};
use crate::query::hint::StatementTerms;
use crate::query::key::{self, Asked, HashedText};
use crate::query::statement_text::{self, Text};
use crate::query::{Versions, environment, plan_facts};
use crate::serve::{self, Hit};
use crate::session::{self, Status};
use crate::shmem::SharedStore;
use crate::{settings, shmem};

/// The arguments of a planner hook.
#[derive(Clone, Copy)]
pub struct Call {
    /// The rewritten query.
    pub query: *mut pg_sys::Query,
    /// The text that it is part of.
    pub text: *const c_char,
    /// Cursor options.
    pub options: c_int,
    /// Parameters by value, or null.
    pub params: pg_sys::ParamListInfo,
}

/// What a placeholder stands for. Lives in the memory of its message, like the query.
pub struct Pending {
    /// How to plan the query after all.
    pub call: Call,
    form: FormId,
    versions: Versions,
    key: CacheKey,
    /// The facts of the plan that computed the answer, and of the template.
    facts: FactsHash,
    /// The normalized text.
    text: *const [u8],
    terms: StatementTerms,
}

/// Is the plan that is made now for one execution, in the message under way? In the simple protocol nothing but the query is
/// under way; a Bind plans for the values that it was given, and always tells the error context which (postgres.c,
/// `exec_bind_message`). Utility statements have a portal, procedural languages an error context and, inside a statement, a level.
///
/// # Safety
/// The arguments must be those of a planner hook.
pub unsafe fn is_one_shot(text: *const c_char, params: pg_sys::ParamListInfo) -> bool {
    // SAFETY: a plain global of the backend; as the caller promises.
    unsafe { is_of_client(text) && (pg_sys::error_context_stack.is_null() || !params.is_null()) }
}

/// Is this the text of the message under way, in which nothing runs yet?
///
/// # Safety
/// `text` must be the argument of a planner hook.
pub unsafe fn is_of_client(text: *const c_char) -> bool {
    // SAFETY: plain globals of the backend.
    unsafe {
        session::at_top_level() && std::ptr::eq(text, pg_sys::debug_query_string) && pg_sys::ActivePortal.is_null()
    }
}

/// The shape of a query's text, by which quick statements are known.
///
/// # Safety
/// `query` must be valid and part of `text`.
pub unsafe fn shape(query: *const pg_sys::Query, text: *const c_char) -> Option<u64> {
    // SAFETY: as the caller promises.
    unsafe {
        let own = text_of(query, text);
        text_shape(statement_text::raw(&own))
    }
}

/// May there be a hint before the query?
///
/// # Safety
/// `query` must be valid and part of `text`.
pub unsafe fn has_hint(query: *const pg_sys::Query, text: *const c_char) -> bool {
    // SAFETY: as the caller promises.
    unsafe { StatementTerms::of(text_of(query, text)) != Ok(StatementTerms::USUAL) }
}

/// # Safety
/// `query` must be valid and part of `text`.
unsafe fn text_of(query: *const pg_sys::Query, text: *const c_char) -> Text {
    // SAFETY: as the caller promises.
    unsafe { Text::of(text, (*query).stmt_location, (*query).stmt_len) }
}

/// A placeholder for a one-shot query of this form and tree, if its answer seems to be stored, and there is a template with the facts of
/// the plan that computed it: the plan that the query itself would get. With it a list of the relations (OIDs) that planning would lock
/// besides those that the query names.
///
/// # Safety
/// The call must be that of a planner hook.
pub unsafe fn make(
    store: &SharedStore,
    call: &Call,
    form: FormHash,
    tree: TreeHash,
    reads_session: bool,
    versions: Versions,
) -> Option<(*mut pg_sys::PlannedStmt, *mut pg_sys::List)> {
    // A bound portal may be read under other settings than it was started with: `serve::Guard` needs the real plan for that.
    let may_change = reads_session && !call.params.is_null();
    if may_change || settings::debug_serve_fills() || settings::verify_sample_rate() > 0.0 {
        return None;
    }
    // SAFETY: the placeholder points into the template, which `known` keeps until a later statement is planned; the rest as the
    // caller promises.
    unsafe {
        let text = text_of(call.query, call.text);
        let terms = StatementTerms::of(text).ok()?;
        let text = HashedText::of(text, store.seed()).ok()?;
        let environment = environment::hash(store.seed(), &[]).ok()?;
        let asked = Asked { tree, old_plan: None, planned_under: None, environment };
        let key = key::of(&asked, &text, Tree::enter(call.params), store.seed()).ok()?;
        let pin = store.lookup(key)?;
        let facts = FactsHash(store.view(&pin).plan());
        let promising = store.is_current(&pin);
        store.unpin(pin);
        if !promising || !plan_facts::hold_now(facts) {
            return None;
        }
        let template = known::template(form.id(), versions, facts)?;
        let text = palloc_copy(&text.bytes);
        let pending: *mut Pending = pg_sys::palloc(std::mem::size_of::<Pending>()).cast();
        pending.write(Pending { call: *call, form: form.id(), versions, key, facts, text, terms });
        Some((template.placeholder(call.query, pending.cast()), template.descendants()))
    }
}

/// # Safety
/// Called with a current memory context.
unsafe fn palloc_copy(bytes: &[u8]) -> *const [u8] {
    // SAFETY: as many bytes as are allocated.
    unsafe {
        let copy: *mut u8 = pg_sys::palloc(bytes.len().max(1)).cast();
        copy.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        std::ptr::slice_from_raw_parts(copy, bytes.len())
    }
}

/// What the plan stands for, if it is a placeholder.
///
/// # Safety
/// `query_desc` must be the argument of an ExecutorStart hook.
pub unsafe fn pending(query_desc: *const pg_sys::QueryDesc) -> Option<*const Pending> {
    // SAFETY: as the caller promises; only `make` hands placeholders out, and their message is under way.
    unsafe {
        serve::stands_for((*query_desc).plannedstmt).map(<*mut std::ffi::c_void>::cast_const).map(<*const _>::cast)
    }
}

/// Puts the serving plan in the place of a placeholder, if the answer holds. If not, the query has to be planned.
///
/// # Safety
/// `query_desc` and `flags` must be the arguments of an ExecutorStart hook, `pending` that of the placeholder.
pub unsafe fn serve_pending(query_desc: *mut pg_sys::QueryDesc, flags: i32, pending: *const Pending) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        if !session::at_top_level()
            || flags != 0
            || portal::check_statement(query_desc, (*query_desc).plannedstmt).is_err()
            // What a named portal holds open, and whether its current row may be updated, is told by its own plan.
            || portal::may_be_read_later()
        {
            return false;
        }
        let Some(store) = shmem::store() else { return false };
        let pending = &*pending;
        let current = current_versions(&store) == pending.versions;
        let Some(template) = known::template(pending.form, pending.versions, pending.facts).filter(|_| current) else {
            return false;
        };
        let Ok(snapshot) = snapshot::view(&store, (*query_desc).snapshot) else { return false };
        if own_writes::check_own_writes(template.relations()).is_err() {
            return false;
        }
        let Some(pin) = store.lookup(pending.key) else { return false };
        // Another answer may have taken the place of the one that the placeholder was made for.
        let fits = store.view(&pin).plan() == pending.facts.0;
        if !fits
            || find::examine(&store, &pin, &*pending.text, template.descriptor(), &snapshot, pending.terms) != Ok(true)
        {
            store.unpin(pin);
            return false;
        }
        let hit = Hit {
            pin,
            columns: template.columns().to_vec(),
            template: Some(template),
            guard: None,
            stays_open: portal::is_bound(),
            form: pending.form,
            facts: pending.facts,
            versions: pending.versions,
        };
        // The plan that serves keeps the entry pinned from here on.
        let entry = serve::entry_of(&hit);
        let served = serve::swap_plan(query_desc, hit);
        if served {
            session::begin_statement_as(Status::Hit);
            count_and_log(&store, &entry, (*query_desc).plannedstmt);
        }
        served
    }
}
