//! Which relations are *tracked*: of their changes writers note which values of some columns they concern, so that
//! answers over other values need not be outdated (rules W8, R10, R11 of docs/architecture/exactness-values.md).
//!
//! A relation has one line, which it shares with others: only one of them is tracked at a time. Any process may take a
//! relation in, add a column to it, or take it out to make room. What a line says is read and written as a whole under
//! its sequence word; nothing is called while that is odd.
//!
//! Writers ask after they have got their transaction id, readers after they have read the version of the relation's
//! coarse slot. The order of the steps of taking in and taking out is what makes it exact:
//!
//! | step | writers | readers |
//! |---|---|---|
//! | `open`: the line names the relation and the column | publish values, or coarsely | store nothing that rests on values |
//! | the next transaction id is read, and all before it are published to the coarse slot, or for a further column to the slot of its unknown values: some may not have asked after `open` | | |
//! | `settle` | | store |
//! | `close` | as before | store nothing |
//! | the version of the coarse slot moves, so that all that was stored is outdated | | |
//! | `free` | publish to the slot of the relation alone | |
//!
//! A line also names *quiet columns*: an UPDATE of these alone concerns no answer that reads none of those it sets.
//! When they become more, the relation is taken out, but for the last step: in the place of `free`, it is settled anew.

use crate::atomics::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::versions::columns::{EACH_ROW, QUIET, QuietColumns, TrackedColumns, Wish, Wishes};
use crate::versions::places::{LINES, key_of, line_of};
use crate::versions::sequence::SequenceWord;
use crate::versions::slots::Versions;

/// So many publications without a quiet one show that a relation is tracked in vain by `EACH_ROW` alone.
const ENOUGH_LOUD: u32 = 1000;
/// A relation that was of no use for so long, in microseconds, gives way to another one.
const IDLE_MICROS: i64 = 10 * 60 * 1_000_000;
/// How exactly it is known when a line was of use last, in microseconds.
const USE_MICROS: i64 = 1_000_000;

/// Where a line is in its life. Zeroed memory is a free line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
enum Phase {
    #[default]
    Free,
    Opening,
    Settled,
    Closing,
}

/// What a line says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LineState {
    key: u64,
    tracked: TrackedColumns,
    phase: Phase,
    /// Since when the columns are as they are, in microseconds.
    since: i64,
}

/// One line. Zeroed memory names no relation.
#[repr(C, align(64))]
pub struct Line {
    word: SequenceWord,
    key: AtomicU64,
    columns: AtomicU64,
    /// The generation, and in its two low bits the phase.
    life: AtomicU64,
    since: AtomicI64,
    quiet: AtomicU64,
    /// These need not agree with the others: when an answer was stored last that rests on values, how many publications
    /// there were since the last quiet one, and the relation that was given back for that.
    last_use: AtomicI64,
    loud: AtomicU32,
    /// Of the first line only: `Usage` of all.
    usage: AtomicU32,
    vain_key: AtomicU64,
    wishes: Wishes,
}

const _: () = assert!(size_of::<Line>() == 128);

impl Line {
    fn load(&self) -> LineState {
        let life = self.life.load(Relaxed);
        let columns = self.columns.load(Relaxed);
        let phase = [Phase::Free, Phase::Opening, Phase::Settled, Phase::Closing][(life & 3) as usize];
        let columns = std::array::from_fn(|place| (columns >> (16 * place)) as i16);
        LineState {
            key: self.key.load(Relaxed),
            tracked: TrackedColumns { generation: life >> 2, columns, quiet: QuietColumns(self.quiet.load(Relaxed)) },
            phase,
            since: self.since.load(Relaxed),
        }
    }

    /// What the line says, as one consistent whole.
    #[must_use]
    pub fn read(&self) -> LineState {
        self.word.read(|_| self.load())
    }

    /// Changes the line if `edit` returns a new state. Returns true then.
    fn change(&self, edit: impl FnOnce(LineState) -> Option<LineState>) -> bool {
        let moves = self.word.begin();
        let changed = edit(self.load());
        changed.iter().for_each(|state| self.store(state));
        self.word.end(moves);
        changed.is_some()
    }

