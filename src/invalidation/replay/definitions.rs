//! What a replayed commit has redefined, as precisely as results depend on it. The rules are those of `invalidation::catalogs`.
//!
//! There are two sources, as on a primary. Records of the heap tell which catalogs have new rows, as long as a catalog has its first file,
//! whose number is its OID; a catalog that was rewritten (VACUUM FULL) has a number that tells nothing. The messages of the commit tell of
//! each row by its system cache, and of relations. A message about a catalog of which no record was noted counts as a changed row. Keeps
//! nothing.

use arrow_cache_core::versions::slots::FIXED_SLOTS;
use arrow_cache_core::{CatalogChange, SlotId, Versions};
use pgrx::pg_sys;

use super::catalog_caches::catalog_of;
use crate::invalidation::catalogs::{ENUM_LABELS, SHARED, concerns_database, concerns_server, is_meaningful_catalog};
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::transaction_changes::ChangedRelation;
use crate::pg::wal_record::Ended;

const RELATION: i8 = pg_sys::SHAREDINVALRELCACHE_ID as i8;
const WHOLE_CATALOG: i8 = pg_sys::SHAREDINVALCATALOG_ID as i8;

/// Catalogs without a system cache. The server names the relation that a row of theirs belongs to, unless a superuser has written the row.
const WITHOUT_CACHE: [u16; 4] = [2604, 2611, 2620, 3256]; // pg_attrdef, pg_inherits, pg_trigger, pg_policy

/// The most catalogs that one transaction can be noted with: more than there are, with their TOAST tables.
const MOST: usize = 160;

/// OIDs of catalogs are below this.
const CATALOG_OIDS: usize = FIRST_USER_OID as usize;

/// System caches have numbers below this: those that messages tell are not negative.
const CACHES: usize = i8::MAX as usize + 1;

/// The catalogs in which a transaction was seen to change rows.
pub struct NotedCatalogs {
    list: [(u16, CatalogChange); MOST],
    length: usize,
    /// There were more.
    overflown: bool,
    /// For each OID how the catalog was changed, one bit for each way.
    ways: [u8; CATALOG_OIDS],
}

impl NotedCatalogs {
    /// None.
    pub const fn new() -> Self {
        Self { list: [(0, CatalogChange::InPlace); MOST], length: 0, overflown: false, ways: [0; CATALOG_OIDS] }
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        for (catalog, _) in self.list.iter().take(self.length) {
            self.ways[usize::from(*catalog) % CATALOG_OIDS] = 0;
        }
        (self.length, self.overflown) = (0, false);
    }

    /// Adds one. A catalog may come several times.
    pub fn add(&mut self, catalog: u16, how: CatalogChange) {
        let ways = &mut self.ways[usize::from(catalog) % CATALOG_OIDS];
        let way = 1 << how as u8;
        if *ways & way != 0 {
            return;
        }
        match self.list.get_mut(self.length) {
            Some(place) => {
                *place = (catalog, how);
                *ways |= way;
                self.length += 1;
            }
            None => self.overflown = true,
        }
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn entries(&self) -> &[(u16, CatalogChange)] {
        &self.list[..self.length]
    }

    fn has(&self, catalog: u16) -> bool {
        self.ways[usize::from(catalog) % CATALOG_OIDS] != 0
    }
}

/// The most slots of relations that are kept of one commit.
const MOST_RELATIONS: usize = 1024;
/// All slots of databases, and that of what they share.
const MOST_DATABASES: usize = FIXED_SLOTS + 1;

/// The slots of what a commit redefines, until it has been replayed.
pub struct RedefinedSlots {
    databases: [SlotId; MOST_DATABASES],
    databases_length: usize,
    relations: [SlotId; MOST_RELATIONS],
    relations_length: usize,
    /// There are more relations.
    overflown: bool,
}

impl RedefinedSlots {
    /// None.
    pub const fn new() -> Self {
        Self {
            databases: [SlotId(0); MOST_DATABASES],
            databases_length: 0,
            relations: [SlotId(0); MOST_RELATIONS],
            relations_length: 0,
            overflown: false,
        }
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        (self.databases_length, self.relations_length, self.overflown) = (0, 0, false);
    }

    /// Adds that of a relation, which messages often name several times in a row.
    fn add_relation(&mut self, slot: SlotId) {
        if self.relations().last() == Some(&slot) {
            return;
        }
        match self.relations.get_mut(self.relations_length) {
            Some(place) => {
                *place = slot;
                self.relations_length += 1;
            }
            None => self.overflown = true,
        }
    }

    /// To be called when those of relations are listed: adds all others. If there are more relations than there is room for, everything counts
    /// as redefined: the results over them rest on the slots of databases, too.
    pub fn complete(&mut self, mut redefined: Redefined, versions: Versions<'_>) {
        if !redefined.any {
            self.clear();
            return;
        }
        if self.overflown {
            redefined.add_all();
        }
        redefined.for_each_database(versions, |slot| {
            if let Some(place) = self.databases.get_mut(self.databases_length) {
                *place = slot;
                self.databases_length += 1;
            }
        });
    }

