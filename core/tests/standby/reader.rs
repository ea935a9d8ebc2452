//! What a reader does, step by step: it is served from the cache, or it executes and stores. See R1 to R6 of
//! docs/architecture/exactness.md.

use crate::replay::{Definition, Program};
use crate::slots::{CATALOGS, DDL, FILE, OID, Slots};
use crate::wal::{Kind, Rules};
use crate::world::{Answer, Entry, Outcome, World};
use arrow_cache_core::versions::snapshot::SnapshotView;

/// The version of the catalogs by which a plan was made that may not be stored.
const UNKNOWN_CATALOGS: u64 = u64::MAX;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum At {
    Outside,
    /// Has locked the relation and read the version of the catalogs.
    Locked,
    Planned,
    HasSnapshot,
    LookingUp,
    /// Compares an entry with the slots, the first ones of which are done.
    Checking(Entry, usize),
    Tagging,
    /// Has read the versions of all slots that the answer rests on.
    Tagged,
    /// Nobody was changing what they stand for.
    Counted,
    Executed,
    Done,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reader {
    kind: Kind,
    at: At,
    /// After how many steps the snapshot was taken.
    snapshot: Option<usize>,
    /// What the caches hold, and how many messages were accepted.
    cached: Option<Definition>,
    heard: u8,
    catalogs: u64,
    /// Somebody was changing a definition that the answer rests on.
    met_definer: bool,
    tags: Vec<(usize, u64)>,
}

impl Reader {
    pub fn new(kind: Kind, program: &Program) -> Self {
        let server = &program.start;
        Self {
            kind,
            at: At::Outside,
            snapshot: None,
            cached: kind.is_warm.then_some(server.definition),
            heard: server.announced,
            catalogs: 0,
            met_definer: false,
            tags: Vec::new(),
        }
    }

    /// A reader that will not store any more, since something has changed that it rests on, is as good as done.
    pub fn without_hope(mut self, rules: &Rules, slots: &Slots) -> Self {
        let is_storing = matches!(self.at, At::Tagging | At::Tagged | At::Counted | At::Executed);
        let is_outdated = |(slot, version): &(usize, u64)| slots.read(*slot).version != *version;
        let is_compared = rules.catalogs_are_compared && !self.kind.keeps_plan && self.at != At::Executed;
        let may_be_old = is_compared && slots.read(CATALOGS).version != self.catalogs;
        if is_storing && (may_be_old || self.tags.iter().any(is_outdated)) {
            self.at = At::Done;
        }
        self.finished()
    }

    /// A statement that is over leaves what the next one needs; a reader that is done leaves nothing.
    fn finished(mut self) -> Self {
        if self.at == At::Done && self.kind.statements > 0 {
            self.kind.statements -= 1;
            (self.tags, self.catalogs, self.met_definer) = (Vec::new(), 0, false);
            if self.kind.statements > 0 {
                self.at = At::Outside;
                self.snapshot = self.snapshot.filter(|_| self.kind.has_old_snapshot);
            } else {
                (self.snapshot, self.cached, self.heard) = (None, None, 0);
            }
        }
        self
    }

    /// The server has been restarted: what was under way is over.
    pub fn in_new_session(mut self, announced: u8) -> Self {
        if self.is_inside() {
            self.at = At::Done;
            self = self.finished();
        }
        if self.at != At::Done {
            (self.snapshot, self.cached, self.heard) = (None, None, announced);
        }
        self
    }

    /// Whether it holds a lock on the relation.
    pub fn is_inside(&self) -> bool {
        !matches!(self.at, At::Outside | At::Done)
    }

    fn accept_messages(&mut self, announced: u8) {
        if self.heard != announced {
            (self.cached, self.heard) = (None, announced);
        }
    }

    /// The slots that an answer rests on.
    fn slots(&self, rules: &Rules) -> Vec<usize> {
        let (_, file) = self.cached.expect("planned");
        let rows = rules.entries_rest_on_file.then_some(FILE[file]);
        let definition = rules.entries_rest_on_oid.then_some(OID);
        definition.into_iter().chain(rows).chain([DDL]).collect()
    }
}

/// One step of one reader in the world. A reader that looks up may find any entry, or none.
pub struct Turn<'a> {
    pub program: &'a Program,
    pub rules: &'a Rules,
    pub world: &'a World,
    pub subs_are_listed: bool,
}

