//! What there is to do about a query that is about to be planned. One whose form is known (`forms`) is not checked
//! again, nor planned if a stored answer is likely to serve it. Keeps nothing.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::call::Call;
use super::fingerprint::Fingerprint;
use super::forms::{self, Finding};
use super::placeholder;
use super::verdict::{Eligible, check};
use super::{price, quick_statements, rules, timing, unclear_hints};
use crate::pg::allocator;
use crate::query::eligibility::reads_nothing;
use crate::query::hashes::FormId;
use crate::query::identity;
use crate::{session, shmem};

/// What there is to do about a query that is about to be planned. Plain data, so that an error may jump over it.
#[derive(Clone, Copy)]
pub enum Planning {
    /// Nothing: there is no cache.
    Ignored,
    /// To attach a refusal to its plan.
    Refused(Reason),
    /// To note on its plan that it was not checked, since queries of this form are too quick.
    Unchecked(FormId),
    /// To check the relations of its plan.
    Eligible(Eligible),
    /// Not to plan it: this placeholder stands for a stored answer, if that still holds when it is started.
    Ready(*mut pg_sys::PlannedStmt),
}

/// Returns true if the cache could have anything to do with the query. That a plan reads nothing is told by the plan
/// itself (`plan_marker`).
#[inline]
pub fn concerns(call: &Call<'_>) -> bool {
    call.query().commandType == pg_sys::CmdType::CMD_SELECT && !reads_nothing(call.query())
}

/// Returns true if the plan of a query that `concerns` the cache may be run more than once, if it is made while the
/// cache is off.
pub fn may_be_kept(call: &Call<'_>) -> bool {
    !call.has_values() && !call.is_one_shot() && shmem::preloaded()
}

/// Checks a query that `concerns` the cache, and is about to be planned.
///
/// The version of the catalogs is read first, then invalidations are accepted: so the query is checked and planned
/// under catalogs at least as new as the version says. What was found out about a query of the same form holds if the
/// versions have not moved since.
///
/// Bodies of functions, and times, are put into the query of the call (`Call::put_bodies`, `put_times`): that query is
/// to be planned.
pub fn before_planning(call: &mut Call<'_>) -> Planning {
    let planning = consider(call).unwrap_or_else(Planning::Refused);
    price::pause();
    planning
}

/// As `before_planning`.
///
/// # Errors
/// The reason to refuse the query.
fn consider(call: &mut Call<'_>) -> Result<Planning, Reason> {
    unclear_hints::tell(call);
    let may_stand_in = !session::must_plan();
    let is_one_shot = may_stand_in && call.is_one_shot();
    let is_of_utility = may_stand_in && session::declaring_or_copying();
    // Statements with values by Bind are known by their form, like those whose plan is kept.
    if is_of_utility || (is_one_shot && !call.has_values()) {
        check_speed(call, call.fingerprint())?;
    }
    let Some(seed) = shmem::seed() else { return Ok(Planning::Ignored) };
    if allocator::is_short() {
        return Err(Reason::OutOfMemory);
    }
    let mut identity = identity::of(call.query().as_node(), seed)?.under_present_names(seed)?;
    let form = identity.form;
    if is_one_shot && call.has_values() {
        check_speed(call, Some(Fingerprint::of_form(form.id())))?;
    }
    let is_kept_for_client = may_stand_in && !is_one_shot && call.is_of_client();
    if is_kept_for_client && quick_statements::will_skip_lookup(Fingerprint::of_form(form.id())) && !call.has_hint() {
        return Ok(Planning::Unchecked(form.id()));
    }
    // From here on it costs something: a session whose statements are all too quick never attaches to the store.
    let Some(store) = shmem::store() else { return Ok(Planning::Ignored) };
    let versions = rules::definitions(&store);
    let asked = identity.form;
    if identity.calls_users {
        match forms::finding(asked, versions) {
            // With its bodies it may have a part that does not ask for the time.
            Some(Finding::Refused(reason)) if reason != Reason::MovingClock => return Err(reason),
            _ => {}
        }
    }
    if identity.calls_users && call.put_bodies()? {
        identity = identity::of(call.query().as_node(), seed)?.under_present_names(seed)?;
    }
    if identity.hands_times_on && call.put_times() {
        identity = identity::of(call.query().as_node(), seed)?.under_present_names(seed)?;
    }
    let form = identity.form;
    let traits = match forms::finding(form, versions) {
        Some(Finding::Refused(reason)) => {
            if !identity.reads_constants {
                forms::remember(asked, versions, Finding::Refused(reason));
            }
            return Err(reason);
        }
        Some(Finding::Eligible(traits)) => Some(traits),
        None => None,
    };
    let identified = identity.into_identified()?;
    if is_one_shot
        && let Some(traits) = &traits
        && let Some(columns) = forms::columns(form.id(), versions)
        && let Some(placeholder) = placeholder::make(&store, call, identified, traits, versions, &columns)
    {
        return Ok(Planning::Ready(placeholder));
    }
    check(call, &store, identified, traits, versions, is_one_shot).map(Planning::Eligible)
}

/// Notes the fingerprint of a statement that is planned for one execution, for when it starts.
///
/// # Errors
/// `TooQuick` if such statements are not looked up.
fn check_speed(call: &Call<'_>, fingerprint: Option<Fingerprint>) -> Result<(), Reason> {
    if let Some(fingerprint) = fingerprint.filter(|own| quick_statements::skips_lookup(*own))
        && !call.has_hint()
    {
        timing::time_skipped(fingerprint);
        return Err(Reason::TooQuick);
    }
    quick_statements::note_planned(fingerprint);
    Ok(())
}
