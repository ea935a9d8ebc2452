//! What became of the executions of each statement, for the view `statements`. The store takes its locks itself;
//! nothing is raised while one is held.

use arrow_cache_core::{Reason, RoomyVec, StatementCounter};
use pgrx::pg_sys;

use super::stats::milliseconds;
use super::visible::Visible;
use crate::error::or_raise;
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::{Columns, Set};
use crate::pg::sql_function::sql_function;
use crate::shmem;

fn statement_counts_data(_: FunctionCall<'_>) -> Set<impl Columns + use<>> {
    let store = shmem::required();
    let visible = Visible::to_current_user();
    let mut rows = Vec::new();
    let mut gathered = Ok(());
    store.for_each_statement(|key, counts| {
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

sql_function!(statement_counts_data, "arrow_cache_statement_counts_data");
