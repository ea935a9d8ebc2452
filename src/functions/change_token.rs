//! `arrow_cache.etag`: a token that stands for what a query holds now. Two equal tokens: the same answer. The query is
//! parsed and planned, and not executed. Nothing is kept. `arrow_cache.version` is made of it in SQL.

use std::ffi::CStr;

use arrow_cache_core::Reason;

use crate::error::CacheError;
use crate::export::{self, Pace};
use crate::lookup::{self, Question};
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::Text;
use crate::pg::sql_function::sql_function;
use crate::pg::tree::Tree;
use crate::shmem::{self, SharedStore};

/// The token of a query with its parameters. NULL if nothing can be promised: the cache would bypass the query, or
/// changes are under way.
fn etag(call: FunctionCall<'_>) -> Option<Text> {
    let store = shmem::required();
    let text = export::query_text(call)?;
    let arguments = export::query_parameters(call);
    let token = export::under_callers_snapshot(|| export::within(&text, || token_of(&store, &text, &arguments)));
    match token {
        Err(Reason::OutOfMemory) => CacheError::out_of_memory().raise(),
        // The user need not mend the other reasons.
        token => token.ok().map(Text),
    }
}

sql_function!(etag, "arrow_cache_etag");

/// The token of a query under the active snapshot. Raises what executing it would raise before its first row.
///
/// # Errors
/// The reason for which nothing can be promised.
fn token_of(store: &SharedStore, text: &CStr, arguments: &[export::Argument<'_>]) -> Result<Vec<u8>, Reason> {
    let definitions = lookup::definitions(store);
    let (plan, parameters) = export::plan(text, arguments, Pace::Whole);
    export::check_permitted(plan, text, parameters);
    // SAFETY: the active snapshot and the parameters live as long as this call.
    let (snapshot, parameters) =
        unsafe { (kept!(pg_sys::GetActiveSnapshot()).as_ref(), Tree::enter(parameters.as_ptr())) };
    let question = Question { params: parameters, ..Question::only_asked(plan, text, snapshot) };
    lookup::change_token(store, &question, definitions)
}
