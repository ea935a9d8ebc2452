//! What `arrow_cache.why` tells of a time that a query compares with a column. Keeps nothing.

use pgrx::pg_sys;

use crate::lookup::{Question, not_sought};
use crate::pg::tree::child;
use crate::query::clock::Clock;
use crate::query::clock_settling::settles;
use crate::query::{Cacheable, Verdict, plan_marker};

/// A column that is compared with a moving time, and in which the rows around that cost too much to find.
pub fn compared_column(question: &Question<'_>) -> Option<(pg_sys::Oid, i16)> {
    let plan = question.plan;
    let Verdict::Cacheable(Cacheable { clock: trees, .. }) = plan_marker::read(plan) else { return None };
    let clock = Clock { trees, params: question.params, one_message: true, settles };
    not_sought(&clock, child!(plan.planTree)?.total_cost)
}
