//! The plan that applies the clock to a clock-free part. Keeps nothing.

use std::ffi::CStr;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::scan;
use crate::fragments::admission::limits_files;
use crate::fragments::planning::{self as combining, Combination};
use crate::lookup::clock_free::Reading;
use crate::lookup::{self, Call, Eligible, Found, Lateness, Planning, Question};
use crate::pg::compat;
use crate::pg::error_passing::kept;
use crate::pg::lists::nodes;
use crate::pg::server;
use crate::pg::tree::Tree;
use crate::pg::tree_making::{alias, list_of, list_of_numbers, list_of_oids, new_node};
use crate::query::eligibility::expression_may_fail;
use crate::query::plan_marker;
use crate::query::shown_clock::{ShownClock, is_settled, is_shown, take_apart, with_values};
use crate::query::statement_terms::StatementTerms;
use crate::serve::plan_with;
use crate::session::{self, ExportReads};
use crate::{settings, shmem};

/// The name under which EXPLAIN shows the rows of the part.
const NAME: &CStr = c"clock_free";

/// The clock-free part of a query, which is to be planned in the place of the query. Plain data, so that an error may jump over it.
#[derive(Clone, Copy)]
pub struct ClockFree {
    pub(super) parts: ShownClock,
    pub(super) eligible: Eligible,
    /// When the rows of the part will be read.
    pub(super) reading: Reading,
}

impl ClockFree {
    /// The query to plan.
    pub fn query(&self) -> *mut pg_sys::Query {
        self.parts.part
    }
}

/// The combined query to plan in the place of a clock-free part, if that is worth being combined of parts itself. As `fragments::combine`.
pub fn combine(clock_free: ClockFree, call: &Call<'_>) -> Option<Combination> {
    // SAFETY: the part is a valid query, which nobody has planned.
    let own = unsafe { Call::of_hook(clock_free.query(), call.source(), call.options(), std::ptr::null_mut()) };
    combining::combine(&own, &clock_free.eligible)
}

/// The clock-free part of a query whose answer moves with the clock, if that part may be stored. `planning` is what there was to do about the query.
pub fn part(call: &Call<'_>, planning: &Planning) -> Option<ClockFree> {
    let store = shmem::store()?;
    let may_move = match planning {
        Planning::Refused(reason) => *reason == Reason::MovingClock,
        Planning::Eligible(eligible) => eligible.traits().clocks != 0,
        Planning::Ignored | Planning::Unchecked(_) | Planning::Ready(_) => false,
    };
    if !may_move || !is_shown(call.query()) {
        return None;
    }
    let reads = reads(call)?;
    let query = match call.params() {
        None => call.query(),
        // SAFETY: a query that was just made.
        Some(params) => unsafe { Tree::enter(with_values(call.query(), params)?) }?,
    };
    let moves = matches!(planning, Planning::Refused(_)) || lookup::clock_free::moves(query, store.seed());
    if !moves || settings::debug_serve_fills() || limits_files() {
        return None;
    }
    let parts = take_apart(query)?;
    // SAFETY: the part is a valid query, which nobody has planned.
    let own = unsafe { Call::of_hook(parts.part, call.source(), call.options(), std::ptr::null_mut()) };
    let eligible = lookup::parts::before_planning(&store, &own).ok()?;
    let may_differ = parts.computes_more && eligible.traits().may_fail;
    (!may_differ && reads_alike(reads, &parts, &eligible)).then_some(ClockFree {
        parts,
        eligible,
        reading: reads.reading(),
    })
}

/// How the rows of a query are read whose plan is to apply the clock.
#[derive(Clone, Copy)]
enum Reads {
    /// By the message under way, which has planned it.
    Message,
    Export(ExportReads),
}

impl Reads {
    fn reading(self) -> Reading {
        match self {
            Self::Message => Reading::AtOnce,
            Self::Export(ExportReads::All | ExportReads::Limited) => Reading::InThisRun,
            Self::Export(ExportReads::InParts) => Reading::InParts,
        }
    }
}

/// How the rows of a query are read whose plan is to apply the clock, if it may be planned for that now.
fn reads(call: &Call<'_>) -> Option<Reads> {
    if is_read_at_once(call) {
        return Some(Reads::Message);
    }
    session::export_reads(call.source()).map(Reads::Export)
}

/// Can nobody tell that the columns are computed for those rows alone that are read, and when each is read?
fn reads_alike(reads: Reads, parts: &ShownClock, eligible: &Eligible) -> bool {
    let traits = eligible.traits();
    // SAFETY: the projection of a query that was taken apart.
    unsafe {
        match reads {
            Reads::Message | Reads::Export(ExportReads::All) => true,
            Reads::Export(ExportReads::Limited) => !traits.may_fail && !expression_may_fail(parts.projection.cast()),
            Reads::Export(ExportReads::InParts) => {
                !(traits.may_fail || traits.reads_session) && is_settled(parts.projection)
            }
        }
    }
}

/// Is a query to be taken apart later, when its plan runs? `planning` is what there was to do about it. Whether its answer moves with the clock may show
/// only then.
pub(super) fn takes_apart(call: &Call<'_>, planning: &Planning) -> bool {
    let may_move = match planning {
        Planning::Refused(reason) => *reason == Reason::MovingClock,
        Planning::Eligible(eligible) => eligible.traits().clocks != 0,
        Planning::Ignored | Planning::Unchecked(_) | Planning::Ready(_) => false,
    };
    may_move && is_shown(call.query()) && reads(call).is_none()
}