    fn store(&self, state: &LineState) {
        let places = state.tracked.columns.iter().rev();
        let columns = places.fold(0, |word, column| word << 16 | u64::from(column.cast_unsigned()));
        self.key.store(state.key, Relaxed);
        self.columns.store(columns, Relaxed);
        self.life.store(state.tracked.generation << 2 | state.phase as u64, Relaxed);
        self.since.store(state.since, Relaxed);
        self.quiet.store(state.tracked.quiet.0, Relaxed);
    }

    /// Moves from one phase to another, if nothing else has happened.
    fn pass(&self, generation: u64, from: Phase, to: Phase) -> bool {
        self.change(|state| {
            let is_same = state.tracked.generation == generation && state.phase == from;
            is_same.then_some(LineState { phase: to, ..state })
        })
    }
}

impl From<LineState> for Line {
    fn from(state: LineState) -> Self {
        let [key, columns, life, quiet, vain_key] = std::array::from_fn(|_| AtomicU64::new(0));
        let [loud, usage] = std::array::from_fn(|_| AtomicU32::new(0));
        let [since, last_use] = std::array::from_fn(|_| AtomicI64::new(0));
        let (word, wishes) = (SequenceWord::moved(0), Wishes::default());
        let line = Self { word, key, columns, life, since, quiet, last_use, loud, vain_key, wishes, usage };
        line.store(&state);
        line
    }
}

/// How many relations are tracked, and which: another one for each change of that. It need not agree with the lines at
/// every moment. But who begins after `open` has returned finds the relation counted, as long as a line names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage(u32);

impl Usage {
    /// In the high half it is counted how often a relation was taken in or out.
    const CHANGE: u32 = 1 << 16;

    /// No relation is tracked, and none has ever been.
    pub const NONE: Self = Self(0);

    /// Returns true if no relation is tracked.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0.is_multiple_of(Self::CHANGE)
    }
}

/// A tracked relation, for showing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrackedRelation {
    /// Its database.
    pub database: u32,
    /// The relation.
    pub relation: u32,
    /// Its columns.
    pub tracked: TrackedColumns,
    /// Since when they are tracked, in microseconds.
    pub since: i64,
}

/// View over all lines.
#[derive(Clone, Copy)]
pub struct Registry<'a> {
    lines: &'a [Line; LINES],
}

impl<'a> Registry<'a> {
    /// A view over lines.
    #[must_use]
    pub fn new(lines: &'a [Line; LINES]) -> Self {
        Self { lines }
    }

