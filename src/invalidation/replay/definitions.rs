//! What a replayed commit has redefined, as precisely as results depend on it. The rules are those of `invalidation::catalogs`.
//!
//! There are two sources, as on a primary. Records of the heap tell which catalogs have new rows, as long as a catalog has its first file,
//! whose number is its OID; a catalog that was rewritten (VACUUM FULL) has a number that tells nothing. The messages of the commit tell of
//! each row by its system cache, and of relations. A message about a catalog of which no record was noted counts as a changed row. Keeps
//! nothing.

use arrow_cache_core::cache::versions::FIXED_SLOTS;
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

/// The most slots of definitions that are kept of one commit.
const MOST_SLOTS: usize = 1024;

/// The slots of what a commit redefines, until it has been replayed.
pub struct RedefinedSlots {
    list: [SlotId; MOST_SLOTS],
    length: usize,
}

impl RedefinedSlots {
    /// None.
    pub const fn new() -> Self {
        Self { list: [SlotId(0); MOST_SLOTS], length: 0 }
    }

    /// Lists those of a commit. If it redefines more than there is room for, everything counts as redefined.
    pub fn list(&mut self, mut redefined: Redefined, versions: Versions<'_>, commit: &Ended<'_>) {
        if self.try_list(&redefined, versions, commit.messages).is_none() {
            redefined.add_all();
            // Results rest on the slots of databases in any case.
            self.try_list(&redefined, versions, &[]);
        }
    }

    fn try_list(
        &mut self,
        redefined: &Redefined,
        versions: Versions<'_>,
        messages: &[pg_sys::SharedInvalidationMessage],
    ) -> Option<()> {
        self.clear();
        let mut fits = Some(());
        redefined.for_each_slot(versions, messages, |slot| match self.list.get_mut(self.length) {
            Some(place) => {
                *place = slot;
                self.length += 1;
            }
            None => fits = None,
        });
        fits
    }

    /// All of them: that of all catalogs first, those of relations last.
    pub fn all(&self) -> &[SlotId] {
        self.list.get(..self.length).unwrap_or(&self.list)
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.length = 0;
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
}

impl Redefined {
    /// What a commit has redefined, in addition to the relations that its messages name. `has_rows`: it is noted with rows of files that are
    /// not known to be those of catalogs.
    pub fn by(commit: &Ended<'_>, catalogs: &NotedCatalogs, has_rows: bool) -> Self {
        let mut redefined = Self { database: commit.database, ..Self::default() };
        for (catalog, how) in catalogs.entries() {
            if *how != CatalogChange::InPlace {
                redefined.add(*catalog, *how);
            }
        }
        let mut names_relations = false;
        for message in commit.messages {
            // SAFETY: messages are told apart by their first byte, which all of them have.
            match unsafe { message.id } {
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
                    // SAFETY: as above. Zero stands for all relations.
                    if unsafe { message.rc.relId } == pg_sys::InvalidOid {
                        redefined.add_everything_of_database();
                    }
                }
                WHOLE_CATALOG => redefined.add_all(),
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

    /// Whether a catalog is given a new file. Those who run now may change rows of the old one and of the new one, and only of the old one
    /// it is known which catalog it belongs to.
    pub fn rewrites_catalog(commit: &Ended<'_>) -> bool {
        // SAFETY: messages are told apart by their first byte, which all of them have.
        commit.messages.iter().any(|message| unsafe { message.id } == WHOLE_CATALOG)
    }

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
        *self = Self { database: self.database, any: true, everything: true, shared: true, enums: true };
    }

    /// Calls `visit` with the slots of what was redefined: that of all catalogs first, those of relations last.
    fn for_each_slot(
        &self,
        versions: Versions<'_>,
        messages: &[pg_sys::SharedInvalidationMessage],
        mut visit: impl FnMut(SlotId),
    ) {
        if !self.any {
            return;
        }
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
        let mut last = 0;
        for message in messages {
            // SAFETY: messages are told apart by their first byte, which all of them have.
            let named =
                unsafe { (message.id == RELATION).then(|| (message.rc.dbId.to_u32(), message.rc.relId.to_u32())) };
            if let Some((database, relation)) = named
                && relation != 0
                && relation != last
            {
                last = relation;
                visit(versions.relation(database, relation));
            }
        }
    }
}
