//! What the process that replays does, step by step. Readers cannot influence it, except that they may hold it up by
//! their locks: so the steps are known before, and the state of the server is that of the last step.

use crate::slots::{CATALOGS, COUNT, DDL, FILE, OID, beginning_anew, ids};
use crate::wal::{Case, Messages, Record, Rules};
use arrow_cache_core::replay::changes::{Change, ChangeKind, ChangeTable};
use std::collections::BTreeSet;

/// A relation's definition by number, and its file.
pub type Definition = (u8, usize);

/// What is noted of a change of a definition.
const PG_CLASS: Change = Change::catalog(1259);

/// What the server knows. Sets of transactions are words.
#[derive(Clone, Copy, Default, Debug)]
pub struct Server {
    pub next: u32,
    pub xmax: u32,
    pub running: u32,
    pub committed: u32,
    /// By the latest catalogs.
    pub definition: Definition,
    /// How often invalidation messages were sent.
    pub announced: u8,
    /// Places of slots, as bits, whose definitions somebody is changing.
    pub definers: u8,
    /// Readers cannot lock the relation.
    pub is_locked: bool,
    /// It replays again what it had replayed before a restart.
    pub is_behind: bool,
    /// The next id when it had done that.
    pub next_at_arrival: u32,
}

/// What a step does in shared memory.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    Nothing,
    Publish(usize, u32),
    /// As a backend of a primary does.
    PublishHere(usize, u32),
    Move(usize),
    RaiseFloor(u64),
    EnsureFloor(u64),
    /// All sessions end, and there is no floor any more.
    Restart,
}

/// All steps, each with the state of the server after it.
#[derive(Default)]
pub struct Program {
    pub start: Server,
    pub steps: Vec<(Action, Server)>,
    /// The ids that are subtransactions.
    pub subs: u32,
    /// Who has changed rows of each file.
    writers: [u32; 2],
    /// Whose rows every snapshot sees.
    frozen: [u32; 2],
    /// For each number of steps the smallest after which a snapshot is the same.
    snapshots: Vec<usize>,
    /// How often the table was full.
    pub overflows: usize,
}

impl Program {
    /// The server after so many steps.
    pub fn server(&self, steps: usize) -> &Server {
        if steps == 0 { &self.start } else { &self.steps[steps - 1].1 }
    }

    /// A snapshot that is taken after so many steps, as the number of steps after which it is the same.
    pub fn snapshot(&self, steps: usize) -> usize {
        self.snapshots[steps]
    }

    fn find_equal_snapshots(&mut self) {
        for steps in 0..=self.steps.len() {
            let seen = |steps: usize| {
                let server = self.server(steps);
                (server.next, server.xmax, server.running, server.committed)
            };
            let first = (0..=steps).find(|earlier| seen(*earlier) == seen(steps));
            self.snapshots.push(first.expect("it equals itself"));
        }
    }

    /// What a snapshot that was taken then sees in a file.
    pub fn rows(&self, steps: usize, file: usize) -> u32 {
        self.server(steps).committed & self.writers[file] | self.frozen[file]
    }
}

/// The steps with a table of `N` changes.
pub fn program<const N: usize>(case: &Case, rules: &Rules) -> Program {
    let server = Server { next: 3, xmax: 3, ..Server::default() };
    let mut replay = Replay::<N> {
        table: ChangeTable::new(),
        ids: ids().map(Change::slot),
        rules: *rules,
        server,
        watches: false,
        known_from: 0,
        written: BTreeSet::new(),
        program: Program::default(),
    };
    let mut servers = Vec::new();
    for (position, record) in case.wal.iter().enumerate() {
        if position == case.unseen {
            replay.begin_to_watch();
        }
        servers.push(replay.server);
        match *record {
            Record::Restart { from } => replay.restart(servers[from], &case.wal[from..position]),
            record => replay.record(record),
        }
    }
    replay.program.find_equal_snapshots();
    replay.program
}

struct Replay<const N: usize> {
    /// One change of one transaction lies in the line.
    table: ChangeTable<N, 1, 1>,
    ids: [Change; COUNT],
    rules: Rules,
    server: Server,
    watches: bool,
    /// Of older transactions some changes may not have been noted.
    known_from: u32,
    /// Which (sub)transaction has changed rows of which file.
    written: BTreeSet<(u32, usize)>,
    program: Program,
}

impl<const N: usize> Replay<N> {
    fn begin_to_watch(&mut self) {
        self.watches = true;
        self.known_from = self.server.next;
        self.program.start = self.server;
        self.program.steps.clear();
    }

