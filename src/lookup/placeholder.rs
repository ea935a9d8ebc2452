//! Hits without planning. When a query is planned to which an answer is stored, the planner hook hands out a
//! *placeholder*: a plan that asks for the rights that the query asks for, costs what the plan cost that computed the
//! answer, and stands for the stored answer. Whether that answer holds is decided when the plan is started, under its
//! own snapshot, as for any other hit; if not, the query is planned then. No partition or child is locked for a
//! placeholder: what is answered needs none of them.
//!
//! A placeholder must reach no plan that is kept, and not outlive its message. So it is handed out only for a query of
//! the simple protocol, and for a plan that is made for the values of one Bind.

use std::ffi::c_void;

use arrow_cache_core::{CacheKey, EntryView, Pin};
use pgrx::pg_sys;

use super::call::Call;
use super::rules::{self, Stored};
use super::statement::tree_of;
use super::{forms, portal, price, quick_statements};
use crate::arrow::column::{Column, are_described};
use crate::invalidation::own_writes::has_transaction_id;
use crate::pg::memory_context::room_for;
use crate::pg::query_desc::QueryDesc;
use crate::query::clock::{Clock, Cuts};
use crate::query::clock_settling::settles;
use crate::query::eligibility::QueryTraits;
use crate::query::hashes::FormId;
use crate::query::identity::{self, Identified, Identity};
use crate::query::key::{self, Asked, Keyed};
use crate::query::statement_terms::StatementTerms;
use crate::query::{Versions, environment, plan_marker};
use crate::serve::{self, Hit};
use crate::session;
use crate::settings;
use crate::shmem::{self, SharedStore};

/// What a placeholder stands for. Lives in the memory of its message, like the query.
pub struct Pending<'m> {
    /// How to plan the query after all.
    pub call: Call<'m>,
    form: FormId,
    versions: Versions,
    key: CacheKey,
    /// The answer that it was made for.
    entry: u64,
    terms: StatementTerms,
    /// The times that are not in the key. They stay the same until it starts, in the same message.
    cuts: Cuts,
}

impl Pending<'_> {
    /// Puts it into the current memory context; `None` if that has no room.
    fn in_current_memory(self) -> Option<*mut c_void> {
        // SAFETY: a live context, and room for what is written.
        unsafe {
            let place = room_for::<Self>(pg_sys::CurrentMemoryContext)?;
            place.write(self);
            Some(place.cast())
        }
    }
}

/// A placeholder for a one-shot query, if an answer with these columns seems to be stored, which needs no plan, and the
/// transaction has written nothing that it rests on.
pub fn make(
    store: &SharedStore,
    call: &Call<'_>,
    identified: Identified,
    traits: &QueryTraits,
    versions: Versions,
    columns: &[Column],
) -> Option<*mut pg_sys::PlannedStmt> {
    // A bound portal may be read under other settings than it was started with: `serve::Guard` needs the real plan for
    // that.
    let needs_plan = call.has_values() && traits.reads_session;
    if needs_plan || settings::verify_sample_rate() > 0.0 {
        return None;
    }
    // What a rule has made of a statement may start in a later message, when what a placeholder stands for is gone.
    if call.query().querySource != pg_sys::QuerySource::QSRC_ORIGINAL {
        return None;
    }
    // Who may read what declared functions read, and which row types are in it, is told by a plan.
    if traits.calls_declared || !traits.extras.is_none() || often_gives_way(call) {
        return None;
    }
    let form = identified.form.id();
    let identified = Identified { tree: tree_of(store, identified.tree, traits, versions).ok()?, ..identified };
    let Sought { terms, key, cuts } = Sought::of(store, call, identified)?;
    let read = |view: EntryView<'_>, descriptor: &[u8]| {
        let is_fit = !view.needs_plan() && are_described(columns, descriptor);
        let relations = || if has_transaction_id() { view.relations().collect() } else { Vec::new() };
        is_fit.then(|| (view.entry_id(), view.plan_cost(), relations()))
    };
    let (entry, cost, relations) = answer(store, (key, &cuts), terms, read)??;
    // Whoever has written to what it reads gets a plan of his own before the snapshot is taken.
    rules::check_own_writes(&relations).ok()?;
    let place = Pending { call: *call, form, versions, key, entry, terms, cuts }.in_current_memory()?;
    serve::placeholder(call.query(), place, cost)
}

/// Returns true if the answer to a one-shot query seems to be stored: then its plan is not run.
pub fn is_answered(store: &SharedStore, call: &Call<'_>) -> bool {
    if often_gives_way(call) {
        return false;
    }
    let identified = identity::of(call.query().as_node(), store.seed()).and_then(Identity::into_identified);
    let sought = identified.ok().and_then(|identified| Sought::of(store, call, identified));
    sought.is_some_and(|Sought { key, cuts, terms, .. }| answer(store, (key, &cuts), terms, |_, _| ()).is_some())
}

