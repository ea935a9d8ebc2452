//! What is judged when a query is planned: its tree, then the relations of its plan. The verdict is attached to the plan. A query
//! whose like was judged before is not judged again, nor planned if a stored answer is likely to serve it.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::find::current_versions;
use super::placeholder::{self, Call};
use crate::invalidation::own_writes;
use crate::lookup::known;
use crate::lookup::known::Finding;
use crate::lookup::{portal, snapshot};
use crate::pg::allocator;
use crate::pg::lists::nodes;
use crate::pg::tree::Tree;
use crate::query::eligibility::{QueryTraits, check_query, reads_nothing};
use crate::query::hashes::{FormHash, TreeHash};
use crate::query::opened_relations::opened_by;
use crate::query::relations::{self, Relations};
use crate::query::{Planned, Verdict, Versions, environment, identity, plan_facts, plan_marker, planner_input};
use crate::{session, shmem};

/// What there is to do about a query that is about to be planned. Plain data, so that an error may jump over it.
#[derive(Clone, Copy)]
pub enum Planning {
    /// Nothing: no query, or none that the cache could have anything to do with.
    Unjudged,
    /// To attach a refusal to its plan.
    Refused(Reason),
    /// To judge the relations of its plan.
    Judged(Judgement),
    /// Not to plan it, but to lock these relations (OIDs) as planning would: this plan stands for a stored answer, if that
    /// still holds when it is started.
    Ready { plan: *mut pg_sys::PlannedStmt, locks: *mut pg_sys::List },
}

/// What was found out about a query before the planner took it apart.
#[derive(Clone, Copy)]
pub struct Judgement {
    traits: QueryTraits,
    /// What name resolution made of its text.
    tree: TreeHash,
    form: FormHash,
    /// What its form means is known already.
    known: bool,
    planned: Planned,
    /// The snapshot that planning runs under sees all changes of catalogs up to that version.
    sees_catalogs: bool,
    /// The store's secret.
    seed: u64,
    /// How many messages about changes of definitions the backend had received by then.
    messages: u64,
}

/// Stands for catalogs that no plan may be stored under.
pub(super) const UNKNOWN_CATALOGS: u64 = u64::MAX;

/// Judges a query that is about to be planned.
///
/// The version of the catalogs is read first, then invalidations are accepted: so the judgement and the plan are made
/// under catalogs at least as new as the version says. What was found out about a query of the same form holds if the
/// versions have not moved since.
///
/// # Safety
/// The call must be one of a planner hook.
pub unsafe fn before_planning(call: &Call) -> Planning {
    let Call { query, text, params, .. } = *call;
    // SAFETY: as the caller promises.
    unsafe {
        if (*query).commandType != pg_sys::CmdType::CMD_SELECT {
            return Planning::Unjudged;
        }
        let Some(query_tree) = Tree::enter(query) else { return Planning::Unjudged };
        if reads_nothing(query_tree) {
            return Planning::Refused(Reason::NoRelation);
        }
        let may_stand_in = !session::must_plan();
        if may_stand_in && placeholder::is_of_client(text) {
            // No placeholder is left: each is gone with the start of its statement.
            known::free_retired();
        }
        let is_one_shot = may_stand_in && placeholder::is_one_shot(text, params);
        // Statements with values by Bind are known by their form, like those whose plan is kept.
        if is_one_shot && params.is_null() {
            let shape = placeholder::shape(query, text);
            if shape.is_some_and(known::is_quick) && !placeholder::has_hint(query, text) {
                session::time_run(shape);
                return Planning::Refused(Reason::TooQuick);
            }
            session::note_fingerprint(shape);
        }
        let Some(store) = shmem::store() else { return Planning::Unjudged };
        if allocator::is_short() {
            return Planning::Refused(Reason::OutOfMemory);
        }
        let mut identity = match identity::of(query_tree, store.seed()) {
            Ok(identity) => identity,
            Err(reason) => return Planning::Refused(reason),
        };
        let versions = current_versions(&store);
        let finding = known::finding(identity.form, versions);
        let traits = match finding {
            Some(Finding::Refused(reason)) => return Planning::Refused(reason),
            Some(Finding::Meant(traits)) => Some(traits),
            None => None,
        };
        let form = identity.form;
        // What follows may raise, so nothing that is to be dropped may be left.
        let tree = identity.tree();
        drop(identity);
        if is_one_shot && !params.is_null() {
            if known::is_quick(form.id().0) && !placeholder::has_hint(query, text) {
                session::time_run(Some(form.id().0));
                return Planning::Refused(Reason::TooQuick);
            }
            session::note_fingerprint(Some(form.id().0));
        }
        if is_one_shot
            && let Some(traits) = &traits
            && known::has_templates(form, versions)
            && let Some((plan, locks)) = placeholder::make(&store, call, form, tree, traits.reads_session, versions)
        {
            return Planning::Ready { plan, locks };
        }
        pg_sys::AcceptInvalidationMessages();
        let known = traits.is_some();
        let traits = match traits.map_or_else(|| check_query(query_tree), Ok) {
            Ok(traits) => traits,
            Err(reason) => {
                // What a transaction sees that has changed definitions itself may be rolled back.
                if own_writes::check_own_writes(&[]).is_ok() {
                    known::remember(form, versions, Finding::Refused(reason));
                }
                return Planning::Refused(reason);
            }
        };
        let slots = store.versions();
        let slot = slots.catalogs(pg_sys::MyDatabaseId.to_u32());
        let sees_catalogs = pg_sys::ActiveSnapshotSet()
            && snapshot::view(&store, pg_sys::GetActiveSnapshot())
                .is_ok_and(|snapshot| slots.seen_whole(slot, &snapshot) == Some(versions.catalogs));
        Planning::Judged(Judgement {
            traits,
            tree,
            form,
            known,
            planned: Planned {
                versions,
                plan: session::next_plan_number(),
                settings: (!is_one_shot).then(|| environment::settings(store.seed())),
                for_values: !params.is_null(),
            },
            seed: store.seed(),
            sees_catalogs,
            messages: portal::messages_received(),
        })
    }
}

