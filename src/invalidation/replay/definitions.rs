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
use crate::invalidation::definitions::Definitions;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::wal_record::Ended;

const RELATION: i8 = pg_sys::SHAREDINVALRELCACHE_ID as i8;
const WHOLE_CATALOG: i8 = pg_sys::SHAREDINVALCATALOG_ID as i8;

/// Catalogs without a system cache. The server names the relation that a row of theirs belongs to, unless a superuser
/// has written the row.
const WITHOUT_CACHE: [u16; 4] = [2604, 2611, 2620, 3256]; // pg_attrdef, pg_inherits, pg_trigger, pg_policy

/// What a commit has redefined, by what is noted of it and by its messages.
///
/// It may have changed rows of both files of a catalog that another one has rewritten meanwhile. Only of the old one it
/// is known which catalog it belongs to. A row that is noted there redefines as much as one of the new file would. A
/// note in place may hide no more than messages about pg_class, and each row of pg_class sends one about a relation,
/// too, which counts because there are rows of the new file.
pub fn redefined_by(commit: &Ended<'_>, changes: &ReplayedChanges) -> Definitions {
    let mut redefined = Definitions::default();
    let (mut has_rows, mut names_relations) = (false, false);
    // Catalogs that it is noted with. This is filled once: a commit may have thousands of sub-transactions.
    let mut noted = [false; FIRST_USER_OID as usize];
    let mut note = |catalog: u16| noted.get_mut(usize::from(catalog)).into_iter().for_each(|known| *known = true);
    for part in commit.all() {
        changes.for_each(part, |change| match change.kind() {
            // Rows of a file that is not known to be that of a catalog.
            ChangeKind::Slot(_) | ChangeKind::Anywhere(_) => has_rows = true,
            ChangeKind::Catalog(catalog) => {
                redefined.add(catalog.into(), None);
                note(catalog);
            }
            ChangeKind::CatalogInPlace(catalog) => note(catalog),
        });
    }
    let is_noted = |catalog: u16| noted.get(usize::from(catalog)) == Some(&true);
    for message in commit.messages {
        // SAFETY: messages are told apart by their first byte, which all of them have.
        match unsafe { message.id } {
            cache if cache >= 0 => match catalog_of(cache) {
                Some(catalog) if is_noted(catalog) => {}
                Some(catalog) => redefined.add(catalog.into(), None),
                None => redefined.add_database(),
            },
            RELATION => {
                names_relations = true;
                // The rows may be those of a catalog that was rewritten and has no cache, such as pg_policy. Without
                // any, it is VACUUM or ANALYZE, or the catalog is noted.
                redefined.any |= has_rows;
                // SAFETY: as above. Zero stands for all relations.
                if unsafe { message.rc.relId } == pg_sys::InvalidOid {
                    redefined.add_database();
                }
            }
            WHOLE_CATALOG => redefined = Definitions::ALL,
            // Files, the map of catalogs' files, and catalogs without caches that no result rests on.
            _ => {}
        }
    }
    if !names_relations && WITHOUT_CACHE.into_iter().any(is_noted) {
        redefined = Definitions::ALL;
    }
    redefined
}

/// Calls `visit` with the slots of all that a commit redefines: these definitions, with that of all catalogs first, and
/// the relations that its messages name. One may come twice.
pub fn for_each_slot(
    redefined: Definitions,
    commit: &Ended<'_>,
    versions: Versions<'_>,
    mut visit: impl FnMut(SlotId),
) {
    if commit.database == 0 {
        // All databases are meant. The slots of catalogs are the last of them.
        (0..FIXED_SLOTS as u32).rev().map(SlotId).for_each(&mut visit);
    } else {
        redefined.for_each_slot(commit.database, versions, &mut visit);
    }
    for message in commit.messages {
        // SAFETY: messages are told apart by their first byte, which all of them have.
        if unsafe { message.id } == RELATION {
            // SAFETY: it is of this kind.
            let (database, relation) = unsafe { (message.rc.dbId.to_u32(), message.rc.relId.to_u32()) };
            versions.of_relation(database, relation).into_iter().for_each(&mut visit);
        }
    }
}
