//! Writers, readers and a registrar, of which each takes its next step whenever the others have not ended.

use arrow_cache_core::versions::columns::TrackedColumns;
use arrow_cache_core::versions::slot::{Slot, SlotState};
use arrow_cache_core::versions::snapshot::SnapshotView;
use arrow_cache_core::versions::tracked::{LineState, Step};
use std::collections::{BTreeSet, HashSet};

use crate::one_line::{DATABASE, RELATION, wish, with};
use crate::publishing::published;
use crate::rules::{Act, Close, Free, Move, Open, Past, PublishPast, ReadNext, Reopen, Rules, Settle};

/// The slots: the coarse one, that of the value which each writer changes rows of in either column, that of one which
/// none changes in the first, those of the same values for changes of each of two quiet columns, and that of rows of
/// which the value in the second column is not known.
const COARSE: usize = 0;
const OTHER: usize = 3;
const QUIETLY: usize = 3;
const UNKNOWN: usize = 10;
const SLOTS: usize = 11;

/// Columns that writers change.
pub const SEEN: u64 = 1 << 3;
pub const VISITS: u64 = 1 << 4;
pub const NAME: u64 = 1 << 5;

/// What an answer is over: the column, the slot of the value, and the columns that it reads.
pub type Question = (i16, usize, u64);
pub const QUESTIONS: [Question; 3] = [(1, 1, NAME), (2, 2, NAME), (1, OTHER, NAME)];
pub const OF_QUIET_COLUMNS: [Question; 4] = [(1, 1, NAME), (1, 1, NAME | SEEN), (1, 1, VISITS), (2, 2, VISITS)];

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd)]
enum At {
    Waiting,
    /// Its statement has begun, and has asked whether the relation is tracked.
    Asked,
    /// It has an id, and has changed a row.
    Wrote,
    /// It has asked again, before it ends.
    AskedAgain,
    Published,
    Gone,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Writer {
    at: At,
    noted: Option<TrackedColumns>,
    found: Option<TrackedColumns>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Snapshot {
    committed: u32,
    xmin: u64,
    xmax: u64,
    in_progress: Vec<u32>,
}

impl Snapshot {
    fn sees(&self, state: &SlotState) -> bool {
        let view = SnapshotView { xmin: self.xmin, xmax: self.xmax, in_progress: &self.in_progress };
        state.seen_whole(&view)
    }
}

/// What a reader is about to store has been read so far: the version of the coarse slot, if it is seen whole. Which
/// values its rows have is known only when they have been read, and the versions of their slots are read then.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Reader {
    Before,
    Took(Snapshot),
    ReadFirst(Snapshot, Option<u64>, Option<TrackedColumns>),
    Runs(Snapshot, u64, TrackedColumns),
    Done,
}

/// Versions of slots, of those on which an answer rests.
type Versions = [Option<u64>; 3];

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    writers: Vec<Writer>,
    readers: Vec<Reader>,
    slots: [SlotState; SLOTS],
    line: LineState,
    done: usize,
    step: Option<Step>,
    /// A column is taken in beside others.
    is_added: bool,
    next: u64,
    /// Stored answers: the question, the versions of its slots, and the committed writers they show, by bit.
    entries: BTreeSet<(usize, [Option<u64>; 2], Versions, u32)>,
}

#[derive(Default)]
pub struct Outcome {
    pub hits: usize,
    pub hits_beside_changes: usize,
    pub violations: usize,
}

pub struct Model<'a> {
    /// The id of each writer, and the columns that it changes.
    pub xids: &'a [u64],
    pub changes: &'a [u64],
    pub questions: &'a [Question],
    pub acts: &'a [Act],
    pub rules: Rules,
    /// One process replays what the writers do, and publishes for them. It notes what they change when it replays that.
    pub replayed: bool,
}