/// Attaches a refusal to a finished plan.
///
/// # Safety
/// `plan` must be a plan just made.
pub unsafe fn refuse(plan: *mut pg_sys::PlannedStmt, reason: Reason) {
    // SAFETY: as the caller promises.
    unsafe { plan_marker::attach(plan, Verdict::Bypass(reason)) };
}

/// Attaches the verdict to the finished plan.
///
/// # Safety
/// `plan` must be the plan just made for the judged query.
pub unsafe fn after_planning(plan: *mut pg_sys::PlannedStmt, judgement: Judgement) {
    let Judgement { traits, tree, form, planned, .. } = judgement;
    // SAFETY: as the caller promises; planning has locked the plan's relations.
    unsafe {
        // A message that arrives while the plan is made finds no plan that it could invalidate: PostgreSQL loses it.
        let unsettled = portal::messages_received() != judgement.messages;
        let Some(tree_of_plan) = Tree::enter(plan) else { return };
        let opened = opened_by(tree_of_plan);
        let relations = relations::check(tree_of_plan).map_err(|refusal| refusal.reason);
        // The plan, and what is remembered, may outlive a transaction that changes definitions, and its rollback.
        let own_definitions = own_writes::check_own_writes(&[]);
        if !judgement.known && !unsettled && own_definitions.is_ok() {
            remember(form, planned.versions, traits, relations, traits.may_drop_relations || depends_on_values(plan));
        }
        let judged = relations.and_then(|relations| {
            planner_input::check(tree_of_plan, &opened, traits.unites, planned.versions.ddl)
                .map_err(|refusal| refusal.reason)?;
            own_definitions.map(|()| relations)
        });
        let unknown = Versions { catalogs: UNKNOWN_CATALOGS, ..planned.versions };
        let facts = plan_facts::of(tree_of_plan, &opened, judgement.seed);
        let verdict = match judged {
            // Partitions are looked up by snapshot (DETACH CONCURRENTLY): under an old one, the plan may read partitions
            // that a newer version of the catalogs no longer has.
            Ok(Relations { partitioned }) if unsettled || (partitioned && !judgement.sees_catalogs) => {
                let planned = Planned { versions: unknown, ..planned };
                Verdict::Cacheable { traits, tree, form: form.id(), facts, planned }
            }
            Ok(_) => Verdict::Cacheable { traits, tree, form: form.id(), facts, planned },
            Err(reason) => Verdict::Bypass(reason),
        };
        plan_marker::attach(plan, verdict);
    }
}

/// Does the plan rest on other relations for other constants, as far as the plan shows? So it is if it reads partitions or tables that
/// inherit.
///
/// # Safety
/// `plan` must be valid.
unsafe fn depends_on_values(plan: *const pg_sys::PlannedStmt) -> bool {
    // SAFETY: as the caller promises; entries of its range table.
    unsafe {
        nodes::<pg_sys::RangeTblEntry>((*plan).rtable)
            .any(|entry| (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION && (*entry).inh)
    }
}

/// Remembers what holds for all queries of a form. Extras are kept in memory that ends with the plan, so forms that have some
/// are judged each time.
fn remember(
    form: FormHash,
    versions: Versions,
    traits: QueryTraits,
    relations: Result<Relations, Reason>,
    depends_on_values: bool,
) {
    if !traits.extras.is_none() {
        return;
    }
    let finding = match relations {
        Err(reason) if !depends_on_values => Finding::Refused(reason),
        _ => Finding::Meant(traits),
    };
    known::remember(form, versions, finding);
}
