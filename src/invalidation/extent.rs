//! How much of a tracked relation a transaction has changed: the rows with certain values, or anything (W8). Keeps
//! nothing.

use arrow_cache_core::{Counter, SlotId};

use super::rows::{self, Coarse};
use super::write_set;
use super::writer::Writer;
use crate::shmem::SharedStore;

/// Calls `visit` with the slots of what the transaction under way has changed of tracked relations, beside those of the
/// whole relations. Each may be listed more than once, with the generation of what is tracked of it. `redefines` tells
/// whether the transaction has changed definitions.
pub fn for_each_slot(
    store: &SharedStore,
    writer: &Writer<'_>,
    mut tracked: Vec<(u32, u64)>,
    redefines: bool,
    mut visit: impl FnMut(SlotId),
) {
    tracked.sort_unstable();
    tracked.dedup_by_key(|(relation, _)| *relation);
    for (relation, generation) in tracked {
        let noted = match () {
            () if redefines => Err(Coarse::Definitions),
            () if write_set::holds(relation) => Err(Coarse::NotNoted),
            () => rows::for_each_noted(relation, generation, |column, hash| {
                visit(writer.value(relation, column, hash));
            }),
        };
        if noted.is_err() {
            let [_, coarse] = writer.of_relation(relation);
            visit(coarse);
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