/// The answer that a query asks for.
struct Sought {
    terms: StatementTerms,
    key: CacheKey,
    cuts: Cuts,
}

impl Sought {
    /// That of a one-shot query; `None` if its key cannot be told before it is planned.
    fn of(store: &SharedStore, call: &Call<'_>, identified: Identified) -> Option<Self> {
        let Identified { tree, clock, .. } = identified;
        let terms = StatementTerms::of(call.own_text()).ok()?;
        let environment = environment::hash(store.seed(), &[]).ok()?;
        let asked = Asked { tree, plan_made_otherwise: None, environment };
        // What the planner is given for a Bind is read at its Execute.
        let clock = Clock { trees: clock, params: call.params(), one_message: !call.has_values(), settles };
        let Keyed { key, cuts } = key::of(&asked, &clock, store.seed()).ok()?;
        Some(Self { terms, key, cuts })
    }
}

/// Returns true if a placeholder would often give way when it starts, so that the query is planned late. In REPEATABLE
/// READ the snapshot may be older than the answer, SERIALIZABLE gets none, and named portals may be read later.
fn often_gives_way(call: &Call<'_>) -> bool {
    // SAFETY: a plain global of the backend.
    let has_old_snapshot = unsafe { pg_sys::XactIsoLevel } >= pg_sys::XACT_REPEATABLE_READ as i32;
    has_old_snapshot || (call.has_values() && !portal::is_bound_without_name())
}

/// What is read of the answer under a key, if that seems to hold.
fn answer<R>(
    store: &SharedStore,
    (key, cuts): (CacheKey, &Cuts),
    terms: StatementTerms,
    read: impl FnOnce(EntryView<'_>, &[u8]) -> R,
) -> Option<R> {
    let pin = store.lookup(key)?;
    let view = store.view(&pin);
    let fitting = cuts.without_gaps(view.descriptor()).filter(|_| rules::is_promising(store, &pin, terms));
    let result = fitting.map(|descriptor| read(view, descriptor));
    store.unpin(pin);
    result
}

/// What the plan of a query stands for, if it is a placeholder.
pub fn pending<'q>(desc: QueryDesc<'q>) -> Option<&'q Pending<'q>> {
    // SAFETY: only `make` hands placeholders out, and what they stand for lives as long as their message, which the
    // query does not outlive.
    unsafe { plan_marker::stands_for(desc.plan()).map(|pending| &*pending.cast_const().cast()) }
}

/// Puts the serving plan in the place of a placeholder, if the answer holds. If not, the query has to be planned; says
/// which.
pub fn serve_pending(desc: QueryDesc<'_>, flags: i32, pending: &Pending<'_>) -> bool {
    price::go_on();
    let is_served = serves(desc, flags, pending);
    price::pause();
    is_served
}

/// As `serve_pending`.
fn serves(desc: QueryDesc<'_>, flags: i32, pending: &Pending<'_>) -> bool {
    if !session::at_top_level()
        || flags != 0
        || portal::check_statement(desc, desc.plan().as_ptr()).is_err()
        // What a named portal holds open, and whether its current row may be updated, is told by its own plan.
        || portal::may_be_read_later()
    {
        return false;
    }
    let Some(store) = shmem::store() else { return false };
    if rules::definitions(&store) != pending.versions {
        return false;
    }
    let Some(columns) = forms::columns(pending.form, pending.versions) else { return false };
    let Some(pin) = valid_answer(&store, desc, pending, &columns) else { return false };
    let hit = Hit { pin, stale: None, columns, guard: None, open: Vec::new() };
    let Ok(pin) = serve::swap_plan(desc, hit) else { return false };
    if let Some(fingerprint) = quick_statements::take_planned() {
        quick_statements::note_hit(fingerprint, store.view(pin).execution_micros());
    }
    session::begin_undecided();
    true
}

/// The entry that the placeholder was made for, if it holds under the snapshot of the query.
#[inline]
fn valid_answer(store: &SharedStore, desc: QueryDesc<'_>, pending: &Pending<'_>, columns: &[Column]) -> Option<Pin> {
    let snapshot = rules::snapshot(store, desc.snapshot_data()).ok()?;
    let question = (&pending.cuts, |own: &[u8]| are_described(columns, own));
    let pin = match rules::find_entry(store, pending.key, question, &snapshot, pending.terms) {
        Ok(Stored::Valid(pin)) if store.view(&pin).entry_id() == pending.entry => return Some(pin),
        // Another answer has taken the place of the one that the placeholder was made for.
        Ok(Stored::Valid(pin) | Stored::Outdated(pin)) => pin,
        Ok(Stored::Nothing) | Err(_) => return None,
    };
    store.unpin(pin);
    None
}
