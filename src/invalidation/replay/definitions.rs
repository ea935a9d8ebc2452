//! What a replayed commit has redefined, as precisely as results depend on it. The rules are those of
//! `invalidation::catalogs`.
//!
//! There are two sources, as on a primary. Records of the heap tell which catalogs have new rows, as long as a catalog
//! has its first file, whose number is its OID; a catalog that was rewritten (VACUUM FULL) has a number that tells
//! nothing. The messages of the commit tell of each row by its system cache, and of relations. A message about a
//! catalog of which no record was noted counts as a changed row. Keeps nothing.

use arrow_cache_core::versions::slots::FIXED_SLOTS;
use arrow_cache_core::{ChangeKind, ReplayedChanges, SlotId, Versions};
use pgrx::pg_sys;

use super::catalog_caches::catalog_of;
use crate::invalidation::catalogs::{ENUM_LABELS, SHARED, concerns_database, concerns_server, is_meaningful_catalog};
use crate::pg::wal_record::Ended;

const RELATION: i8 = pg_sys::SHAREDINVALRELCACHE_ID as i8;
const WHOLE_CATALOG: i8 = pg_sys::SHAREDINVALCATALOG_ID as i8;

/// Catalogs without a system cache. The server names the relation that a row of theirs belongs to, unless a superuser
/// has written the row.
const WITHOUT_CACHE: [u16; 4] = [2604, 2611, 2620, 3256]; // pg_attrdef, pg_inherits, pg_trigger, pg_policy

/// System caches have numbers below this: those that messages tell are not negative.
const CACHES: usize = i8::MAX as usize + 1;

/// What a commit has redefined, beside the relations that its messages name.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Redefined {
    /// Anything at all.
    pub any: bool,
    /// Something that every result of the database may rest on.
    everything: bool,
    /// Something that every result of the server may rest on.
    shared: bool,
    /// Labels of enums.
    enums: bool,
    /// A catalog is given a new file. Those who run now may change rows of the old one and of the new one, and only of
    /// the old one it is known which catalog it belongs to.
    pub rewrites_catalog: bool,
}

impl Redefined {
    /// Adds that rows of a catalog were added, updated or deleted.
    fn add(&mut self, catalog: u16) {
        let catalog = catalog.into();
        if is_meaningful_catalog(catalog) {
            self.any = true;
            self.everything |= concerns_database(catalog);
            self.shared |= concerns_server(catalog);
            self.enums |= catalog == ENUM_LABELS;
        }
    }

    /// What a commit has redefined, by what is noted of it and by its messages.
    #[inline(never)]
    pub fn by(commit: &Ended<'_>, changes: &ReplayedChanges) -> Self {
        let (mut redefined, mut has_rows, mut noted) = (Self::default(), false, Catalogs::none());
        for part in commit.all() {
            changes.for_each(part, |change| match change.kind() {
                ChangeKind::Slot(_) => has_rows = true,
                ChangeKind::Catalog(catalog) => {
                    redefined.add(catalog);
                    noted.insert(catalog);
                }
                ChangeKind::CatalogInPlace(catalog) => noted.insert(catalog),
            });
        }
        redefined.add_messages(commit, &noted, has_rows);
        redefined
    }

    /// Adds what the messages of a commit tell. `noted`: the catalogs that it is noted with. `has_rows`: it is noted
    /// with rows of files that are not known to be those of catalogs.
    fn add_messages(&mut self, commit: &Ended<'_>, noted: &Catalogs, has_rows: bool) {
        let is_noted = |catalog| noted.contains(catalog);
        let mut names_relations = false;
        // All messages about rows of one cache say the same here.
        let mut seen = [false; CACHES];
        for message in commit.messages {
            // SAFETY: messages are told apart by their first byte, which all of them have.
            match unsafe { message.id } {
                cache if cache >= 0 && std::mem::replace(&mut seen[cache as usize % CACHES], true) => {}
                cache if cache >= 0 => match catalog_of(cache) {
                    Some(catalog) if is_noted(catalog) => {}
                    Some(catalog) => self.add(catalog),
                    None => self.add_everything_of_database(),
                },
                RELATION => {
                    names_relations = true;
                    // The rows may be those of a catalog that was rewritten and has no cache, such as pg_policy.
                    // Without any, it is VACUUM or ANALYZE, or the catalog is noted.
                    self.any |= has_rows;
                    // SAFETY: as above. Zero stands for all relations.
                    if unsafe { message.rc.relId } == pg_sys::InvalidOid {
                        self.add_everything_of_database();
                    }
                }
                WHOLE_CATALOG => {
                    self.rewrites_catalog = true;
                    self.add_all();
                }
                // Files, the map of catalogs' files, and catalogs without caches that no result rests on.
                _ => {}
            }
        }
        if !names_relations && WITHOUT_CACHE.into_iter().any(is_noted) {
            self.add_all();
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

    /// Calls `visit` with the slots of all that the commit redefines: that of all catalogs first, those of relations
    /// last. One may come twice.
    pub fn for_each_slot(&self, commit: &Ended<'_>, versions: Versions<'_>, mut visit: impl FnMut(SlotId)) {
        if commit.database == 0 {
            // All databases are meant. The slots of catalogs are the last of them.
            (0..FIXED_SLOTS as u32).rev().map(SlotId).for_each(&mut visit);
        } else {
            visit(versions.catalogs(commit.database));
            if self.everything {
                visit(versions.ddl(commit.database));
            }
            if self.enums {
                visit(versions.enums(commit.database));
            }
        }
        if self.shared {
            visit(versions.ddl(SHARED));
        }
        for message in commit.messages {
            // SAFETY: messages are told apart by their first byte, which all of them have.
            if unsafe { message.id } == RELATION {
                // SAFETY: it is of this kind.
                let (database, relation) = unsafe { (message.rc.dbId.to_u32(), message.rc.relId.to_u32()) };
                visit(versions.relation(database, relation));
            }
        }
    }
}

/// Catalogs that a commit is noted with, whether rows of theirs were written or overwritten where they stand.
/// It is filled once: a commit may have thousands of sub-transactions, and messages about dozens of caches.
struct Catalogs([u64; Self::WORDS]);

impl Catalogs {
    /// Catalogs that messages can be about have OIDs below 64 times this. Others are never asked for, and not kept.
    const WORDS: usize = 128;

    fn none() -> Self {
        Self([0; Self::WORDS])
    }

    fn insert(&mut self, catalog: u16) {
        if let Some(word) = self.0.get_mut(usize::from(catalog) / 64) {
            *word |= 1 << (catalog % 64);
        }
    }

    fn contains(&self, catalog: u16) -> bool {
        self.0.get(usize::from(catalog) / 64).is_some_and(|word| word & 1 << (catalog % 64) != 0)
    }
}
