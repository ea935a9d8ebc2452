//! Which relations are tracked: those over which answers are stored that would outlive most changes if it were known
//! which values these concern (R11). Keeps nothing; the registry is in shared memory.

use arrow_cache_core::versions::zones::size_of_zones;
use arrow_cache_core::{QUIET, TrackedColumns, TrackedRelation, Wish, bits_of};
use pgrx::pg_sys;

use super::known_as::rows_of;
use super::waking;
use crate::pg::backend;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::object_ids::{FIRST_USER_OID, HEAP_TABLE_AM_OID};
use crate::settings;
use crate::shmem::SharedStore;

/// An answer was stored that would rest on values of a column if that were tracked. Has it tracked when there were
/// enough of them.
pub fn note_wish(store: &SharedStore, wish: &Wish) {
    if settings::precise_invalidation()
        && !backend::is_in_recovery()
        && let Some(wish) = store.registry().wish(wish)
    {
        take_in(store, &wish);
    }
}

/// An UPDATE is about to set columns of a tracked relation, by their bits. If it leaves one as it is by whose values
/// rows are known, that is a wish that they were quiet.
pub fn note_update(store: &SharedStore, relation: u32, tracked: &TrackedColumns, set: u64) {
    let may_gain = |column: i16| set & bits_of(column) == 0 && size_of_zones(column).is_none();
    if tracked.iter().any(may_gain) && tracked.quiet.with(set).is_some() {
        note_wish(store, &Wish { database: backend::database(), relation, column: QUIET, set });
    }
}

/// Has a column tracked, in recovery one that stands for zones. Returns true if it is then.
pub fn take_in(store: &SharedStore, wish: &Wish) -> bool {
    let Some(rows) = rows_of(wish.relation).filter(|_| can_be_tracked(wish.relation)) else { return false };
    let wish = &Wish { relation: rows, ..*wish };
    let (registry, versions, now) = (store.registry(), store.versions(), backend::now());
    if let Some((other, _)) = registry.beside(wish.database, wish.relation)
        && other.database == wish.database
        && !backend::is_in_recovery()
        && row_of(other.relation).is_none()
    {
        take_out(store, &other);
    }
    let before = registry.beside(wish.database, wish.relation).map(|(known, _)| known);
    registry.take_in(wish, &versions, now, backend::next_transaction_id);
    // Writers publish less from now on if there is more that is quiet, or if another relation was taken out.
    let is_other = |known: &TrackedRelation| (known.database, known.relation) != (wish.database, wish.relation);
    let others = before.filter(is_other).map(|known| versions.coarse(known.database, known.relation));
    let moved = others.into_iter().chain((wish.column == QUIET).then(|| versions.coarse(wish.database, wish.relation)));
    moved.for_each(|slot| waking::wake_for(store, [slot]));
    registry.settled_columns_of(wish.database, wish.relation).is_some_and(|columns| columns.has(wish.column))
}

/// Takes a relation out, if it is as it was.
pub fn take_out(store: &SharedStore, known: &TrackedRelation) {
    let (database, relation) = (known.database, known.relation);
    let versions = store.versions();
    store.registry().take_out((database, relation, known.tracked.generation), &versions, backend::now());
    // What rests on values of it hears of no change any more.
    waking::wake_for(store, [versions.coarse(database, relation)]);
}

fn row_of(relation: u32) -> Option<CatalogRow> {
    CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, pg_sys::Oid::from(relation))
}

/// Returns true if writers can note the changes of rows: those of a table of the server's own, which may be a leaf, or
/// have children. In recovery an unlogged one has no rows.
pub fn can_be_tracked(relation: u32) -> bool {
    relation >= FIRST_USER_OID
        && row_of(relation).as_ref().and_then(CatalogRow::relation).is_some_and(|class| {
            class.relkind as u8 == pg_sys::RELKIND_RELATION
                && class.relam.to_u32() == HEAP_TABLE_AM_OID
                && match class.relpersistence as u8 {
                    pg_sys::RELPERSISTENCE_PERMANENT => true,
                    pg_sys::RELPERSISTENCE_UNLOGGED => !backend::is_in_recovery(),
                    _ => false,
                }
        })
}
