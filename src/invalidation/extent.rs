//! How much of a relation a transaction has changed: the rows with certain values, or anything (W8). Keeps nothing.

use arrow_cache_core::{Counter, SlotId};

use super::rows::{self, Coarse};
use super::writer::Writer;
use crate::shmem::SharedStore;

/// Calls `visit` with the slots of what the transaction under way, which has its id, has changed of a tracked relation,
/// beside that of the whole relation. `generation` is that of what is tracked of it. `known` tells whether its changes
/// can be known by their values at all.
pub fn for_each_slot(
    store: &SharedStore,
    writer: &Writer<'_>,
    (relation, generation): (u32, u64),
    known: Result<(), Coarse>,
    mut visit: impl FnMut(SlotId),
) {
    let [_, coarse] = writer.of_relation(relation);
    let noted = known.and_then(|()| {
        rows::for_each_noted(relation, generation, |column, hash| visit(writer.value(relation, column, hash)))
    });
    if noted.is_err() {
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