impl Turn<'_> {
    /// The worlds after the next step of the reader, none if it has to wait or is done.
    pub fn next(&self, position: usize, outcome: &mut Outcome) -> Vec<World> {
        let reader = &self.world.readers[position];
        if reader.at == At::LookingUp {
            return self.look_up(position);
        }
        let mut next = self.world.clone();
        let mut moved = reader.clone();
        match &reader.at {
            At::Outside if moved.kind.has_old_snapshot && moved.snapshot.is_none() => {
                moved.snapshot = Some(self.program.snapshot(self.world.done));
            }
            At::Outside => {
                let server = self.program.server(self.world.done);
                if server.is_locked {
                    return vec![];
                }
                moved.accept_messages(server.announced);
                moved.catalogs = match server.is_behind && self.rules.plans_from_before_are_told {
                    true => UNKNOWN_CATALOGS,
                    false => self.world.slots.read(CATALOGS).version,
                };
                moved.at = At::Locked;
            }
            At::Locked => {
                let server = self.program.server(self.world.done);
                moved.accept_messages(server.announced);
                moved.cached.get_or_insert(server.definition);
                if moved.kind.statements == 1 && !moved.kind.keeps_plan {
                    // Nothing is planned any more.
                    moved.heard = 0;
                }
                moved.met_definer =
                    !self.rules.count_is_asked_under_snapshot && self.is_being_redefined(moved.slots(self.rules));
                moved.at = At::Planned;
            }
            At::Planned => {
                moved.snapshot.get_or_insert(self.program.snapshot(self.world.done));
                moved.at = At::HasSnapshot;
            }
            At::HasSnapshot => {
                let (seen, now) =
                    (self.program.server(moved.snapshot.expect("taken")), self.program.server(self.world.done));
                moved.at = if now.is_behind && self.rules.place_is_awaited { At::Done } else { At::LookingUp };
                if moved.at == At::LookingUp {
                    let floor = if self.rules.floor_is_set_by_readers { seen.next.max(now.next_at_arrival) } else { 0 };
                    next.slots.ensure_floor(u64::from(floor));
                }
            }
            At::Checking(entry, checked) => self.check(&mut next, &mut moved, entry.clone(), *checked, outcome),
            At::Tagging => self.tag(&mut next, &mut moved),
            At::Tagged => {
                if self.rules.count_is_asked_under_snapshot {
                    moved.met_definer = self.is_being_redefined(moved.tags.iter().map(|(slot, _)| *slot));
                }
                moved.at = if moved.met_definer { At::Done } else { At::Counted };
            }
            At::Counted => {
                let is_new = self.world.slots.read(CATALOGS).version == moved.catalogs;
                let is_valid = moved.kind.keeps_plan
                    && moved.catalogs != UNKNOWN_CATALOGS
                    && self.program.server(self.world.done).announced == moved.heard;
                let is_stored = is_new || is_valid || !self.rules.catalogs_are_compared;
                moved.at = if is_stored { At::Executed } else { At::Done };
            }
            At::Executed => {
                self.store(&mut next, &moved, outcome);
                moved.at = At::Done;
            }
            At::LookingUp | At::Done => return vec![],
        }
        next.readers[position] = moved;
        vec![next]
    }

    fn look_up(&self, position: usize) -> Vec<World> {
        let found = self.world.entries.iter().map(|entry| At::Checking(entry.clone(), 0)).chain([At::Tagging]);
        let choices = found.map(|at| {
            let mut next = self.world.clone();
            next.readers[position].at = at;
            next
        });
        choices.collect()
    }

    fn with_snapshot<R>(&self, reader: &Reader, judge: impl FnOnce(&SnapshotView<'_>) -> R) -> R {
        let server = self.program.server(reader.snapshot.expect("taken"));
        let hidden = if self.subs_are_listed { 0 } else { self.program.subs };
        let in_progress: Vec<u32> = (0..server.xmax).filter(|xid| server.running & !hidden & (1 << xid) != 0).collect();
        let xmin = in_progress.first().copied().unwrap_or(server.xmax);
        judge(&SnapshotView { xmin: u64::from(xmin), xmax: u64::from(server.xmax), in_progress: &in_progress })
    }

    /// R3. The floor is read after the slots.
    fn check(&self, next: &mut World, reader: &mut Reader, entry: Entry, checked: usize, outcome: &mut Outcome) {
        let is_last = checked == entry.tags.len();
        let above_floor = !is_last || self.with_snapshot(reader, |snapshot| next.slots.above_floor(snapshot));
        let fits = entry.tags.get(checked).is_none_or(|(slot, version)| {
            let state = self.world.slots.read(*slot);
            state.version == *version && self.with_snapshot(reader, |snapshot| state.seen_whole(snapshot))
        });
        if !(above_floor && fits) {
            reader.at = At::Tagging;
        } else if is_last {
            self.judge_hit(reader, &entry, outcome);
            reader.at = At::Done;
        } else {
            reader.at = At::Checking(entry, checked + 1);
        }
    }

    fn judge_hit(&self, reader: &Reader, entry: &Entry, outcome: &mut Outcome) {
        let (planned_with, file) = reader.cached.expect("planned");
        let rows = self.program.rows(reader.snapshot.expect("taken"), file);
        // Another plan, of the same moment or later, may have met a newer definition. None goes back behind one that
        // has been met.
        let definitions = planned_with..=self.program.server(self.world.done).definition.0;
        let answer = &entry.answer;
        let is_exact = answer.rows == rows && answer.file == file && definitions.contains(&answer.definition);
        outcome.hits += 1;
        outcome.violations += usize::from(!is_exact);
    }

    /// R4: the slots one by one, each with the floor.
    fn tag(&self, next: &mut World, reader: &mut Reader) {
        let slots = reader.slots(self.rules);
        let slot = slots[reader.tags.len()];
        let state = self.world.slots.read(slot);
        let is_whole =
            self.with_snapshot(reader, |snapshot| state.seen_whole(snapshot) && next.slots.above_floor(snapshot));
        reader.tags.push((slot, state.version));
        reader.at = match is_whole {
            false => At::Done,
            true if reader.tags.len() == slots.len() => At::Tagged,
            true => At::Tagging,
        };
    }

    /// Returns true if somebody is changing what one of these slots stands for.
    fn is_being_redefined(&self, slots: impl IntoIterator<Item = usize>) -> bool {
        let definers = self.program.server(self.world.done).definers;
        slots.into_iter().any(|slot| definers & (1 << slot) != 0)
    }

    /// R6. What was executed is what the snapshot shows, by the definition that was planned with.
    fn store(&self, next: &mut World, reader: &Reader, outcome: &mut Outcome) {
        let unchanged = reader.tags.iter().all(|(slot, version)| self.world.slots.read(*slot).version == *version);
        if unchanged {
            let (definition, file) = reader.cached.expect("planned");
            let rows = self.program.rows(reader.snapshot.expect("taken"), file);
            outcome.stores += 1;
            next.entries.insert(Entry { tags: reader.tags.clone(), answer: Answer { definition, file, rows } });
        }
    }
}
