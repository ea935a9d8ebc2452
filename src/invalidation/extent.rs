//! How much of a relation a transaction has changed: the rows with certain values, or anything (W8). Keeps nothing.

use arrow_cache_core::{Counter, SlotId};

use super::rows::{self, Coarse};
use super::writer::Writer;
use crate::pg::backend;
use crate::shmem::SharedStore;

/// Calls `visit` with the slots of what the transaction under way, which has its id, has changed of a relation. `known`
/// tells whether its changes can be known by their values at all.
pub fn for_each_slot(
    store: &SharedStore,
    writer: &Writer<'_>,
    relation: u32,
    known: Result<(), Coarse>,
    mut visit: impl FnMut(SlotId),
) {
    let [whole, coarse] = writer.of_relation(relation);
    visit(whole);
    // Whoever has got his id after a relation was taken in finds it here. For all others it was published then.
    let Some(tracked) = store.registry().columns_of(backend::database(), relation) else { return };
    let noted = known.and_then(|()| {
        rows::for_each_noted(relation, tracked.generation, |column, hash| visit(writer.value(relation, column, hash)))
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
