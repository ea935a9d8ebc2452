//! `arrow_cache.etag` and `arrow_cache.version`: tokens that stand for what a query, or relations, hold now. Two equal tokens: the same
//! answer. The query is parsed and planned, and not executed. Nothing is kept.

use std::ffi::{CStr, CString};

use arrow_cache_core::{Hash128, HashBuffer, Reason};
use pgrx::{PgMemoryContexts, pg_sys};

use crate::error::CacheError;
use crate::export::{self, Pace};
use crate::lookup::{self, Effort, Question};
use crate::pg::backend;
use crate::pg::function_call::FunctionCall;
use crate::pg::signature::Signature;
use crate::pg::sql_function::sql_function;
use crate::pg::tree::Tree;
use crate::query::relations;
use crate::shmem::{self, SharedStore};

/// A token as users see it.
fn shown(token: Hash128) -> String {
    format!("{:016x}{:016x}", token.hi, token.lo)
}

/// The token of a query with its parameters. NULL if nothing can be promised: the cache would bypass the query, or changes are under way.
fn etag(call: FunctionCall<'_>) -> Option<String> {
    let store = shmem::required();
    let text = export::query_text(call)?;
    let arguments = export::query_parameters(call);
    let token = export::under_callers_snapshot(|| export::within(&text, || token_of(&store, &text, &arguments, None)));
    or_null(token).map(shown)
}

sql_function!(etag, Signature::of(&[pg_sys::TEXTOID]).with_any_more().with_nulls(), "arrow_cache_etag");

/// The token of all rows of relations, as the user may see them. NULL if nothing can be promised of one of them, or if there is none.
fn version(call: FunctionCall<'_>) -> Option<String> {
    let store = shmem::required();
    let relations = call.oids(0)?;
    if relations.is_empty() {
        return None;
    }
    let mut all = HashBuffer::new();
    all.seed(store.seed());
    all.part(b"version");
    // The trees of each query go before those of the next. An error leaves them to the end of the statement.
    // SAFETY: a new context, child of the current one, used here alone.
    let scratch = unsafe {
        kept!(pg_sys::AllocSetContextCreateInternal(
            pg_sys::CurrentMemoryContext,
            c"arrow_cache version".as_ptr(),
            pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        ))
    };
    let mut promised = true;
    for relation in relations {
        backend::accept_interrupts();
        // SAFETY: nothing that was made in the context is used any more after its turn.
        let token = unsafe {
            let token = PgMemoryContexts::For(scratch).switch_to(|_| token_of_relation(&store, relation));
            kept!(pg_sys::MemoryContextReset(scratch));
            token
        };
        match token {
            Some(token) => all.hash(token),
            None => promised = false,
        }
    }
    // SAFETY: the context made above.
    unsafe { kept!(pg_sys::MemoryContextDelete(scratch)) };
    (promised && all.is_complete()).then(|| shown(all.finish()))
}

/// The token of all rows of a relation; `None` if nothing can be promised of them.
fn token_of_relation(store: &SharedStore, relation: pg_sys::Oid) -> Option<Hash128> {
    let text = all_rows_of(relation)?;
    or_null(export::under_callers_snapshot(|| export::within(&text, || token_of(store, &text, &[], Some(relation)))))
}

sql_function!(version, Signature::of(&[pg_sys::REGCLASSARRAYOID]), "arrow_cache_version");

/// A token, or none for a reason that the user need not mend.
fn or_null(token: Result<Hash128, Reason>) -> Option<Hash128> {
    match token {
        Err(Reason::OutOfMemory) => CacheError::out_of_memory().raise(),
        token => token.ok(),
    }
}

/// The token of a query under the active snapshot. Raises what executing it would raise before its first row. If `relation` is given, the
/// query must read it.
///
/// # Errors
/// The reason for which nothing can be promised.
fn token_of(
    store: &SharedStore,
    text: &CStr,
    arguments: &[export::Argument<'_>],
    relation: Option<pg_sys::Oid>,
) -> Result<Hash128, Reason> {
    let definitions = lookup::definitions(store);
    let (plan, parameters) = export::plan(text, arguments, Pace::Whole);
    export::check_permitted(plan, text, parameters);
    if relation.is_some_and(|relation| !relations::read_by(plan).any(|read| read == relation)) {
        // Its name has become that of another one.
        return Err(Reason::DdlInProgress);
    }
    // SAFETY: the active snapshot and the parameters live as long as this call.
    let (snapshot, parameters) =
        unsafe { (kept!(pg_sys::GetActiveSnapshot()).as_ref(), Tree::enter(parameters.as_ptr())) };
    let question = Question { params: parameters, effort: Effort::Read, ..Question::only_asked(plan, text, snapshot) };
    lookup::change_token(store, &question, definitions)
}

/// A query of all rows of a relation. `None` if there is no such relation.
fn all_rows_of(relation: pg_sys::Oid) -> Option<CString> {
    // SAFETY: catalog searches, which return copies in the current memory context, or null.
    let name = unsafe {
        let name = kept!(pg_sys::get_rel_name(relation));
        let schema = kept!(pg_sys::get_namespace_name(kept!(pg_sys::get_rel_namespace(relation))));
        if name.is_null() || schema.is_null() {
            return None;
        }
        CStr::from_ptr(kept!(pg_sys::quote_qualified_identifier(schema, name)))
    };
    // A name has at most 63 bytes, which quoting may double.
    CString::new([b"SELECT * FROM ", name.to_bytes()].concat()).ok()
}