impl Model<'_> {
    fn running(&self, world: &World) -> Vec<u64> {
        let has_id = |writer: &Writer| writer.at >= At::Wrote && writer.at < At::Gone;
        self.xids.iter().zip(&world.writers).filter(|(_, writer)| has_id(writer)).map(|(xid, _)| *xid).collect()
    }

    fn snapshot(&self, world: &World) -> Snapshot {
        let gone = |place: usize| world.writers[place].at == At::Gone;
        let committed = (0..self.xids.len()).filter(|place| gone(*place)).fold(0, |bits, place| bits | 1 << place);
        let xmax =
            (0..self.xids.len()).filter(|place| gone(*place)).map(|place| self.xids[place] + 1).max().unwrap_or(1);
        let running = self.running(world);
        let xmin = running.iter().copied().fold(xmax, u64::min);
        let in_progress = running.into_iter().filter(|xid| *xid < xmax).map(|xid| xid as u32).collect();
        Snapshot { committed, xmin, xmax, in_progress }
    }

    fn tracked_for_writers(&self, world: &World) -> Option<TrackedColumns> {
        with(&mut { world.line }, |registry| {
            if self.rules.closing_lines_count || world.step.is_none() || !self.is_closing(world) {
                registry.columns_of(DATABASE, RELATION)
            } else {
                None
            }
        })
    }

    fn is_closing(&self, world: &World) -> bool {
        world.done > 0 && matches!(self.acts[world.done - 1], Close | Move)
    }

    fn publish(&self, world: &mut World, place: usize) {
        let writer = &world.writers[place];
        let Some(found) = writer.found else { return };
        let rules = self.rules;
        let noted = writer.noted.or((!rules.counts_are_compared).then_some(TrackedColumns::default()));
        let added = noted.and_then(|noted| self.added(&found, &noted));
        let slots: Vec<usize> = match noted.zip(added) {
            Some((noted, added)) => {
                let changes = self.changes[place];
                let is_quiet = noted.quiet.are_all(changes)
                    || (!rules.all_changed_columns_must_be_quiet && noted.quiet.bits() & changes != 0);
                let unknown = added.iter().filter(|_| rules.unknown_values_are_published).map(|_| UNKNOWN);
                let quietly: Vec<usize> =
                    noted.quiet.among(changes).map(|place| QUIETLY * (1 + usize::from(place))).collect();
                let shifts = if is_quiet { quietly } else { vec![0] };
                let values = noted.iter().flat_map(|column| shifts.iter().map(move |shift| column as usize + shift));
                values.chain(unknown).collect()
            }
            None => vec![COARSE],
        };
        self.publish_to(world, place, &slots);
    }

    /// Publishes what the process that replays has noted of a writer: values, if the relation was tracked then. It is
    /// not asked whether it is tracked now.
    fn publish_replayed(&self, world: &mut World, place: usize) {
        for number in world.writers[place].found.iter().flat_map(TrackedColumns::iter) {
            let xid = self.xids[place];
            world.slots[number as usize] = published(world.slots[number as usize], true, (xid, xid), &[]);
        }
    }

    fn publish_to(&self, world: &mut World, place: usize, slots: &[usize]) {
        let (xid, running) = (self.xids[place], self.running(world));
        let oldest = running.iter().copied().fold(xid, u64::min);
        for &number in slots {
            let is_of_value = ![COARSE, UNKNOWN].contains(&number);
            world.slots[number] = published(world.slots[number], is_of_value, (xid, oldest), &running);
        }
    }

    /// The columns of which a writer that has noted by these has not noted values; `None` if it has to be coarse.
    fn added(&self, found: &TrackedColumns, noted: &TrackedColumns) -> Option<Vec<i16>> {
        if !self.rules.generations_are_compared || !self.rules.counts_are_compared {
            return Some(Vec::new());
        }
        found.added_since(noted).map(Iterator::collect)
    }

    fn write(&self, world: &World, place: usize) -> Option<World> {
        let mut next = world.clone();
        let is_publishing = |other: &Writer| other.at == At::Published;
        if self.replayed && !is_publishing(&world.writers[place]) && world.writers.iter().any(is_publishing) {
            return None;
        }
        next.writers[place].at = match world.writers[place].at {
            // Nobody asks before the id is known.
            At::Waiting if self.replayed => At::Asked,
            At::Waiting => {
                next.writers[place].noted = self.tracked_for_writers(world);
                At::Asked
            }
            At::Asked => {
                // Ids are handed out in order.
                let mut earlier = self.xids.iter().zip(&world.writers);
                if earlier.any(|(xid, writer)| *xid < self.xids[place] && writer.at < At::Wrote) {
                    return None;
                }
                At::Wrote
            }
            At::Wrote => {
                next.writers[place].found = self.tracked_for_writers(world);
                At::AskedAgain
            }
            At::AskedAgain => {
                if self.replayed {
                    self.publish_replayed(&mut next, place);
                } else {
                    self.publish(&mut next, place);
                }
                At::Published
            }
            At::Published => At::Gone,
            At::Gone => return None,
        };
        Some(next)
    }

    fn next_xid(&self, world: &World) -> u64 {
        let given = self.xids.iter().zip(&world.writers).filter(|(_, writer)| writer.at >= At::Wrote);
        given.map(|(xid, _)| xid + 1).max().unwrap_or(1)
    }

    fn act(&self, world: &World) -> Option<World> {
        let act = *self.acts.get(world.done)?;
        let mut next = world.clone();
        next.done += 1;
        let coarse = Slot::from(world.slots[COARSE]);
        match act {
            Open(column) => {
                let step = with(&mut next.line, |registry| registry.open(&wish(column, 0), 0));
                let step = step.expect("it can be opened");
                next.is_added = step.is_added;
                next.step = Some(step);
            }
            Reopen(set) => with(&mut next.line, |registry| {
                let quiet = registry.columns_of(DATABASE, RELATION).and_then(|tracked| tracked.quiet.with(set));
                registry.reopen(world.step.expect("it is closed"), quiet.expect("they become more"), 0);
            }),
            ReadNext => next.next = self.next_xid(world),
            PublishPast => {
                let number = if world.is_added { UNKNOWN } else { COARSE };
                let past = Slot::from(world.slots[number]);
                match self.rules.past {
                    Past::Whole => past.publish_all_below(world.next, 0),
                    Past::Nothing => past.bump(0),
                    Past::Running => {
                        let running = self.running(world);
                        let mut state = past.read();
                        state.version += 1;
                        let mut all = running.iter().copied().filter(|xid| *xid < world.next);
                        state.pending = std::array::from_fn(|_| all.next().unwrap_or(0));
                        next.slots[number] = state;
                        return Some(next);
                    }
                }
                next.slots[number] = past.read();
                return Some(next);
            }
            Settle => with(&mut next.line, |registry| registry.settle(world.step.expect("it is open"))),
            Close => {
                next.step = with(&mut next.line, |registry| {
                    let tracked = registry.columns_of(DATABASE, RELATION).expect("it is tracked");
                    registry.close(DATABASE, RELATION, tracked.generation)
                });
            }
            Move if self.rules.coarse_moves_at_the_end => coarse.bump(0),
            Move => {}
            Free => with(&mut next.line, |registry| registry.free(world.step.expect("it is closed"))),
        }
        next.slots[COARSE] = coarse.read();
        Some(next)
    }

    fn usable(&self, world: &World) -> Option<TrackedColumns> {
        with(&mut { world.line }, |registry| {
            if self.rules.only_settled_lines_are_used {
                registry.settled_columns_of(DATABASE, RELATION)
            } else {
                registry.columns_of(DATABASE, RELATION)
            }
        })
    }

    /// The committed writers that an answer shows.
    fn shown(&self, (_, slot, reads): Question, snapshot: &Snapshot) -> u32 {
        let is_shown = |place: usize| slot != OTHER && self.changes[place] & reads != 0;
        (0..self.xids.len()).filter(|place| is_shown(*place)).fold(0, |bits, place| bits | 1 << place)
            & snapshot.committed
    }

    /// The versions of the slots of a value, as far as an answer rests on them; `None` if one has to be seen whole, and
    /// is not.
    fn versions(
        world: &World,
        snapshot: &Snapshot,
        (slot, rests_on): (usize, [bool; 3]),
        must_see: bool,
    ) -> Option<Versions> {
        let states = [0, QUIETLY, 2 * QUIETLY].map(|shift| world.slots[slot + shift]);
        let sees = |number: usize| !must_see || !rests_on[number] || snapshot.sees(&states[number]);
        let version = |number: usize| rests_on[number].then_some(states[number].version);
        (0..3).all(sees).then(|| [version(0), version(1), version(2)])
    }

    fn coarse_version(world: &World, snapshot: &Snapshot) -> Option<u64> {
        let state = world.slots[COARSE];
        snapshot.sees(&state).then_some(state.version)
    }

    fn read(&self, world: &World, place: usize, outcome: &mut Outcome) -> Option<World> {
        let mut next = world.clone();
        let coarse_first = self.rules.coarse_is_read_before_the_line;
        next.readers[place] = match &world.readers[place] {
            Reader::Before => Reader::Took(self.snapshot(world)),
            Reader::Took(snapshot) => {
                self.hit(world, snapshot, outcome);
                let coarse = if coarse_first { Self::coarse_version(world, snapshot) } else { None };
                let usable = if coarse_first { None } else { self.usable(world) };
                Reader::ReadFirst(snapshot.clone(), coarse, usable)
            }
            Reader::ReadFirst(snapshot, coarse, usable) => {
                let coarse = if coarse_first { *coarse } else { Self::coarse_version(world, snapshot) };
                let usable = if coarse_first { self.usable(world) } else { *usable };
                match (coarse, usable) {
                    (Some(version), Some(tracked)) => Reader::Runs(snapshot.clone(), version, tracked),
                    _ => Reader::Done,
                }
            }
            Reader::Runs(snapshot, coarse, tracked) => {
                let version = if self.rules.coarse_is_kept { *coarse } else { world.slots[COARSE].version };
                for (number, question) in self.questions.iter().enumerate() {
                    let (column, slot, reads) = *question;
                    if tracked.has(column) {
                        let counts = self.rules.quiet_changes_concern_those_who_read;
                        let quiet = |place| counts && tracked.quiet.among(reads).any(|own| own == place);
                        let must_see = self.rules.values_are_seen_whole;
                        let rests_on = [true, quiet(0), quiet(1)];
                        let of_value = Self::versions(world, snapshot, (slot, rests_on), must_see);
                        let rests_on_unknown =
                            self.rules.unknown_values_count && tracked.place_of(column).is_some_and(|place| place > 0);
                        let unknown = rests_on_unknown.then_some(world.slots[UNKNOWN]);
                        let of_value = of_value.filter(|_| unknown.is_none_or(|state| snapshot.sees(&state)));
                        let whole = [Some(version), unknown.map(|state| state.version)];
                        let entry = |of_value| (number, whole, of_value, self.shown(*question, snapshot));
                        next.entries.extend(of_value.map(entry));
                    }
                }
                Reader::Done
            }
            Reader::Done => return None,
        };
        Some(next)
    }

    fn hit(&self, world: &World, snapshot: &Snapshot, outcome: &mut Outcome) {
        let coarse = Self::coarse_version(world, snapshot);
        let unknown = Some(world.slots[UNKNOWN]).filter(|state| snapshot.sees(state)).map(|state| state.version);
        for (number, [version, of_unknown], of_value, shown) in &world.entries {
            let question = self.questions[*number];
            let rests_on = of_value.map(|version| version.is_some());
            let now = Self::versions(world, snapshot, (question.1, rests_on), true);
            let knows_all = of_unknown.is_none() || *of_unknown == unknown;
            if coarse == *version && coarse.is_some() && knows_all && now == Some(*of_value) {
                let right = self.shown(question, snapshot);
                outcome.hits += 1;
                outcome.hits_beside_changes += usize::from(snapshot.committed != right);
                outcome.violations += usize::from(*shown != right);
            }
        }
    }

    pub fn explore(&self, readers: usize) -> Outcome {
        let mut outcome = Outcome::default();
        let writer = Writer { at: At::Waiting, noted: None, found: None };
        let start = World {
            writers: vec![writer; self.xids.len()],
            readers: vec![Reader::Before; readers],
            slots: [SlotState::default(); SLOTS],
            line: LineState::default(),
            done: 0,
            step: None,
            is_added: false,
            next: 0,
            entries: BTreeSet::new(),
        };
        let (mut seen, mut open) = (HashSet::new(), vec![start]);
        while let Some(world) = open.pop() {
            if !seen.insert(world.clone()) {
                continue;
            }
            open.extend(self.act(&world));
            open.extend((0..self.xids.len()).filter_map(|place| self.write(&world, place)));
            for place in 0..readers {
                open.extend(self.read(&world, place, &mut outcome).map(|mut next| {
                    // Readers are interchangeable.
                    next.readers.sort_unstable();
                    next
                }));
            }
        }
        outcome
    }
}
