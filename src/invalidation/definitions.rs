//! Which definitions a transaction has changed, told as precisely as results rest on them.
//!
//! Two sources, both the server's own. The list of changed relations says which catalogs have new
//! rows. The invalidation messages that the transaction is going to send name the relations whose
//! definition those rows belong to: every other backend relies on them to notice the change, so
//! they are complete for columns, rules, policies, partitions, indexes and storage. Changes of the
//! catalogs in `LOCAL_CATALOGS` are therefore published for these relations alone; those of enum labels for the results
//! that may contain an enum; all others for every result of the database. No result rests on a function that is new.
//!
//! Relations on which no result can rest (temporary ones, indexes) are left out, or each temporary table would outdate
//! whoever shares a slot with it. State of the transaction, kept in `write_set`; no lock.

use std::cell::Cell;

use pgrx::pg_sys;

use crate::invalidation::write_set;
use crate::pg::backend;
use crate::pg::backend_local::Local;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::transaction_changes::{self, ChangedRelation};

/// Shared catalogs whose change can change an answer, or who may see it, in every database: roles and their
/// memberships, to which the ownership of a database belongs. Ascending.
const SHARED_CATALOGS: &[u32] = &[
    ROLES,     // pg_authid
    1261,      // pg_auth_members
    DATABASES, // pg_database
    4175,      // pg_authid, TOAST
    4177,      // pg_database, TOAST
];

/// pg_authid.
const ROLES: u32 = 1260;
/// pg_database.
const DATABASES: u32 = 1262;

/// Catalogs whose change cannot change a query's answer: statistics, comments, dependencies, large objects, tablespaces
/// as such, replication progress, and settings that are in the key when they take effect. With their
/// TOAST tables, ascending.
const HARMLESS_CATALOGS: &[u32] = &[
    1213, // pg_tablespace
    1214, // pg_shdepend
    2396, // pg_shdescription
    2608, // pg_depend
    2609, // pg_description
    2613, // pg_largeobject
    2619, // pg_statistic
    2834, // pg_description, TOAST
    2840, // pg_statistic, TOAST
    2846, // pg_shdescription, TOAST
    2964, // pg_db_role_setting
    2966, // pg_db_role_setting, TOAST
    2995, // pg_largeobject_metadata
    3429, // pg_statistic_ext_data
    3430, // pg_statistic_ext_data, TOAST
    3592, // pg_shseclabel
    4060, // pg_shseclabel, TOAST
    4181, // pg_replication_origin, TOAST
    4185, // pg_tablespace, TOAST
    6000, // pg_replication_origin
    6102, // pg_subscription_rel
    6243, // pg_parameter_acl
    6244, // pg_parameter_acl, TOAST
];

/// Catalogs whose change matters only to results over relations that the server invalidates for it, or only to how
/// names are resolved, which is in the key of a result. With their TOAST tables, ascending.
///
/// Types belong here: what a result can notice of one are its labels (pg_enum, see `ENUM_LABELS`) and its attributes,
/// which are those of a relation. Constraints of domains do not count, because a query that checks them is bypassed.
const LOCAL_CATALOGS: &[u32] = &[
    826,         // pg_default_acl
    1247,        // pg_type
    1249,        // pg_attribute
    1259,        // pg_class
    2224,        // pg_sequence
    2336,        // pg_trigger, TOAST
    2604,        // pg_attrdef
    2606,        // pg_constraint
    2610,        // pg_index
    2611,        // pg_inherits
    2615,        // pg_namespace
    2618,        // pg_rewrite
    2620,        // pg_trigger
    2830,        // pg_attrdef, TOAST
    2832,        // pg_constraint, TOAST
    2838,        // pg_rewrite, TOAST
    3256,        // pg_policy
    3350,        // pg_partitioned_table
    3381,        // pg_statistic_ext
    3394,        // pg_init_privs
    3439,        // pg_statistic_ext, TOAST
    3466,        // pg_event_trigger
    ENUM_LABELS, // pg_enum
    3596,        // pg_seclabel
    3598,        // pg_seclabel, TOAST
    4143,        // pg_default_acl, TOAST
    4145,        // pg_event_trigger, TOAST
    4155,        // pg_init_privs, TOAST
    4163,        // pg_namespace, TOAST
    4165,        // pg_partitioned_table, TOAST
    4167,        // pg_policy, TOAST
    4171,        // pg_type, TOAST
    4183,        // pg_subscription, TOAST
    6100,        // pg_subscription
    6104,        // pg_publication
    6106,        // pg_publication_rel
    6228,        // pg_publication_rel, TOAST
    6237,        // pg_publication_namespace
];

/// pg_enum.
const ENUM_LABELS: u32 = 3501;
/// pg_proc and its TOAST table.
const FUNCTIONS: &[u32] = &[1255, 2836];

/// Does a change of this relation change a definition?
pub fn is_meaningful_catalog(relation: u32) -> bool {
    relation < FIRST_USER_OID && HARMLESS_CATALOGS.binary_search(&relation).is_err()
}

/// What a transaction has redefined.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Anything at all.
    pub any: bool,
    /// Something that every result of the database may rest on.
    pub database: bool,
    /// Something that every result of the server may rest on.
    pub shared: bool,
    /// Labels of enums.
    pub enums: bool,
    /// Relations, each once, in ascending order.
    pub relations: Vec<u32>,
}