    /// The server stops, and begins from a state of before with these records.
    fn restart(&mut self, before: Server, again: &[Record]) {
        if self.rules.stop_closes_first {
            self.step(Action::RaiseFloor(u64::MAX));
        }
        let mut noted = BTreeSet::new();
        self.table.for_each_of_all(|change| {
            noted.insert(change.0);
        });
        let places = (0..COUNT).filter(|place| noted.contains(&self.ids[*place].0));
        for place in places.filter(|_| self.rules.stop_moves_slots).collect::<Vec<_>>() {
            self.step(Action::Move(place));
        }
        self.table.clear();
        self.watches = false;
        let announced = self.server.announced;
        self.server = Server { announced, is_behind: true, ..before };
        self.step(Action::Restart);
        again.iter().for_each(|record| self.record(*record));
        (self.server.is_behind, self.server.next_at_arrival) = (false, self.server.next);
        self.step(Action::Nothing);
        if self.rules.arrival_sets_floor {
            self.step(Action::EnsureFloor(u64::from(self.server.next)));
            self.known_from = self.server.next;
        }
        self.watches = true;
    }

    fn step(&mut self, action: Action) {
        self.program.steps.push((action, self.server));
    }

    fn record(&mut self, record: Record) {
        match record {
            Record::Heap { xid, file } | Record::Frozen { xid, file } => {
                self.meet(xid);
                self.written.insert((xid, file));
                if matches!(record, Record::Frozen { .. }) {
                    self.program.frozen[file] |= 1 << xid;
                }
                self.note(xid, self.ids[FILE[file]]);
            }
            Record::Catalog { xid } => {
                self.meet(xid);
                self.note(xid, PG_CLASS);
            }
            Record::Lock { xid } => {
                self.meet(xid);
                self.server.is_locked = true;
                self.step(Action::Nothing);
            }
            Record::Prepare { xid } => self.meet(xid),
            Record::Commit { xid, subs, messages } => self.commit(xid, subs, messages),
            Record::Abort { xid, subs } => self.abort(xid, subs),
            Record::Running { oldest } => {
                let oldest_kept = if self.rules.only_ended_are_dropped { oldest } else { self.server.next };
                self.table.forget_older(oldest_kept);
                self.server.running &= !0 << oldest;
                self.step(Action::Nothing);
            }
            Record::EndOfRecovery => {
                self.begin_anew(self.rules.end_raises_floor, self.rules.end_moves_slots);
                self.table.clear();
            }
            Record::Restart { .. } => unreachable!("a restart is no part of what is replayed"),
            Record::CommitPreparedHere { xid, subs, messages } => self.commit_prepared_here(xid, subs, messages),
            Record::WriteHere { xid, file } => {
                self.meet(xid);
                self.written.insert((xid, file));
                self.step(Action::PublishHere(FILE[file], xid));
                self.end(xid, &[], Messages::Nothing);
            }
            Record::DefineHere { xid, messages } => {
                self.meet(xid);
                let redefined = if messages == Messages::Function { [CATALOGS, DDL] } else { [CATALOGS, OID] };
                self.redefine(xid, &[], messages, &redefined, |replay| {
                    redefined.iter().for_each(|place| replay.step(Action::PublishHere(*place, xid)));
                });
            }
        }
    }

    /// The server learns of an id before it replays the record: all ids up to it have begun.
    fn meet(&mut self, xid: u32) {
        if xid >= self.server.next {
            self.server.running |= (self.server.next..=xid).fold(0, |set, begun| set | 1 << begun);
            self.server.next = xid + 1;
            self.step(Action::Nothing);
        }
    }

    fn note(&mut self, xid: u32, change: Change) {
        if self.watches && self.table.note(xid, change).is_err() {
            self.forget_all();
            self.table.note(xid, change).expect("an empty table has room");
        }
    }

    /// There is no room for all that is noted.
    fn forget_all(&mut self) {
        self.program.overflows += 1;
        self.begin_anew(self.rules.overflow_raises_floor, self.rules.overflow_moves_slots);
        self.table.clear();
        self.known_from = self.server.next;
    }

    fn begin_anew(&mut self, raises: bool, moves: bool) {
        let (floor, places) = beginning_anew(u64::from(self.server.next));
        if raises && self.rules.floor_rises_first {
            self.step(Action::RaiseFloor(floor));
        }
        for place in places.into_iter().filter(|_| moves) {
            self.step(Action::Move(place));
        }
        if raises && !self.rules.floor_rises_first {
            self.step(Action::RaiseFloor(floor));
        }
    }

    fn commit(&mut self, xid: u32, subs: &[u32], messages: Messages) {
        self.meet(xid);
        let changes = self.changes_of(xid, subs);
        let redefined = self.redefined(xid, &changes, messages);
        self.redefine(xid, subs, messages, &redefined, |replay| replay.publish(xid, &changes, &redefined));
        for ended in [&[xid], subs].concat() {
            self.table.forget(ended);
        }
    }

