//! Whether some role may lack the right to execute a built-in function that cacheable queries call. The server asks
//! when it starts a plan, or computes a part of it in advance, so a role meets the error in those plans alone that have
//! the call. No query tree names all functions of its plans: the planner adds comparisons of its own. So this is asked
//! of all of them. The finding is kept for the version of the definitions that it was made under: state of this
//! backend; no lock.

use std::cell::Cell;

use pgrx::pg_sys;

use super::rules;
use crate::pg::backend_local::Local;
use crate::pg::built_in_functions;
use crate::pg::tree::Tree;
use crate::query::eligibility::QueryTraits;
use crate::query::opened_relations::opened_by;
use crate::query::volatility::{self, FunctionVerdict};

/// The version of ddl, and whether some right is withdrawn under it.
static FOUND: Local<Cell<Option<(u64, bool)>>> = Local::new(Cell::new(None));

/// Returns true if a role may lack the right to execute a built-in function that a plan may call. `ddl` is the present
/// version of ddl, which every change of a right to a function moves.
pub fn may_lack(ddl: u64) -> bool {
    match FOUND.get() {
        // What this transaction withdraws itself moves the version when it commits.
        Some((version, lacks)) if version == ddl && rules::check_own_writes(&[]).is_ok() => lacks,
        _ => ask(ddl),
    }
}

/// Returns true if a plan may ask for the right to execute other functions at another time: those of partitions that
/// its start leaves out now. The server asks for them when it starts a scan. So of two times in one gap,
/// one may be refused.
pub fn may_depend_on_time(plan: Tree<'_, pg_sys::PlannedStmt>, traits: &QueryTraits, ddl: u64) -> bool {
    // Most plans have no partitions.
    !plan.appendRelations.is_null() && opened_by(plan).prunes_at_start && (traits.asks_for_rights() || may_lack(ddl))
}

#[cold]
fn ask(ddl: u64) -> bool {
    // The version was read before. What it stands for is seen after the messages about it.
    // SAFETY: called inside a transaction.
    unsafe { kept!(pg_sys::AcceptInvalidationMessages()) };
    let Some(withdrawn) = built_in_functions::withdrawn() else { return true };
    // Those that no cacheable query calls do not count: initdb withdraws some itself.
    let is_called = |verdict| !matches!(verdict, FunctionVerdict::Unsound(_));
    let lacks = withdrawn.into_iter().any(|function| is_called(volatility::check(function)));
    // What a transaction sees that has changed definitions itself may be rolled back. What others are changing may be
    // seen as it was.
    if rules::check_own_writes(&[]).is_ok() && rules::are_settled() {
        FOUND.set(Some((ddl, lacks)));
    }
    lacks
}
