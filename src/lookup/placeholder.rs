//! Hits without planning. When a query is planned to which an answer is stored, and a plan with the facts of the one that computed it
//! was seen before, the planner hook hands out a *placeholder*: a plan that has the columns, costs and permissions of the real one and
//! stands for the stored answer.
//! Whether that answer holds is decided when the plan is started, under its own snapshot, as for any other hit; if not, the
//! query is planned then.
//!
//! A placeholder must reach no plan that is kept, and not outlive its message. So it is handed out only for a query of the
//! simple protocol, and for a plan that is made for the values of one Bind.

use std::ffi::c_void;
use std::rc::Rc;

use arrow_cache_core::{CacheKey, Pin};
use pgrx::pg_sys;

use super::call::Call;
use super::outcome::note_hit;
use super::rules::{self, Stored};
use super::verdict::meaning;
use super::{kept_templates, portal, price, quick_statements, single_flight, staleness};
use crate::pg::memory_context::room_for;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::Tree;
use crate::query::clock::{Clock, Cuts};
use crate::query::eligibility::QueryTraits;
use crate::query::hashes::{FactsHash, FormId};
use crate::query::identity::{self, Identified, Identity};
use crate::query::key::{self, Asked, Keyed};
use crate::query::statement_terms::StatementTerms;
use crate::query::{Versions, environment, plan_marker};
use crate::serve::{self, Hit, Template};
use crate::session::{self, Status};
use crate::settings;
use crate::shmem::{self, SharedStore};

/// What a placeholder stands for. Lives in the memory of its message, like the query.
pub struct Pending<'m> {
    /// How to plan the query after all.
    pub call: Call<'m>,
    form: FormId,
    versions: Versions,
    key: CacheKey,
    /// The facts of the plan that computed the answer, and of the template.
    facts: FactsHash,
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

/// A plan that stands for a stored answer, and what planning would lock. Plain data, so that an error may jump over it.
#[derive(Clone, Copy)]
pub struct Placeholder {
    /// The plan.
    pub plan: *mut pg_sys::PlannedStmt,
    /// The relations (OIDs) that planning would lock besides those that the query names.
    pub locks: *mut pg_sys::List,
    /// The indexes (OIDs) that the start of a plan for a Bind will lock, to hold them open. Planning would lock these, and others.
    pub indexes: *mut pg_sys::List,
}

/// A placeholder for a one-shot query, if its answer seems to be stored, and there is a template with the facts of
/// the plan that computed it: the plan that the query itself would get.
pub fn make(
    store: &SharedStore,
    call: &Call<'_>,
    identified: Identified,
    traits: &QueryTraits,
    versions: Versions,
) -> Option<Placeholder> {
    // A bound portal may be read under other settings than it was started with: `serve::Guard` needs the real plan for
    // that.
    let needs_plan = call.has_values() && traits.reads_session;
    if needs_plan || settings::debug_serve_fills() || settings::verify_sample_rate() > 0.0 {
        return None;
    }
    // The key of declared functions has more in it.
    if traits.calls_declared() || often_gives_way(call) {
        return None;
    }
    let Sought { terms, key, cuts, form } = Sought::of(store, call, identified)?;
    let (facts, cost) = promising_answer(store, (key, &cuts), form, terms)?;
    let template = kept_templates::find(form, versions, facts)?;
    // What a portal then holds open, only starting its own plan can tell.
    if call.has_values() && template.open_relations().prunes_at_start {
        return None;
    }
    // Whoever has written to what it reads gets a plan of his own before the snapshot is taken.
    rules::check_own_writes(template.relations()).ok()?;
    let place = Pending { call: *call, form, versions, key, facts, terms, cuts }.in_current_memory()?;
    // The plan points into the template, which `kept_templates` keeps until a later statement is planned, when the plan is gone.
    let plan = template.placeholder(call.query(), place, cost)?;
    let indexes = if call.has_values() { template.open_relations().indexes } else { std::ptr::null_mut() };
    Some(Placeholder { plan, locks: template.descendants(), indexes })
}

/// Returns true if the answer to a one-shot query seems to be stored: then its plan is not run.
pub fn is_answered(store: &SharedStore, call: &Call<'_>, traits: &QueryTraits) -> bool {
    if often_gives_way(call) {
        return false;
    }
    let identified = identity::of(call.query().as_node(), store.seed()).and_then(Identity::into_identified);
    let sought = identified.ok().and_then(|identified| Sought::of(store, call, meaning(identified, traits)));
    sought.is_some_and(|Sought { key, cuts, terms, .. }| answer(store, (key, &cuts), terms).is_ok())
}

/// The answer that a query asks for.
struct Sought {
    terms: StatementTerms,
    key: CacheKey,
    cuts: Cuts,
    form: FormId,
}

impl Sought {
    /// That of a one-shot query; `None` if its key cannot be told before it is planned.
    fn of(store: &SharedStore, call: &Call<'_>, identified: Identified) -> Option<Self> {
        let Identified { form, tree, clock } = identified;
        let terms = StatementTerms::of(call.own_text()).ok()?;
        let environment = environment::hash(store.seed(), &[]).ok()?;
        let asked = Asked { tree, plan_made_otherwise: None, environment };
        // What the planner is given for a Bind is read at its Execute.
        let clock = Clock { trees: clock, params: call.params(), one_message: !call.has_values() };
        let Keyed { key, times } = key::of(&asked, &clock, store.seed()).ok()?;
        Some(Self { terms, key, cuts: times.cuts, form: form.id() })
    }
}

