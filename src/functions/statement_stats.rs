//! What became of the executions of each statement, for the view `statements`. The store takes its locks itself; nothing is raised while one is
//! held.

use arrow_cache_core::{Reason, RoomyVec, StatementCounter};
use pgrx::pg_sys;

use super::stats::milliseconds;
use super::visible::Visible;
use crate::error::or_raise;
use crate::pg::backend;
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::Set;
use crate::pg::signature::Signature;
use crate::pg::sql_function::sql_function;
use crate::shmem;

/// The columns of the view `statements`.
type StatementRow = (pg_sys::Oid, pg_sys::Oid, i64, i64, i64, i64, i64, i64, Option<&'static str>, f64);

fn statement_counts_data(_: FunctionCall<'_>) -> Set<StatementRow> {
    let store = shmem::required();
    let visible = Visible::to_current_user();
    let mut rows: Vec<StatementRow> = Vec::new();
    let mut gathered = Ok(());
    store.for_each_statement(backend::now(), |key, counts| {
        if gathered.is_ok() && visible.includes_role(key.user) {
            let count = |counter| counts.count(counter) as i64;
            gathered = rows.add((
                pg_sys::Oid::from(key.user),
                pg_sys::Oid::from(key.database),
                key.query_id,
                count(StatementCounter::Hits),
                count(StatementCounter::Misses),
                count(StatementCounter::Stale),
                count(StatementCounter::StaleHits),
                count(StatementCounter::Bypasses),
                counts.last_reason.map(Reason::name),
                milliseconds(counts.saved_micros),
            ));
        }
    });
    or_raise(gathered);
    Set::new(rows)
}

sql_function!(statement_counts_data, Signature::of(&[]), "arrow_cache_statement_counts_data");

/// How many statements had to make room for others in the view `statements`.
fn statements_dropped(_: FunctionCall<'_>) -> i64 {
    shmem::required().statements_dropped() as i64
}

sql_function!(statements_dropped, Signature::of(&[]), "arrow_cache_statements_dropped");
