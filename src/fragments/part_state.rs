//! One part of a statement under way: where its rows come from, and how it is computed. Belongs to `parts`.

use arrow_cache_core::versions::zones::Zones;
use pgrx::pg_sys;

use super::key::PartKeys;
use super::part_run::{Computed, Source, Surroundings};
use super::recipe::{LeafPart, ZoneParts};
use super::{zone_merge, zones};
use crate::error::CacheError;
use crate::lookup::stored_parts::{self, PartKey, StoredPart};
use crate::serve::Hold;
use crate::shmem::SharedStore;

/// The part of one leaf, or of some zones.
pub struct PartState {
    pub leaf: pg_sys::Oid,
    /// The zones, if it is no leaf.
    pub zones: Option<Zones>,
    /// The stored parts of single zones that it is to be made of; none if it is read from the table.
    merged: Vec<*mut Hold>,
    /// What it is stored as; `None` if it is not looked up.
    pub key: Option<PartKey>,
    pub rows: Rows,
    /// How it is computed; null if it was stored when the statement was planned.
    pub plan: *mut pg_sys::PlannedStmt,
}

/// Where the rows of a part come from.
pub enum Rows {
    /// From the store: pinned.
    Stored(*mut Hold),
    /// From running its query, which is still to be done.
    Waiting,
    /// From running its query, which was done.
    Computed(Computed),
    /// There are none: the bounds of the statement exclude them.
    LeftOut,
    /// They came from running its query, and were read.
    Read,
}

impl PartState {
    /// A part whose rows are not looked for yet.
    fn new(leaf: pg_sys::Oid, zones: Option<Zones>, plan: *mut pg_sys::PlannedStmt) -> Self {
        Self { leaf, zones, merged: Vec::new(), key: None, rows: Rows::Waiting, plan }
    }

    pub fn of_leaf(leaf: &LeafPart) -> Self {
        Self::new(leaf.relation, None, leaf.plan)
    }

    /// Those of the zones that a table has now, one by one: the statement's snapshot, which was taken before, shows no
    /// row of others. An empty table has one, so that it is read.
    pub fn of_zones(relation: pg_sys::Oid, ZoneParts { column, unit, one, .. }: ZoneParts) -> Vec<Self> {
        // SAFETY: the plan has locked the table.
        let all = Zones::of_table(column, unsafe { zones::blocks_of(relation) }.max(1));
        all.groups_of(unit).map(|zones| Self::new(relation, Some(zones), one)).collect()
    }

    /// How it is computed under a snapshot, in the current memory context. `slot` is one for rows of parts.
    pub fn source(
        &self,
        zones: Option<ZoneParts>,
        snapshot: pg_sys::Snapshot,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Source {
        match (zones, self.zones) {
            // SAFETY: the holds of this statement; the slot has their columns.
            (Some(plans), Some(_)) if !self.merged.is_empty() => unsafe {
                zone_merge::source(plans, &self.merged, slot)
            },
            // SAFETY: a plan of the statement, for the zones of the table.
            (Some(_), Some(own)) => match unsafe { zones::of_zones(self.plan, self.leaf, own, snapshot) } {
                Some(plan) => Source::plan(plan),
                None => CacheError::placeholder_run().raise(),
            },
            _ => Source::plan(self.plan),
        }
    }

    /// Returns true if the table is to be read for it.
    pub fn is_to_be_read(&self) -> bool {
        matches!(self.rows, Rows::Waiting) && self.merged.is_empty()
    }

    /// Lets stored parts go: `rows` come in the place of its own. What was computed stays.
    pub fn forget_stored(&mut self, rows: Rows) {
        for hold in std::mem::take(&mut self.merged) {
            // SAFETY: a hold lasts as long as the statement.
            unsafe { (*hold).release() };
        }
        match self.rows {
            Rows::Stored(hold) => {
                // SAFETY: as above.
                unsafe { (*hold).release() };
                self.rows = rows;
            }
            Rows::Waiting => self.rows = rows,
            Rows::Computed(_) | Rows::LeftOut | Rows::Read => {}
        }
    }

    /// Finds out what the part of some zones is stored as, and looks for it. Returns true if there is one that does not
    /// hold.
    fn find_zones(&mut self, keys: &mut PartKeys<'_>, store: &SharedStore, surroundings: &Surroundings) -> bool {
        self.key = self.zones.and_then(|zones| keys.of_zones(self.leaf, zones).ok());
        self.look_up(store, surroundings)
    }

    /// Pins the stored part, if there is one that holds. What cannot be looked up is computed. Returns true if there is
    /// one that does not hold.
    pub fn look_up(&mut self, store: &SharedStore, surroundings: &Surroundings) -> bool {
        let Some(key) = self.key else { return false };
        let columns = &surroundings.columns;
        // SAFETY: the snapshot of the statement is registered.
        let found = unsafe { stored_parts::stored_part(store, key.key, columns, surroundings.snapshot.as_ref()) };
        let is_outdated = matches!(found, StoredPart::Outdated);
        // SAFETY: the context outlives the statement. A stored part has the columns that were compared with its own.
        let hold = unsafe { found.valid().map(|pin| Hold::in_context(surroundings.context, pin, columns.clone())) };
        if let Some(Ok(hold)) = hold {
            self.rows = Rows::Stored(hold);
        }
        is_outdated
    }
}

/// Looks for the stored parts of the zones of a table, which come one by one: for groups of them first. What was never
/// stored is computed in groups, what a change has outdated zone by zone. A group of which each zone has a part, and
/// that has none, is to be made of these; not the last group, which changes with each row that comes.
pub fn found_zones(
    zones: Vec<PartState>,
    unit: u64,
    keys: &mut PartKeys<'_>,
    store: &SharedStore,
    surroundings: &Surroundings,
) -> Vec<PartState> {
    let (mut found, size) = (Vec::new(), zones::group_size(unit) as usize);
    let mut waiting = zones.into_iter().peekable();
    while waiting.peek().is_some() {
        let mut group: Vec<PartState> = waiting.by_ref().take(size).collect();
        let zones = group[0].zones.map(|zones| Zones { count: unit * size as u64, ..zones });
        let mut whole = PartState::new(group[0].leaf, zones, group[0].plan);
        let is_outdated = whole.find_zones(keys, store, surroundings);
        if matches!(whole.rows, Rows::Stored(_)) {
            found.push(whole);
            continue;
        }
        for zone in &mut group {
            zone.find_zones(keys, store, surroundings);
        }
        let stored = |zone: &PartState| if let Rows::Stored(hold) = zone.rows { Some(hold) } else { None };
        let merged: Vec<_> = group.iter().filter_map(stored).collect();
        let is_whole = if merged.is_empty() {
            !is_outdated
        } else {
            merged.len() == group.len() && group.len() == size && waiting.peek().is_some()
        };
        if is_whole && whole.key.is_some() {
            found.push(PartState { merged, ..whole });
        } else {
            found.extend(group);
        }
    }
    found
}

/// Frees the rows of a part if they were computed: `rows` come after them.
pub fn free(part: &mut PartState, tuple: *mut pg_sys::TupleTableSlot, rows: Rows) {
    if let Rows::Computed(_) = part.rows
        && let Rows::Computed(computed) = std::mem::replace(&mut part.rows, rows)
    {
        // SAFETY: a slot of ours, which may show a row of the part.
        unsafe {
            pg_sys::ExecClearTuple(tuple);
            computed.free();
        }
    }
}
