//! Statements that are bound, prepared or cursors: the clock is applied at their first run. Their plan is the server's own, since its costs decide which
//! kind of plan the server makes next; the query goes along with it, taken apart (`kept`). At the first run it shows how many rows are read, and
//! whether settings, role and definitions are still those of the start. If the answer is then the same whenever its columns are computed,
//! the part is planned, and a plan that applies the clock to it takes the place of the server's own. Keeps nothing.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::kept::{self, Kept};
use super::planning::{ClockFree, plan, takes_apart};
use super::scan;
use crate::fragments::admission::limits_files;
use crate::fragments::exchange::{exchange, has_columns_of};
use crate::fragments::index_locks;
use crate::invalidation::own_writes;
use crate::lookup::clock_free::{self, Reading};
use crate::lookup::parts::{self, may_have_parts};
use crate::lookup::{self, Call, Planning, Question, definition_versions, portal};
use crate::pg::error_passing::kept;
use crate::pg::query_desc::QueryDesc;
use crate::pg::server;
use crate::pg::tree::Tree;
use crate::pg::tree_making::copy;
use crate::query::eligibility::QueryTraits;
use crate::query::hashes::EnvironmentHash;
use crate::query::shown_clock::{ShownClock, is_settled, take_apart, with_values};
use crate::query::statement_terms::StatementTerms;
use crate::query::updatable_cursor::is_updatable_scan;
use crate::query::{Versions, environment, plan_facts, plan_marker, row_bound};
use crate::{session, settings, shmem};

/// Under what a statement was started. All of it must be the same at its first run.
#[derive(Clone, Copy)]
pub struct Start {
    versions: Versions,
    environment: EnvironmentHash,
    pruning: u64,
    /// Number of the statement.
    statement: u64,
    /// Its rows may be read in any order.
    scrolls: bool,
}

/// What the plan of a query is to carry, if the clock may be applied to it when it runs; null otherwise. `planning` is what there was to do about the
/// query.
pub fn to_keep(call: &Call<'_>, planning: &Planning) -> *mut pg_sys::List {
    let kept = kept_parts(call, planning);
    // SAFETY: parts of queries that were just made.
    kept.map_or(std::ptr::null_mut(), |kept| unsafe { kept.to_list() })
}

fn kept_parts(call: &Call<'_>, planning: &Planning) -> Option<Kept> {
    let store = shmem::store()?;
    if !takes_apart(call, planning)
        || !session::at_top_level()
        || settings::debug_serve_fills()
        || limits_files()
        || StatementTerms::of(call.own_text()).is_err()
    {
        return None;
    }
    let query = match call.params() {
        None => call.query(),
        // SAFETY: a query that was just made.
        Some(params) => unsafe { Tree::enter(with_values(call.query(), params)?) }?,
    };
    let parts = take_apart(query)?;
    // SAFETY: the part is a valid query, which nobody has planned.
    let own = unsafe { Call::of_hook(parts.part, call.source(), call.options(), std::ptr::null_mut()) };
    let eligible = parts::before_planning(&store, &own).ok()?;
    let is_served = may_have_parts(eligible.traits()) && !(parts.computes_more && eligible.traits().may_fail);
    is_served.then(|| Kept {
        part: parts.part,
        projection: parts.projection,
        versions: eligible.versions(),
        under: environment::planning(store.seed(), environment::settings(store.seed())),
        form: eligible.form(),
        for_values: call.has_values(),
    })
}

/// What the start of a query comes to.
pub enum AtStart {
    /// It is none to which the clock could be applied.
    Other,
    /// It is one, but such statements are too quick for that.
    TooQuick,
    /// The clock may be applied to it at its first run.
    Waits(Start),
}

/// Asks about a query that is about to be started. `planned` is the plan that its portal knows.
pub fn at_start(query: QueryDesc<'_>, planned: *mut pg_sys::PlannedStmt, flags: i32) -> AtStart {
    match kept::of(query.plan()) {
        None => AtStart::Other,
        Some(kept) => at_start_of(query, planned, kept, flags),
    }
}

