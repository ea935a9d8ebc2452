//! How much of a tracked relation a transaction has changed: the rows with certain values, or anything (W8). Keeps
//! nothing.

use arrow_cache_core::versions::noted_rows::CountedChanges;
use arrow_cache_core::versions::places::{number_of_column, place_of_value};
use arrow_cache_core::{Counter, EACH_ROW, ITS_VALUE, TrackedColumns};

use super::rows::{self, Coarse};
use super::writer::Writer;
use crate::pg::backend;
use crate::shmem::SharedStore;

/// A tracked relation that has changed, and how many changes the server has counted; `None` if the hooks have seen the
/// change, of what the server may not count.
pub type Changed = (u32, TrackedColumns, Option<CountedChanges>);

/// Publishes what the transaction under way has changed of tracked relations, beside these as a whole. `redefines` says
/// whether it has changed definitions.
pub fn publish(store: &SharedStore, writer: &Writer<'_>, mut tracked: Vec<Changed>, redefines: bool) {
    tracked.sort_unstable_by_key(|(relation, _, counted)| (*relation, counted.is_some()));
    tracked.dedup_by_key(|(relation, ..)| *relation);
    for (relation, columns, counted) in tracked {
        let mut is_quiet = false;
        let noted = match counted {
            _ if redefines => Err(Coarse::Definitions),
            None => Err(Coarse::NotNoted),
            Some(counted) => rows::with_noted(relation, &columns, &counted, |values, unknown| {
                is_quiet = columns.is_each_row() && !values.iter().all(|value| *value == its_value(relation));
                writer.publish_values(values);
                unknown.for_each(|column| writer.publish(writer.unknown(relation, column)));
            }),
        };
        if noted.is_err() {
            let [_, coarse] = writer.of_relation(relation);
            writer.publish(coarse);
        }
        if columns.is_each_row() {
            let line = (backend::database(), relation, columns.generation);
            store.registry().note_publication(line, is_quiet, &store.versions(), backend::now());
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

/// The place of what `EACH_ROW` has in a row that has not changed quietly.
fn its_value(relation: u32) -> u64 {
    place_of_value(number_of_column(backend::database(), relation, EACH_ROW), ITS_VALUE)
}
