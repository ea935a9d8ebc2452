//! Which definitions a transaction has changed, as precisely as results depend on them.
//!
//! There are two sources, both the server's own. The list of changed relations tells which catalogs have new rows. The
//! invalidation messages that the transaction is going to send name the relations whose definition those rows belong
//! to. All other backends rely on these messages to notice the change, so they are complete for columns, rules,
//! policies, partitions, indexes and storage.
//!
//! Therefore changes of the catalogs in `catalogs::LOCAL_CATALOGS` are published for these relations only, changes of
//! enum labels for the results that may contain an enum, and all other changes for every result of the database, or for
//! less where the changed rows tell so. Relations on which no result can rest (temporary tables, indexes) are left out,
//! and so are those of which nothing has changed that a query finds: rights are asked for at each hit, and triggers, of
//! foreign keys among them, are for those who write. Keeps nothing; no lock.

use arrow_cache_core::versions::noted_rows::RowChanges;
use arrow_cache_core::{SlotId, Versions};
use pgrx::pg_sys;

use crate::invalidation::catalogs::{ENUM_LABELS, FUNCTIONS, Kind, SCHEMAS, kind_of, may_hold_rights};
use crate::invalidation::queried_relations::may_carry_results;
use crate::pg::own_rows::{self, Described};
use crate::pg::{backend, transaction_changes};

/// What is redefined, beside relations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Anything that plans may rest on.
    pub any: bool,
    /// Something that every result of the database may rest on.
    database: bool,
    /// Functions were changed or dropped. If these were temporary ones of this session, no other's result rests on
    /// them.
    functions: bool,
    /// A database is new or gone, so that results of any database may be those of another one.
    databases: bool,
    /// Something that only queries inside of functions go by.
    inner: bool,
    /// Labels of enums.
    enums: bool,
    /// Schemas, which decide on what names stand for.
    schemas: bool,
    /// Something that relations may be redefined by beside their rights.
    beside_rights: bool,
    /// The changed catalogs that describe relations.
    described: Described,
}

impl Definitions {
    /// Everything in a database that a transaction block can redefine.
    pub const OF_DATABASE: Self = Self {
        any: true,
        database: true,
        functions: true,
        databases: false,
        inner: true,
        enums: true,
        schemas: true,
        beside_rights: true,
        described: Described::ALL,
    };
    /// Everything.
    pub const ALL: Self = Self { databases: true, ..Self::OF_DATABASE };

    /// Returns true if anything is redefined.
    pub fn are_some(self) -> bool {
        self.any || self.databases || self.inner
    }

    /// Adds that rows of a relation have changed, which may be a catalog. `changes` are known by their kind, or not at
    /// all.
    pub fn add(&mut self, relation: u32, changes: Option<RowChanges>) {
        let Some(kind) = kind_of(relation).filter(|kind| *kind != Kind::Harmless) else { return };
        let has_only_new = changes.is_some_and(|rows| rows.updated == 0 && rows.deleted == 0);
        let has_only_changed = changes.is_some_and(|rows| rows.inserted == 0 && rows.deleted == 0);
        match kind {
            Kind::Harmless => {}
            Kind::Roles => self.inner = true,
            Kind::Databases => {
                self.inner = true;
                self.databases |= !has_only_changed;
            }
            Kind::Named | Kind::Other | Kind::Local => {
                self.any = true;
                self.beside_rights |= !may_hold_rights(relation);
                self.described.add(relation);
                self.inner |= kind == Kind::Named;
                self.enums |= relation == ENUM_LABELS;
                self.schemas |= relation == SCHEMAS;
                match kind {
                    Kind::Named if has_only_new => {}
                    Kind::Named if relation == FUNCTIONS => self.functions = true,
                    _ => self.database |= kind != Kind::Local,
                }
            }
        }
    }

    /// Adds all that results of one database rest on.
    pub fn add_database(&mut self) {
        (self.any, self.database) = (true, true);
    }

    /// Calls `visit` with the slots of all that is redefined in this database: that of all catalogs first.
    pub fn for_each_slot(self, database: u32, versions: Versions<'_>, mut visit: impl FnMut(SlotId)) {
        let slots = [
            (self.any, versions.catalogs(database)),
            (self.database || self.functions, versions.ddl(database)),
            (self.inner, versions.inner()),
            (self.enums, versions.enums(database)),
        ];
        slots.into_iter().filter(|(changed, _)| *changed).for_each(|(_, slot)| visit(slot));
        if self.databases {
            versions.ddl_everywhere().for_each(visit);
        }
    }

    /// The slots of what the present transaction has redefined, these definitions and relations, each at least once.
    pub fn slots_of_transaction(mut self, database: u32, versions: Versions<'_>) -> Vec<SlotId> {
        if !self.are_some() {
            return Vec::new();
        }
        let mut relations = if self.any { self.relations_of_transaction() } else { Vec::new() };
        let told = relations.len();
        self.described.retain_changed(&mut relations);
        // Nobody asks at a hit for rights to what queries inside of functions have read.
        self.inner |= relations.len() != told;
        if !self.beside_rights {
            self.inner |= self.any;
            self.any &= self.database || self.schemas || !relations.is_empty();
        }
        relations.retain(|relation| may_carry_results(*relation));
        // A temporary table that is dropped at the commit takes with it, after this, a view that has been replaced by
        // one over it, and what rests on that view. Of a table only columns go, on which nothing older rests.
        if backend::has_used_temporary_relations() && relations.iter().any(|relation| is_view(*relation)) {
            self.add_database();
        }
        self.functions = self.functions && !self.database && !own_rows::are_changed_functions_temporary();
        let mut slots = Vec::new();
        self.for_each_slot(database, versions, |slot| slots.push(slot));
        slots.extend(relations.into_iter().flat_map(|relation| versions.of_relation(database, relation)));
        slots
    }

    /// The relations that the present transaction has redefined, each once.
    fn relations_of_transaction(&mut self) -> Vec<u32> {
        let mut relations = Vec::new();
        // Zero stands for all relations.
        transaction_changes::for_each_redefined_relation(|relation| match relation.to_u32() {
            0 => self.database = true,
            relation => relations.push(relation),
        });
        relations.sort_unstable();
        relations.dedup();
        relations
    }
}

fn is_view(relation: u32) -> bool {
    // SAFETY: reads a catalog; 0 for what is gone.
    (unsafe { kept!(pg_sys::get_rel_relkind(relation.into())) }) as u8 == pg_sys::RELKIND_VIEW
}