/// The same for a query of which something is kept.
#[inline(never)]
fn at_start_of(query: QueryDesc<'_>, planned: *mut pg_sys::PlannedStmt, kept: Kept, flags: i32) -> AtStart {
    match start_of(query, planned, &kept, flags) {
        None => AtStart::Other,
        Some(start) if clock_free::begin(query, kept.form) => {
            AtStart::Waits(Start { statement: session::statement_number(), ..start })
        }
        Some(_) => AtStart::TooQuick,
    }
}

/// Under what the statement is started; `None` if the clock will not be applied to it.
fn start_of(query: QueryDesc<'_>, planned: *mut pg_sys::PlannedStmt, kept: &Kept, flags: i32) -> Option<Start> {
    let store = shmem::store()?;
    let scrolls = lookup::scrolls(flags);
    let is_statement = !session::explaining()
        && (flags == 0 || scrolls)
        && session::at_top_level()
        && portal::runs(planned)
        && portal::check_statement(query, planned).is_ok();
    if !is_statement {
        return None;
    }
    let moves = match plan_marker::refusal_of(query.plan()) {
        Some(reason) => reason == Reason::MovingClock,
        None => clock_free::moves_at_start(query, store.seed()),
    };
    if !moves || (portal::may_be_updated() && is_updatable_scan(query.plan())) {
        return None;
    }
    // Planning now must give what it gave then, and raise nothing else.
    let versions = definition_versions(&store);
    let is_of_these_settings = kept.under == environment::planning(store.seed(), environment::settings(store.seed()));
    if !is_of_these_settings || settings::debug_serve_fills() {
        return None;
    }
    // That the server holds the plan valid is not enough: definitions may have changed while it was made, after the snapshot was taken.
    if versions != kept.versions {
        if !lookup::may_lack_execute(versions.ddl) {
            portal::ask_for_new_plan();
        }
        return None;
    }
    let (environment, pruning) = (parts::environment_now()?, plan_facts::pruning());
    Some(Start { versions, environment, pruning, statement: 0, scrolls })
}

/// Applies the clock to a query that is about to be run for the first time, forward, for up to `limit` rows (0: all), if its answer is then what it is
/// anyhow. Returns a descriptor that holds the execution of the server's own plan. What the server raises unwinds this frame, and fails the portal.
pub fn apply(query: QueryDesc<'_>, start: Start, limit: u64) -> Option<*mut pg_sys::QueryDesc> {
    let is_to_be_held = portal::is_first_read_to_be_held(query);
    if !(is_to_be_held || portal::is_before_first_row(query)) || !holds(&start) {
        return None;
    }
    let reads = Reads { limit, again: start.scrolls && !is_to_be_held };
    // SAFETY: the memory of the descriptor outlives the execution, and with it the plan.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(query.own_context());
        let own_plan = replace_plan(query, start.versions, reads);
        pg_sys::MemoryContextSwitchTo(caller);
        own_plan
    }
}

/// The statement runs the server's own plan.
pub fn note_not_applied(query: QueryDesc<'_>, start: Start) {
    clock_free::note_not_applied(query, start.statement);
}

/// Is everything as it was at the start?
fn holds(start: &Start) -> bool {
    let Some(store) = shmem::store() else { return false };
    !settings::debug_serve_fills()
        && !limits_files()
        && !own_writes::has_transaction_id()
        && definition_versions(&store) == start.versions
        && parts::environment_now() == Some(start.environment)
        && plan_facts::pruning() == start.pruning
}

/// How the rows of a query are read.
#[derive(Clone, Copy)]
struct Reads {
    /// The first run asks for so many; 0 for all.
    limit: u64,
    /// Rows may be read again.
    again: bool,
}