    /// What surrounds the end of a transaction that is published: it is counted with the slots that it redefines, which
    /// move once more.
    fn redefine(
        &mut self,
        xid: u32,
        subs: &[u32],
        messages: Messages,
        redefined: &[usize],
        publish: impl FnOnce(&mut Self),
    ) {
        if self.rules.count_begins_before_end {
            self.count(redefined);
        }
        if self.rules.publish_before_end {
            publish(self);
            self.end(xid, subs, messages);
        } else {
            self.end(xid, subs, messages);
            publish(self);
        }
        if !self.rules.count_begins_before_end {
            self.count(redefined);
        }
        if !self.rules.count_lasts_until_moved {
            self.count(&[]);
        }
        if self.rules.slots_move_again {
            self.move_all(redefined);
        }
        self.count(&[]);
    }

    /// From now on somebody is changing the definitions of these slots, and of no others.
    fn count(&mut self, redefined: &[usize]) {
        let definers = redefined.iter().fold(0, |set, place| set | 1 << place);
        if self.rules.definers_are_counted && definers != self.server.definers {
            self.server.definers = definers;
            self.step(Action::Nothing);
        }
    }

    fn changes_of(&self, xid: u32, subs: &[u32]) -> BTreeSet<u32> {
        let united = if self.rules.subs_are_united { subs } else { &[] };
        let mut changes = BTreeSet::new();
        for changed in [&[xid], united].concat() {
            self.table.for_each(changed, |change| {
                changes.insert(change.0);
            });
        }
        changes
    }

    /// The slots of the definitions that the messages name, if a catalog was changed. If that is not known, they may
    /// name anything.
    fn redefined(&self, xid: u32, changes: &BTreeSet<u32>, messages: Messages) -> Vec<usize> {
        let is_known = changes.contains(&PG_CLASS.0);
        let is_assumed = xid < self.known_from && self.rules.lost_definitions_are_assumed;
        match messages {
            _ if !self.watches || !self.rules.messages_are_read => vec![],
            Messages::Nothing => vec![],
            Messages::Relation | Messages::File(_) if is_known => vec![CATALOGS, OID],
            Messages::Function if is_known => vec![CATALOGS, DDL],
            _ if is_assumed => vec![CATALOGS, DDL, OID],
            _ => vec![],
        }
    }

    /// The slots whose changes are known, and those of definitions, once each.
    fn publish(&mut self, xid: u32, changes: &BTreeSet<u32>, redefined: &[usize]) {
        let slots = changes.iter().filter(|change| matches!(Change(**change).kind(), ChangeKind::Slot(_)));
        let place_of = |change: &u32| self.ids.iter().position(|id| id.0 == *change).expect("the slot was noted here");
        let mut places: BTreeSet<usize> = slots.map(place_of).collect();
        if self.rules.messages_are_published {
            places.extend(redefined);
        }
        for place in places {
            self.step(Action::Publish(place, xid));
        }
    }

    /// The server's part: the transaction becomes visible, messages are sent, locks are released.
    fn end(&mut self, xid: u32, subs: &[u32], messages: Messages) {
        for ended in [&[xid], subs].concat() {
            self.server.running &= !(1 << ended);
            self.server.xmax = self.server.xmax.max(ended + 1);
            for file in [0, 1] {
                self.program.writers[file] |= u32::from(self.written.contains(&(ended, file))) << xid;
            }
        }
        self.program.subs |= subs.iter().fold(0, |set, sub| set | 1 << sub);
        self.server.committed |= 1 << xid;
        if messages != Messages::Nothing {
            self.server.definition.0 += 1;
        }
        if let Messages::File(file) = messages {
            self.server.definition.1 = file;
        }
        self.step(Action::Nothing);
        if messages != Messages::Nothing {
            self.server.announced += 1;
            self.step(Action::Nothing);
        }
        if self.server.is_locked {
            self.server.is_locked = false;
            self.step(Action::Nothing);
        }
    }

    fn move_all(&mut self, slots: &[usize]) {
        for slot in slots {
            self.step(Action::Move(*slot));
        }
    }

    fn abort(&mut self, xid: u32, subs: &[u32]) {
        self.meet(xid);
        for ended in [&[xid], subs].concat() {
            self.table.forget(ended);
            self.server.running &= !(1 << ended);
            self.server.xmax = self.server.xmax.max(ended + 1);
        }
        self.step(Action::Nothing);
    }

    /// The backend does not know what was changed: it moves slots of the database.
    fn commit_prepared_here(&mut self, xid: u32, subs: &[u32], messages: Messages) {
        self.redefine(xid, subs, messages, &[CATALOGS, DDL], |_| ());
    }
}
