//! All zones of a table, or groups of them, read at once: the rows of their parts come sorted by the number of the
//! part. They are kept for the scan, and those of parts that were not stored are stored. Belongs to one scan of this
//! backend.

use std::time::Instant;

use pgrx::pg_sys;

use super::part_run::{Computed, Source, Surroundings, miss};
use crate::capture::PartFill;
use crate::lookup::stored_parts::PartKey;
use crate::pg::backend;
use crate::pg::row::Row;
use crate::pg::tree::Tree;
use crate::serve::slot_values;

/// The rows of all zones.
pub struct Pass {
    computed: Computed,
    /// Carries them.
    tuple: *mut pg_sys::TupleTableSlot,
}

impl Pass {
    /// Reads the table by the plan of all parts. The rows of those are stored that have `keys`, which come in the order
    /// of their numbers. `one` is the plan of one part.
    pub fn run(
        all: *mut pg_sys::PlannedStmt,
        one: *mut pg_sys::PlannedStmt,
        keys: &[(u64, PartKey)],
        surroundings: &Surroundings,
    ) -> Self {
        let began = Instant::now();
        let computed = Computed::run(|| Source::plan(all), None, surroundings, true);
        // SAFETY: a plan of the statement; the slot lives as long as the statement.
        let pass = unsafe {
            let caller = pg_sys::MemoryContextSwitchTo(surroundings.context);
            let columns = kept!(pg_sys::ExecTypeFromTL((*(*all).planTree).targetlist));
            let tuple = kept!(pg_sys::MakeSingleTupleTableSlot(columns, &raw const pg_sys::TTSOpsMinimalTuple));
            pg_sys::MemoryContextSwitchTo(caller);
            Self { computed, tuple }
        };
        if surroundings.environment.is_some() {
            let share = began.elapsed() / u32::try_from(keys.len().max(1)).unwrap_or(u32::MAX);
            // SAFETY: a plan of the statement, and its snapshot, which is registered.
            let (plan, snapshot) = unsafe { (Tree::enter(one), surroundings.snapshot.as_ref()) };
            let begin = |key| PartFill::begin(miss(plan?, snapshot, Some(key), surroundings).ok()?);
            pass.store(keys, begin, |fill| fill.finish(share));
        }
        pass
    }

    /// Stores the rows of each zone that has a key, which `begin` begins, and `finish` ends.
    fn store(&self, keys: &[(u64, PartKey)], begin: impl Fn(PartKey) -> Option<PartFill>, finish: impl Fn(PartFill)) {
        let mut zone_of_row = self.next_zone();
        for (zone, key) in keys {
            backend::accept_interrupts();
            while zone_of_row.is_some_and(|of_row| of_row < *zone) {
                zone_of_row = self.next_zone();
            }
            let mut fill = begin(*key);
            while zone_of_row == Some(*zone) {
                // SAFETY: the slot shows a row, whose last column is the zone; the values stay until the next one.
                let row = unsafe {
                    let (values, nulls) = slot_values(self.tuple);
                    let columns = values.len() - 1;
                    Row::new(&values[..columns], &nulls[..columns])
                };
                if let Some(Err(reason)) = fill.as_mut().map(|fill| fill.add(row)) {
                    fill.take().into_iter().for_each(|fill| fill.give_up(reason));
                }
                zone_of_row = self.next_zone();
            }
            fill.into_iter().for_each(&finish);
        }
        self.computed.rewind();
    }

    /// The zone of the next row, which the slot shows then; `None` at the end.
    fn next_zone(&self) -> Option<u64> {
        // SAFETY: a slot for rows of this plan, whose last column is the zone, an int4 that is not NULL.
        unsafe {
            self.computed.fetch(self.tuple).then(|| {
                let (values, _) = slot_values(self.tuple);
                values.last().map_or(u64::MAX, |zone| u64::from(zone.value() as u32))
            })
        }
    }

    /// Writes the next row, without the zone, into the values of a slot. False at the end.
    ///
    /// # Safety
    /// A virtual slot with the columns of the parts.
    pub unsafe fn next(&self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.computed.next(self.tuple, slot) }
    }

    /// How many rows there are.
    pub fn count(&self) -> i64 {
        self.computed.count()
    }

    /// Frees the rows.
    pub fn free(self) {
        // SAFETY: a slot of ours, which may show a row.
        unsafe {
            kept!(pg_sys::ExecDropSingleTupleTableSlot(self.tuple));
            self.computed.free();
        }
    }
}
