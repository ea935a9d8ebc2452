//! Where LIMIT and OFFSET have cut the answer of an execution that is over. Reads the state of its topmost node.

use arrow_cache_core::Cut;
use pgrx::pg_sys::{self, LimitOption, LimitStateCond};

use crate::pg::query_desc::QueryDesc;

/// Where the answer of a query with LIMIT or OFFSET was cut. `rows` are those that it has given, to its end.
pub(super) fn of(query: QueryDesc<'_>, rows: u64) -> Cut {
    let anywhere = Cut { before: true, behind: true };
    let state: *const pg_sys::PlanState = query.plan_state();
    // SAFETY: the query has run and was not ended, so its nodes are there; a node of this kind is a `LimitState`.
    let limit = unsafe {
        let is_limit = state.as_ref().is_some_and(|state| state.type_ == pg_sys::NodeTag::T_LimitState);
        if is_limit { state.cast::<pg_sys::LimitState>().as_ref() } else { None }
    };
    // A parallel worker may have run it.
    let Some(limit) = limit else { return anywhere };
    if matches!(limit.lstate, LimitStateCond::LIMIT_INITIAL | LimitStateCond::LIMIT_RESCAN) {
        return anywhere;
    }
    // WITH TIES gives all rows that share the place of the last one.
    let may_be_full = !limit.noCount && limit.limitOption == LimitOption::LIMIT_OPTION_COUNT;
    Cut { before: limit.offset > 0, behind: may_be_full && rows >= limit.count.unsigned_abs() }
}
