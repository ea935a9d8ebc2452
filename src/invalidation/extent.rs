//! How much of a tracked relation a transaction has changed: the rows with certain values, or anything (W8). Keeps
//! nothing.

use arrow_cache_core::versions::noted_rows::CountedChanges;
use arrow_cache_core::{Counter, EACH_ROW, ITS_VALUE, SlotId, TrackedColumns};

use super::rows::{self, Coarse};
use super::waking;
use super::writer::Writer;
use crate::pg::backend;
use crate::shmem::SharedStore;

/// A tracked relation that has changed, and how many changes the server has counted; `None` if the hooks have seen the
/// change, of what the server may not count.
pub type Changed = (u32, TrackedColumns, Option<CountedChanges>);

/// Calls `visit` with the slots of what the transaction under way has changed of tracked relations, beside those of the
/// whole relations. Each may be listed more than once. `redefines` tells whether the transaction has changed
/// definitions.
pub fn for_each_slot(
    store: &SharedStore,
    writer: &Writer<'_>,
    mut tracked: Vec<Changed>,
    redefines: bool,
    mut visit: impl FnMut(SlotId),
) {
    tracked.sort_unstable_by_key(|(relation, _, counted)| (*relation, counted.is_some()));
    tracked.dedup_by_key(|(relation, ..)| *relation);
    for (relation, columns, counted) in tracked {
        let mut is_quiet = false;
        let noted = match counted {
            _ if redefines => Err(Coarse::Definitions),
            None => Err(Coarse::NotNoted),
            Some(counted) => rows::for_each_noted(relation, &columns, &counted, |column, hash| {
                is_quiet |= column == EACH_ROW && hash != Some(ITS_VALUE);
                visit(writer.value(relation, column, hash));
            }),
        };
        if noted.is_err() {
            let [_, coarse] = writer.of_relation(relation);
            visit(coarse);
        }
        if columns.is_each_row() {
            let line = (backend::database(), relation, columns.generation);
            if store.registry().note_publication(line, is_quiet, &store.versions(), backend::now()) {
                waking::note_moved(store, &writer.of_relation(relation));
            }
        }
        let counter = match noted {
            Ok(()) => Counter::PrecisePublications,
            Err(Coarse::NotNoted) => Counter::CoarseNotNoted,
            Err(Coarse::Overflow) => Counter::CoarseOverflow,
            Err(Coarse::Generation) => Counter::CoarseGeneration,
            Err(Coarse::Definitions) => Counter::CoarseDefinitions,
        };
        store.counters().add(store.stripe(), counter, 1);
    }
}
