//! Which definitions a transaction has changed, as precisely as results depend on them.
//!
//! There are two sources, both the server's own. The list of changed relations tells which catalogs have new rows. The
//! invalidation messages that the transaction is going to send name the relations whose definition those rows belong
//! to. All other backends rely on these messages to notice the change, so they are complete for columns, rules,
//! policies, partitions, indexes and storage.
//!
//! Therefore changes of the catalogs in `catalogs::LOCAL_CATALOGS` are published for these relations only, changes of
//! enum labels for the results that may contain an enum, and all other changes for every result of the database.
//! Relations on which no result can rest (temporary tables, indexes) are left out. Keeps nothing; no lock.

use crate::invalidation::catalogs::{ENUM_LABELS, concerns_database, concerns_server, is_meaningful_catalog};
use crate::invalidation::queried_relations::may_carry_results;
use crate::pg::{backend, transaction_changes};

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
    /// What the present transaction has redefined, given the relations whose rows it has changed. `unknown` means that
    /// the list may be incomplete, or that a statement has written to a catalog directly.
    pub fn of_transaction(changed: &[u32], unknown: bool) -> Self {
        if !unknown && !changed.iter().copied().any(is_meaningful_catalog) {
            return Self::default();
        }
        // The messages of an inner level are not those of the whole transaction.
        let unknown = unknown || backend::transaction_nest_level() > 1;
        let mut definitions = Self {
            any: true,
            database: unknown || changed.iter().copied().any(concerns_database),
            shared: unknown || changed.iter().copied().any(concerns_server),
            enums: unknown || changed.contains(&ENUM_LABELS),
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
        relations.retain(|relation| may_carry_results(*relation));
        definitions.relations = relations;
        definitions
    }
}