/// Plans the part, and puts the plan that applies the clock to it in the place of the plan that was started, unless the definitions have become newer than
/// `versions` meanwhile.
///
/// # Safety
/// The query must be started, and not have run. The current memory context must outlive it.
unsafe fn replace_plan(query: QueryDesc<'_>, versions: Versions, reads: Reads) -> Option<*mut pg_sys::QueryDesc> {
    let store = shmem::store()?;
    let kept = kept::of(query.plan())?;
    // SAFETY: copies of what the plan carries, which nobody has planned.
    unsafe {
        let parts = ShownClock { part: copy(kept.part), projection: copy(kept.projection), computes_more: false };
        let is_parallel = reads.limit == 0 && !reads.again && portal::runs_cached_plan();
        let parallel = if is_parallel { pg_sys::CURSOR_OPT_PARALLEL_OK as i32 } else { 0 };
        // A cursor is planned for its first rows: below a LIMIT another plan might compute, and fail for, other rows.
        let options = parallel | portal::options() & pg_sys::CURSOR_OPT_FAST_PLAN as i32;
        let (text, no_values) = (query.source(), std::ptr::null_mut());
        let call = Call::of_hook(parts.part, text, options, no_values);
        let eligible = parts::before_planning(&store, &call).ok()?;
        let traits = *eligible.traits();
        if !may_have_parts(&traits) || !index_locks::are_had(query.plan(), versions) {
            return None;
        }
        let plan_of_part = kept!(server::standard_planner(parts.part, text, options, no_values));
        let clock_free = ClockFree { parts, eligible, reading: Reading::InParts };
        let whole = plan(clock_free, plan_of_part, text)?;
        let params = if kept.for_values { no_values } else { query.params() };
        let part = scan::part_of(whole)?;
        let question = Question::only_asked(Tree::enter(part)?, query.source_text(), query.snapshot_data());
        let question = question.with_params(Tree::enter(params));
        let reading = reading(query, &kept, &traits, reads, || clock_free::stored_rows(&store, &question))?;
        scan::set_reading(whole, part, reading.when);
        // Planning was later than the snapshot.
        if !parts::are_current(&store, versions) {
            return None;
        }
        exchange(query, whole, params, |started| {
            has_columns_of(query, started) && (!reading.of_stored || scan::reads_stored(started))
        })
    }
}

/// How the rows of the part are read.
struct PartReading {
    when: Reading,
    /// Only if they are stored.
    of_stored: bool,
}

/// How the rows of the part may be read, so that nobody can tell when the columns are computed. `None` if they may not. `stored_rows` tells how many
/// there are, if they are stored.
///
/// If all rows are read in the first run, all columns are computed in it, whatever the plan. Otherwise the server's own plan may have computed the columns of
/// later rows, or not.
fn reading(
    query: QueryDesc<'_>,
    kept: &Kept,
    traits: &QueryTraits,
    Reads { limit, again }: Reads,
    stored_rows: impl FnOnce() -> Option<u64>,
) -> Option<PartReading> {
    // SAFETY: the parameters of a query are null or valid as long as it.
    let params = unsafe { Tree::enter(query.params()) };
    let most = || row_bound::of(query.plan(), params, query.snapshot_data());
    let ends = limit == 0 || most().is_some_and(|most| most <= limit);
    if ends && !again {
        return Some(PartReading { when: Reading::InThisRun, of_stored: false });
    }
    // SAFETY: the projection that the plan carries.
    let is_alike = !traits.reads_session && unsafe { is_settled(kept.projection) };
    if again {
        // The plan of a part is run forward.
        return is_alike.then_some(PartReading { when: Reading::InParts, of_stored: true });
    }
    if is_alike && !traits.may_fail {
        return Some(PartReading { when: Reading::InParts, of_stored: false });
    }
    let rows = stored_rows()?;
    let is_all = rows < limit || (rows == limit && !traits.reads_session);
    (is_all || is_alike).then_some(PartReading { when: Reading::InParts, of_stored: true })
}