    fn line(&self, database: u32, relation: u32) -> &'a Line {
        &self.lines[line_of(database, relation)]
    }

    /// How many relations are tracked.
    #[inline]
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage(self.lines[0].usage.load(Relaxed))
    }

    /// Counts a relation that is named by a line from now on, or not any more.
    fn count(&self, more: u32) {
        // The models do not ask for it.
        if !cfg!(modelled) {
            self.lines[0].usage.fetch_add(Usage::CHANGE.wrapping_add(more), Relaxed);
        }
    }

    /// Returns true if the line names the relation: only then may it be tracked. Reads one word.
    #[inline]
    #[must_use]
    pub fn may_track(&self, database: u32, relation: u32) -> bool {
        self.line(database, relation).key.load(Relaxed) == key_of(database, relation)
    }

    /// The columns whose values a writer of the relation notes and publishes; `None` if the relation is not tracked. To
    /// be asked when the transaction has its id.
    #[inline]
    #[must_use]
    pub fn columns_of(&self, database: u32, relation: u32) -> Option<TrackedColumns> {
        if !self.may_track(database, relation) {
            return None;
        }
        let key = key_of(database, relation);
        let state = self.line(database, relation).read();
        (state.key == key && state.phase != Phase::Free).then_some(state.tracked)
    }

    /// The columns on whose values an answer may rest; `None` if there are none. To be asked when the version of the
    /// coarse slot of the relation has been read.
    #[must_use]
    pub fn settled_columns_of(&self, database: u32, relation: u32) -> Option<TrackedColumns> {
        let state = self.line(database, relation).read();
        (state.key == key_of(database, relation) && state.phase == Phase::Settled).then_some(state.tracked)
    }

    /// Notes that an answer was stored that rests on values of the relation.
    pub fn note_use(&self, database: u32, relation: u32, now: i64) {
        let last_use = &self.line(database, relation).last_use;
        if now.saturating_sub(last_use.load(Relaxed)).abs() >= USE_MICROS {
            last_use.store(now, Relaxed);
        }
    }

    /// Counts a wish. If there were enough for its column, returns one for what they have in common.
    #[must_use]
    pub fn wish(&self, wish: &Wish) -> Option<Wish> {
        self.line(wish.database, wish.relation).wishes.count(wish)
    }

    /// Counts a publication of a relation that is tracked by `EACH_ROW` alone. If there was no quiet one among the last
    /// thousand, gives the relation back, which is not taken in by `EACH_ROW` again for a while, and returns true: its
    /// coarse slot may have moved.
    pub fn note_publication(
        &self,
        (database, relation, generation): (u32, u32, u64),
        is_quiet: bool,
        versions: &Versions<'_>,
        now: i64,
    ) -> bool {
        let line = self.line(database, relation);
        let loud = if is_quiet { 0 } else { line.loud.load(Relaxed) + 1 };
        line.loud.store(loud, Relaxed);
        if loud >= ENOUGH_LOUD {
            line.vain_key.store(key_of(database, relation), Relaxed);
            line.last_use.store(now, Relaxed);
            self.take_out((database, relation, generation), versions, now);
        }
        loud >= ENOUGH_LOUD
    }

    /// Takes the column of a wish in, or makes columns quiet. Does nothing if it is tracked, or cannot be. `next` reads
    /// the next transaction id, by a lock that also orders who is given one.
    pub fn take_in(&self, wish: &Wish, versions: &Versions<'_>, now: i64, next: impl FnOnce() -> u64) {
        let (database, relation) = (wish.database, wish.relation);
        if wish.column == QUIET {
            if let Some((closing, quiet)) = self.close_for(wish) {
                let coarse = versions.slot(versions.coarse(database, relation));
                coarse.bump(now);
                self.reopen(closing, quiet, now);
            }
            return;
        }
        if let Some((other, last_use)) = self.beside(database, relation)
            && now.saturating_sub(last_use) >= IDLE_MICROS
        {
            self.take_out((other.database, other.relation, other.tracked.generation), versions, now);
        }
        if let Some(opening) = self.open(wish, now) {
            let past = match opening.is_added {
                true => versions.unknown(database, relation, wish.column),
                false => versions.coarse(database, relation),
            };
            versions.slot(past).publish_all_below(next(), now);
            self.settle(opening);
        }
    }

    /// Takes a relation out, if it still has this generation.
    pub fn take_out(&self, (database, relation, generation): (u32, u32, u64), versions: &Versions<'_>, now: i64) {
        if let Some(closing) = self.close(database, relation, generation) {
            versions.slot(versions.coarse(database, relation)).bump(now);
            self.free(closing);
        }
    }

    /// Another relation that has the line of this one, and when it was of use last.
    #[must_use]
    pub fn beside(&self, database: u32, relation: u32) -> Option<(TrackedRelation, i64)> {
        let line = self.line(database, relation);
        let state = line.read();
        let is_other = state.phase == Phase::Settled && state.key != key_of(database, relation);
        is_other.then(|| (shown(&state), line.last_use.load(Relaxed).max(state.since)))
    }

    /// The first step of taking a column in; `None` if it is tracked, or cannot be.
    #[must_use]
    pub fn open(&self, wish: &Wish, now: i64) -> Option<Step> {
        let key = key_of(wish.database, wish.relation);
        let (mut generation, mut is_new, mut is_added) = (0, false, false);
        let line = self.line(wish.database, wish.relation);
        let is_vain = wish.column == EACH_ROW
            && line.vain_key.load(Relaxed) == key
            && now.saturating_sub(line.last_use.load(Relaxed)) < IDLE_MICROS;
        let is_open = line.change(|state| {
            let before = match state.phase {
                Phase::Free if is_vain => return None,
                Phase::Free => TrackedColumns { generation: state.tracked.generation, ..TrackedColumns::default() },
                Phase::Settled if state.key == key && !state.tracked.has(wish.column) => state.tracked,
                _ => return None,
            };
            (generation, is_new) = (before.generation + 1, state.phase == Phase::Free);
            let tracked = TrackedColumns { generation, ..before.with(wish.column)? };
            is_added = tracked.added_since(&before).is_some();
            Some(LineState { key, tracked, phase: Phase::Opening, since: now })
        });
        if is_open {
            line.loud.store(0, Relaxed);
            self.count(u32::from(is_new));
        }
        is_open.then_some(Step { line: line_of(wish.database, wish.relation), generation, is_added })
    }

    /// The last step of taking a column in. All transactions that may not have asked after `open` are published.
    pub fn settle(&self, step: Step) {
        self.lines[step.line % LINES].pass(step.generation, Phase::Opening, Phase::Settled);
    }

    /// The first step of taking a relation out; `None` if it is not as it was.
    #[must_use]
    pub fn close(&self, database: u32, relation: u32, generation: u64) -> Option<Step> {
        let line = line_of(database, relation);
        self.lines[line].pass(generation, Phase::Settled, Phase::Closing).then_some(Step {
            line,
            generation,
            is_added: false,
        })
    }

    /// The first step of making more columns quiet, and which are then; `None` if they cannot be.
    #[must_use]
    pub fn close_for(&self, wish: &Wish) -> Option<(Step, QuietColumns)> {
        let tracked = self.settled_columns_of(wish.database, wish.relation)?;
        let quiet = tracked.quiet.with(wish.set)?;
        Some((self.close(wish.database, wish.relation, tracked.generation)?, quiet))
    }

    /// The last step of that. The version of the coarse slot has moved, and no answer is left that was stored before.
    /// Whoever has asked before publishes the values themselves, on which all answers rest.
    pub fn reopen(&self, step: Step, quiet: QuietColumns, now: i64) {
        self.lines[step.line % LINES].change(|state| {
            let is_same = state.tracked.generation == step.generation && state.phase == Phase::Closing;
            let tracked = TrackedColumns { generation: step.generation + 1, quiet, ..state.tracked };
            is_same.then_some(LineState { tracked, phase: Phase::Settled, since: now, ..state })
        });
    }

    /// The last step of taking a relation out. The version of its coarse slot has moved.
    pub fn free(&self, step: Step) {
        let is_freed = self.lines[step.line % LINES].change(|state| {
            let is_same = state.tracked.generation == step.generation && state.phase == Phase::Closing;
            is_same.then_some(LineState { key: 0, phase: Phase::Free, ..state })
        });
        if is_freed {
            self.count(1_u32.wrapping_neg());
        }
    }

    /// Returns true if no process has ended in the middle of a change.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.lines.iter().all(|line| line.word.change_under_way().is_none())
    }

    /// All tracked relations.
    pub fn all(&self) -> impl Iterator<Item = TrackedRelation> + use<'a> {
        self.lines.iter().map(Line::read).filter(|state| state.phase == Phase::Settled).map(|state| shown(&state))
    }
}

fn shown(state: &LineState) -> TrackedRelation {
    let (database, relation) = ((state.key >> 32) as u32, state.key as u32);
    TrackedRelation { database, relation, tracked: state.tracked, since: state.since }
}

/// A line in the middle of being taken in or out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[must_use]
pub struct Step {
    line: usize,
    generation: u64,
    /// A column is taken in beside others, for which nothing changes.
    pub is_added: bool,
}
