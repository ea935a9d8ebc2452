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

use arrow_cache_core::{SlotId, Versions};
use pgrx::pg_sys;

use crate::invalidation::catalogs::{ENUM_LABELS, Kind, SHARED, kind_of};
use crate::invalidation::queried_relations::may_carry_results;
use crate::pg::{backend, transaction_changes};

/// What is redefined, beside relations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Anything at all.
    pub any: bool,
    /// Something that every result of the database may rest on.
    database: bool,
    /// Something that every result of the server may rest on.
    shared: bool,
    /// Labels of enums.
    enums: bool,
}

impl Definitions {
    /// Everything.
    pub const ALL: Self = Self { any: true, database: true, shared: true, enums: true };

    /// Adds that rows of a relation have changed, which may be a catalog.
    pub fn add(&mut self, relation: u32) {
        let Some(kind) = kind_of(relation).filter(|kind| *kind != Kind::Harmless) else { return };
        self.any = true;
        self.database |= kind == Kind::Other;
        self.shared |= kind == Kind::Shared;
        self.enums |= relation == ENUM_LABELS;
    }

    /// Adds all that results of one database rest on.
    pub fn add_database(&mut self) {
        (self.any, self.database) = (true, true);
    }

    /// Calls `visit` with the slots of all that is redefined in this database: that of all catalogs first.
    pub fn for_each_slot(self, database: u32, versions: Versions<'_>, visit: impl FnMut(SlotId)) {
        let slots = [
            (self.any, versions.catalogs(database)),
            (self.database, versions.ddl(database)),
            (self.shared, versions.ddl(SHARED)),
            (self.enums, versions.enums(database)),
        ];
        slots.into_iter().filter(|(changed, _)| *changed).map(|(_, slot)| slot).for_each(visit);
    }

    /// The slots of what the present transaction has redefined, these definitions and relations, each once.
    pub fn slots_of_transaction(mut self, database: u32, versions: Versions<'_>) -> Vec<SlotId> {
        if !self.any {
            return Vec::new();
        }
        let mut relations = Vec::new();
        // Zero stands for all relations.
        transaction_changes::for_each_redefined_relation(|relation| match relation.to_u32() {
            0 => self.database = true,
            relation => relations.push(relation),
        });
        relations.sort_unstable();
        relations.dedup();
        relations.retain(|relation| may_carry_results(*relation));
        // A temporary table that is dropped at the commit takes with it, after this, a view that has been replaced by
        // one over it, and what rests on that view. Of a table only columns go, on which nothing older rests.
        if backend::has_used_temporary_relations() && relations.iter().any(|relation| is_view(*relation)) {
            self.add_database();
        }
        let mut slots = Vec::new();
        self.for_each_slot(database, versions, |slot| slots.push(slot));
        slots.extend(relations.into_iter().flat_map(|relation| versions.of_relation(database, relation)));
        slots
    }
}

fn is_view(relation: u32) -> bool {
    // SAFETY: reads a catalog; 0 for what is gone.
    (unsafe { kept!(pg_sys::get_rel_relkind(relation.into())) }) as u8 == pg_sys::RELKIND_VIEW
}