impl Definitions {
    /// What the current transaction has redefined, given the relations whose rows it has changed. `unknown` when that
    /// list may lack something, or when a statement wrote to a catalog directly.
    pub fn of_transaction(changed: &[ChangedRelation], unknown: bool) -> Self {
        if !unknown && !changed.iter().any(|relation| is_meaningful_catalog(relation.oid)) {
            return Self::default();
        }
        // The messages of an inner level are not those of the whole transaction.
        let unknown = unknown || backend::transaction_nest_level() > 1;
        let mut definitions = Self {
            any: true,
            database: unknown || write_set::changed_silently() || changed.iter().any(concerns_database),
            shared: unknown || changed.iter().any(concerns_server),
            enums: unknown || changed.iter().any(|relation| relation.oid == ENUM_LABELS),
            relations: Vec::new(),
        };
        let mut relations = Vec::new();
        // Zero stands for all relations.
        transaction_changes::for_each_redefined_relation(|relation| match relation.to_u32() {
            0 => definitions.database = true,
            relation => relations.push(relation),
        });
        relations.sort_unstable();
        relations.dedup();
        let dropped = write_set::unimportant_drops();
        relations.retain(|relation| dropped.binary_search(relation).is_err() && may_carry_results_of_others(*relation));
        definitions.relations = relations;
        definitions
    }
}

/// May every result of the database rest on what was changed in this relation?
fn concerns_database(changed: &ChangedRelation) -> bool {
    is_meaningful_catalog(changed.oid)
        && LOCAL_CATALOGS.binary_search(&changed.oid).is_err()
        && SHARED_CATALOGS.binary_search(&changed.oid).is_err()
        && (changed.updated || changed.deleted || !FUNCTIONS.contains(&changed.oid))
}

/// May every result of the server rest on what was changed in this relation? On a role or a database that is new none
/// does, nor on another database that is gone.
fn concerns_server(changed: &ChangedRelation) -> bool {
    match changed.oid {
        ROLES => changed.updated || changed.deleted,
        DATABASES => changed.updated,
        other => SHARED_CATALOGS.binary_search(&other).is_ok(),
    }
}

/// How many relations a backend remembers on which results may rest.
const REMEMBERED: usize = 64;

/// The last relation with its remainder that was looked at, if results may rest on it.
static KNOWN: Local<[Cell<u32>; REMEMBERED]> = Local::new([const { Cell::new(0) }; REMEMBERED]);

/// Can a result rest on this relation? Of one that is gone, nobody can say no.
///
/// Only a yes is remembered: should the OID belong to another relation by now, a slot is moved for nothing.
pub fn may_carry_results(relation: u32) -> bool {
    KNOWN.with(|known| {
        let known = &known[relation as usize % REMEMBERED];
        if known.get() == relation {
            return true;
        }
        let may = look_at(relation).is_none_or(|found| found.can_be_queried);
        if may {
            known.set(relation);
        }
        may
    })
}

/// Can a result of another transaction rest on the definition of this relation? On one that is new it cannot: who reads
/// the relation at all has learned of it after the commit. Its rows are another matter, since an older snapshot
/// may be used to read it then, and does not see them.
fn may_carry_results_of_others(relation: u32) -> bool {
    look_at(relation).is_none_or(|found| found.can_be_queried && !found.is_new)
}

/// What matters of a relation.
struct Found {
    /// There may be cached queries over it.
    can_be_queried: bool,
    /// This transaction has created it.
    is_new: bool,
}

/// Looks at a relation; `None` if it is gone.
fn look_at(relation: u32) -> Option<Found> {
    if relation < FIRST_USER_OID {
        return Some(Found { can_be_queried: false, is_new: false });
    }
    // SAFETY: a catalog look-up inside a transaction, which raises nothing; the tuple is given back.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::RELOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(relation));
        if tuple.is_null() {
            return None;
        }
        let class: *const pg_sys::FormData_pg_class = pg_sys::GETSTRUCT(tuple).cast();
        let temporary = (*class).relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP;
        let can_be_queried = can_be_queried((*class).relkind as u8) && !temporary;
        pg_sys::ReleaseSysCache(tuple);
        Some(Found { can_be_queried, is_new: write_set::created(relation) })
    }
}

/// Are there queries over relations of this kind? Over indexes, TOAST tables and sequences there are no cached ones.
fn can_be_queried(kind: u8) -> bool {
    !matches!(
        kind,
        pg_sys::RELKIND_INDEX
            | pg_sys::RELKIND_PARTITIONED_INDEX
            | pg_sys::RELKIND_TOASTVALUE
            | pg_sys::RELKIND_SEQUENCE
    )
}

/// A relation has been created. Nobody else can have learned of it before this transaction commits.
pub fn note_creation(relation: pg_sys::Oid) {
    write_set::note_creation(relation.to_u32());
}

/// Does an access to an object change it?
pub fn changes_definition(access: pg_sys::ObjectAccessType::Type) -> bool {
    matches!(
        access,
        pg_sys::ObjectAccessType::OAT_POST_CREATE
            | pg_sys::ObjectAccessType::OAT_POST_ALTER
            | pg_sys::ObjectAccessType::OAT_DROP
    )
}

/// A relation is about to be dropped: notes it if no result can rest on it. Once it is gone, nobody can tell.
///
/// To be called before the drop.
pub fn note_drop(relation: pg_sys::Oid) {
    if !may_carry_results_of_others(relation.to_u32()) {
        write_set::note_unimportant_drop(relation.to_u32());
    }
}