    /// All of them: that of all catalogs first, those of relations last.
    pub fn all(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.databases.iter().take(self.databases_length).chain(self.relations()).copied()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.databases_length == 0
    }

    fn relations(&self) -> &[SlotId] {
        self.relations.get(..self.relations_length).unwrap_or(&self.relations)
    }
}

/// What a commit has redefined.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Redefined {
    /// The database; 0 if it is not known.
    database: u32,
    /// Anything at all.
    any: bool,
    /// Something that every result of the database may rest on.
    everything: bool,
    /// Something that every result of the server may rest on.
    shared: bool,
    /// Labels of enums.
    enums: bool,
    /// A catalog is given a new file. Those who run now may change rows of the old one and of the new one, and only of the old one it is known
    /// which catalog it belongs to.
    pub rewrites_catalog: bool,
}

impl Redefined {
    /// What a commit has redefined, in addition to the relations that its messages name, whose slots are added to `slots`. `has_rows`: it is noted
    /// with rows of files that are not known to be those of catalogs.
    pub fn by(
        commit: &Ended<'_>,
        catalogs: &NotedCatalogs,
        has_rows: bool,
        versions: Versions<'_>,
        slots: &mut RedefinedSlots,
    ) -> Self {
        let mut redefined = Self { database: commit.database, ..Self::default() };
        for (catalog, how) in catalogs.entries() {
            if *how != CatalogChange::InPlace {
                redefined.add(*catalog, *how);
            }
        }
        let (mut names_relations, mut last) = (false, 0);
        // All messages about rows of one cache say the same here.
        let mut seen = [false; CACHES];
        for message in commit.messages {
            // SAFETY: messages are told apart by their first byte, which all of them have.
            match unsafe { message.id } {
                cache if cache >= 0 && std::mem::replace(&mut seen[cache as usize % CACHES], true) => {}
                cache if cache >= 0 => match catalog_of(cache) {
                    Some(catalog) if catalogs.has(catalog) => {}
                    Some(catalog) => redefined.add(catalog, CatalogChange::Changed),
                    None => redefined.add_everything_of_database(),
                },
                RELATION => {
                    names_relations = true;
                    // The rows may be those of a catalog that was rewritten and has no cache, such as pg_policy. Without any, it is VACUUM
                    // or ANALYZE, or the catalog is noted.
                    redefined.any |= has_rows;
                    // SAFETY: as above.
                    let (database, relation) = unsafe { (message.rc.dbId.to_u32(), message.rc.relId.to_u32()) };
                    // Zero stands for all relations.
                    if relation == 0 {
                        redefined.add_everything_of_database();
                    } else if last != relation {
                        last = relation;
                        slots.add_relation(versions.relation(database, relation));
                    }
                }
                WHOLE_CATALOG => {
                    redefined.rewrites_catalog = true;
                    redefined.add_all();
                }
                // Files, the map of catalogs' files, and catalogs without caches that no result rests on.
                _ => {}
            }
        }
        let by_hand = |catalog: &u16| catalogs.has(*catalog) && !names_relations;
        if catalogs.overflown || WITHOUT_CACHE.iter().any(by_hand) {
            redefined.add_all();
        }
        redefined
    }

    #[inline(never)]
    fn add(&mut self, catalog: u16, how: CatalogChange) {
        let changed = how == CatalogChange::Changed;
        let relation = ChangedRelation { oid: catalog.into(), updated: changed, deleted: changed };
        if is_meaningful_catalog(relation.oid) {
            self.any = true;
            self.everything |= concerns_database(&relation);
            self.shared |= concerns_server(&relation);
            self.enums |= relation.oid == ENUM_LABELS;
        }
    }

    fn add_everything_of_database(&mut self) {
        self.any = true;
        self.everything = true;
    }

    /// Adds everything.
    pub fn add_all(&mut self) {
        *self = Self { any: true, everything: true, shared: true, enums: true, ..*self };
    }

    /// Calls `visit` with the slots that stand for databases and what they share: that of all catalogs first.
    fn for_each_database(&self, versions: Versions<'_>, mut visit: impl FnMut(SlotId)) {
        if self.database == 0 {
            // All databases are meant. The slots of catalogs are the last of them.
            (0..FIXED_SLOTS as u32).rev().map(SlotId).for_each(&mut visit);
        } else {
            visit(versions.catalogs(self.database));
            if self.everything {
                visit(versions.ddl(self.database));
            }
            if self.enums {
                visit(versions.enums(self.database));
            }
        }
        if self.shared {
            visit(versions.ddl(SHARED));
        }
    }
}