/// Are all rows of the answer computed within the present message? EXPLAIN is read at once, too.
fn is_read_at_once(call: &Call<'_>) -> bool {
    let is_explained = session::explaining() && session::at_top_level() && call.is_of_message();
    let is_one_shot = !session::must_plan() && call.is_one_shot() || is_explained;
    is_one_shot && !call.has_values() && StatementTerms::of(call.own_text()).is_ok()
}

/// The plan of the query, made of the `plan` just made of its clock-free part, in the current memory context. `None` if the part may not be stored, or if the
/// server's own plan is to be shown.
///
/// # Safety
/// `text` must be that of the statement.
pub unsafe fn plan(
    clock_free: ClockFree,
    plan: *mut pg_sys::PlannedStmt,
    text: *const std::ffi::c_char,
) -> Option<*mut pg_sys::PlannedStmt> {
    // SAFETY: the plan was just made, in the current memory context, so that nodes may be added to it; the caller's promise.
    unsafe {
        let outer_items = pg_sys::list_copy((*plan).invalItems);
        lookup::after_planning(plan, clock_free.eligible);
        let own = Tree::enter(plan)?;
        if plan_marker::refusal_of(own).is_some() || (session::explaining() && !is_stored(own, text)) {
            return None;
        }
        let tree = (*plan).planTree;
        let whole = plan_with(own, std::ptr::null_mut())?;
        (*whole).invalItems = outer_items;
        (*whole).rowMarks = std::ptr::null_mut();
        let number = pg_sys::list_length((*plan).rtable) as u32 + 1;
        let (entry, columns) = columns_of(tree, number);
        (*whole).rtable = pg_sys::lappend(pg_sys::list_copy((*plan).rtable), entry.cast());
        let targets: *mut pg_sys::Node = clock_free.parts.projection.cast();
        let targets: *mut pg_sys::List = kept!(server::eval_const_expressions(std::ptr::null_mut(), targets)).cast();
        pg_sys::fix_opfuncids(targets.cast());
        let scan = scan::plan_node(columns, compat::unchecked_plan(plan), clock_free.reading);
        (*scan).custom_relids = pg_sys::bms_make_singleton(number as i32);
        (*scan).scan.plan.targetlist = targets;
        (*scan).scan.plan.startup_cost = (*tree).startup_cost;
        (*scan).scan.plan.total_cost = (*tree).total_cost;
        (*scan).scan.plan.plan_rows = (*tree).plan_rows;
        (*scan).scan.plan.plan_width = (*tree).plan_width;
        (*whole).planTree = &raw mut (*scan).scan.plan;
        lookup::refuse(whole, Reason::MovingClock);
        Some(whole)
    }
}

/// Is the answer of this plan stored? Asked for EXPLAIN.
///
/// # Safety
/// `text` must be that of the statement.
unsafe fn is_stored(plan: Tree<'_, pg_sys::PlannedStmt>, text: *const std::ffi::c_char) -> bool {
    let Some(store) = shmem::store() else { return false };
    // SAFETY: the caller's promise. A query is planned under an active snapshot, which outlives the question.
    let question = unsafe {
        if !pg_sys::ActiveSnapshotSet() {
            return false;
        }
        Question::only_asked(plan, CStr::from_ptr(text), pg_sys::GetActiveSnapshot().as_ref())
    };
    match lookup::find(&store, &question, Lateness::Refused) {
        Ok(Found::Hit(hit, _)) => {
            store.unpin(hit.pin);
            true
        }
        Ok(Found::Miss(_)) | Err(_) => false,
    }
}

/// An entry of the range table for the rows of the part, and target entries that name its columns: the junk columns of its plan are left out.
///
/// # Safety
/// A valid plan.
unsafe fn columns_of(tree: *mut pg_sys::Plan, number: u32) -> (*mut pg_sys::RangeTblEntry, *mut pg_sys::List) {
    // SAFETY: the caller's promise; new nodes.
    unsafe {
        let columns: Vec<*mut pg_sys::Node> = nodes::<pg_sys::TargetEntry>((*tree).targetlist)
            .filter(|target| !(**target).resjunk)
            .map(|target| (*target).expr.cast())
            .collect();
        let types = columns.iter().map(|column| pg_sys::exprType(*column));
        let modifiers = columns.iter().map(|column| pg_sys::exprTypmod(*column));
        let collations = columns.iter().map(|column| pg_sys::exprCollation(*column));
        let entry = new_node::<pg_sys::RangeTblEntry>();
        (*entry).rtekind = pg_sys::RTEKind::RTE_NAMEDTUPLESTORE;
        (*entry).enrname = pg_sys::pstrdup(NAME.as_ptr());
        (*entry).coltypes = list_of_oids(types.clone());
        (*entry).coltypmods = list_of_numbers(modifiers.clone());
        (*entry).colcollations = list_of_oids(collations.clone());
        (*entry).eref = alias(NAME, columns.iter().map(|_| c"value"));
        let targets =
            types.zip(modifiers).zip(collations).zip(1i16..).map(|(((type_oid, modifier), collation), place)| {
                let var = pg_sys::makeVar(number as _, place, type_oid, modifier, collation, 0);
                pg_sys::makeTargetEntry(var.cast(), place, std::ptr::null_mut(), false)
            });
        (entry, list_of(targets))
    }
}
