//! Which definitions a transaction has changed, as precisely as results depend on them.
//!
//! There are two sources, both the server's own. The list of changed relations tells which catalogs have new rows. The invalidation
//! messages that the transaction is going to send name the relations whose definition those rows belong to. All other backends rely on
//! these messages to notice the change, so they are complete for columns, rules, policies, partitions, indexes and storage.
//!
//! Therefore changes of the catalogs in `catalogs::LOCAL_CATALOGS` are published for these relations only, changes of enum labels for the
//! results that may contain an enum, and all other changes for every result of the database. No result rests on a function that is new.
//!
//! Relations on which no result can rest (temporary tables, indexes) are left out. Otherwise each temporary table would outdate the
//! results over the relations that share a slot with it. State of the transaction, kept in `write_set`; no lock.

use pgrx::pg_sys;

use crate::invalidation::catalogs::{ENUM_LABELS, concerns_database, concerns_server, is_meaningful_catalog};
use crate::invalidation::queried_relations::may_carry_results_of_others;
use crate::invalidation::write_set;
use crate::pg::backend;
use crate::pg::transaction_changes::{self, ChangedRelation};

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
    /// What the present transaction has redefined, given the relations whose rows it has changed. `unknown` means that the list may be
    /// incomplete, or that a statement has written to a catalog directly.
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

/// Notes that a relation has been created. Nobody else can know of it before this transaction commits.
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

/// Notes that a relation is about to be dropped, if no result can rest on it. To be called before the drop: afterwards nobody can tell.
pub fn note_drop(relation: pg_sys::Oid) {
    if !may_carry_results_of_others(relation.to_u32()) {
        write_set::note_unimportant_drop(relation.to_u32());
    }
}