/// Is it likely that the answer will not do when the plan starts? The query is planned then, beside locks that planning would not have taken yet. In
/// REPEATABLE READ the snapshot may be older than the answer, and SERIALIZABLE gets none; named portals may be read later.
fn often_gives_way(call: &Call<'_>) -> bool {
    // SAFETY: a plain global of the backend.
    let has_old_snapshot = unsafe { pg_sys::XactIsoLevel } >= pg_sys::XACT_REPEATABLE_READ as i32;
    has_old_snapshot || (call.has_values() && !portal::is_bound_without_name())
}

/// What is known of the plan that computed a stored answer: its facts, and its cost, since another plan with the same facts
/// may have been made for other values. `None` if the answer does not seem to hold. If it is outdated, and somebody
/// computes another one, that is waited for.
fn promising_answer(
    store: &SharedStore,
    (key, cuts): (CacheKey, &Cuts),
    form: FormId,
    terms: StatementTerms,
) -> Option<(FactsHash, f64)> {
    let promising = || answer(store, (key, cuts), terms);
    // Who may be given the outdated answer does not wait.
    let waits = || staleness::bound(terms).is_none() && single_flight::wait_before_planning(store, key, form);
    promising().or_else(|is_outdated| if is_outdated && waits() { promising() } else { Err(false) }).ok()
}

/// As `promising_answer`, without waiting.
///
/// # Errors
/// There is none; true if it is outdated.
fn answer(
    store: &SharedStore,
    (key, cuts): (CacheKey, &Cuts),
    terms: StatementTerms,
) -> Result<(FactsHash, f64), bool> {
    let pin = store.lookup(key).ok_or(false)?;
    let view = store.view(&pin);
    let computed = (FactsHash(view.facts()), view.plan_cost());
    let is_outdated = !store.is_current(&pin);
    let is_promising = rules::is_promising(store, &pin, terms) && cuts.without_gaps(view.descriptor()).is_some();
    store.unpin(pin);
    if is_promising { Ok(computed) } else { Err(is_outdated) }
}

/// Is the answer still there that a placeholder stands for, and are the definitions those that it was made under? Asked before the snapshot is taken, so that
/// the query is planned by then if they are not.
pub fn still_stands(plan: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: as in `pending`; `make` has just handed the plan out.
    let pending = unsafe {
        Tree::enter(plan).and_then(|plan| plan_marker::stands_for(plan)).map(|pending| &*pending.cast::<Pending<'_>>())
    };
    let (Some(pending), Some(store)) = (pending, shmem::store()) else { return false };
    rules::definitions(&store) == pending.versions
        && store.lookup(pending.key).is_some_and(|pin| {
            let is_promising = rules::is_promising(&store, &pin, pending.terms);
            store.unpin(pin);
            is_promising
        })
}

/// What the plan of a query stands for, if it is a placeholder.
pub fn pending<'q>(desc: QueryDesc<'q>) -> Option<&'q Pending<'q>> {
    // SAFETY: only `make` hands placeholders out, and what they stand for lives as long as their message, which the
    // query does not outlive.
    unsafe { plan_marker::stands_for(desc.plan()).map(|pending| &*pending.cast_const().cast()) }
}

/// Puts the serving plan in the place of a placeholder, if the answer holds. If not, the query has to be planned; says which.
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
    let current = rules::definitions(&store) == pending.versions;
    let template = kept_templates::find(pending.form, pending.versions, pending.facts).filter(|_| current);
    let Some(template) = template else { return false };
    let Some(pin) = valid_answer(&store, desc, pending, &template) else { return false };
    let hit = Hit {
        pin,
        stale: None,
        columns: Rc::clone(template.columns()),
        template: Some(template),
        guard: None,
        stays_open: portal::is_bound(),
        form: pending.form,
        facts: pending.facts,
        versions: pending.versions,
    };
    let Some(pin) = serve::swap_plan(desc, hit) else { return false };
    quick_statements::note_looked_up();
    if let Some(fingerprint) = quick_statements::take_planned() {
        quick_statements::note_hit(fingerprint, store.view(pin).execution_micros());
    }
    session::begin_statement_as(Status::Hit);
    note_hit(&store, pin, desc.plan());
    true
}

/// The entry that the placeholder was made for, or one in its place with the same facts, if it holds under the snapshot of the query.
#[inline]
fn valid_answer(store: &SharedStore, desc: QueryDesc<'_>, pending: &Pending<'_>, template: &Template) -> Option<Pin> {
    let snapshot = rules::snapshot(store, desc.snapshot_data()).ok()?;
    rules::check_own_writes(template.relations()).ok()?;
    let asked = (template.descriptor(), &pending.cuts);
    let pin = match rules::find_entry(store, pending.key, asked, &snapshot, pending.terms) {
        // Another answer may have taken the place of the one that the placeholder was made for.
        Ok(Stored::Valid(pin)) if store.view(&pin).facts() == pending.facts.0 => return Some(pin),
        Ok(Stored::Valid(pin) | Stored::Outdated(pin)) => pin,
        Ok(Stored::Nothing) | Err(_) => return None,
    };
    store.unpin(pin);
    None
}
