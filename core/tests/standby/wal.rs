//! The records of a primary's WAL that matter, and the rules that the process follows which replays them. Ids are below
//! 32, so that a set of transactions is one word.

/// What a commit record tells of definitions: its invalidation messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Messages {
    Nothing,
    /// The definition of the relation has changed.
    Relation,
    /// A definition has changed that belongs to no relation.
    Function,
    /// The relation has a new file.
    File(usize),
}

/// One record, or after the end of recovery one act of a backend. Files are 0, which the relation has at first, and 1.
#[derive(Clone, Copy, Debug)]
pub enum Record {
    /// A (sub)transaction has changed a row in a file.
    Heap { xid: u32, file: usize },
    /// A (sub)transaction has changed a row of a catalog. Without that, messages tell of no new definition.
    Catalog { xid: u32 },
    /// As `Heap`, but every snapshot sees the row, as after COPY FREEZE.
    Frozen { xid: u32, file: usize },
    /// The transaction has locked the relation against readers.
    Lock { xid: u32 },
    /// The transaction is prepared: it neither runs nor has ended.
    Prepare { xid: u32 },
    /// COMMIT or COMMIT PREPARED.
    Commit { xid: u32, subs: &'static [u32], messages: Messages },
    /// ROLLBACK of a transaction or a subtransaction.
    Abort { xid: u32, subs: &'static [u32] },
    /// Every transaction older than this has ended, also if no record says so.
    Running { oldest: u32 },
    /// The standby stops here, and starts with what it had stored. It replays again from the record of this number on.
    Restart { from: usize },
    /// The standby becomes a primary.
    EndOfRecovery,
    /// COMMIT PREPARED after the end of recovery. The backend does not know what the transaction has changed.
    CommitPreparedHere { xid: u32, subs: &'static [u32], messages: Messages },
    /// A transaction that writes after the end of recovery.
    WriteHere { xid: u32, file: usize },
    /// A transaction that changes a definition after the end of recovery.
    DefineHere { xid: u32, messages: Messages },
}

/// A commit without definitions.
pub const fn commit(xid: u32, subs: &'static [u32]) -> Record {
    Record::Commit { xid, subs, messages: Messages::Nothing }
}

/// A commit of one that has changed definitions.
pub const fn define(xid: u32, messages: Messages) -> Record {
    Record::Commit { xid, subs: &[], messages }
}

/// What is replayed before readers, and who reads.
#[derive(Clone)]
pub struct Case {
    pub name: &'static str,
    pub wal: Vec<Record>,
    /// Number of records at the beginning that were replayed before anything was noted, and before any reader came.
    pub unseen: usize,
    pub readers: Vec<Kind>,
    /// Whether snapshots list subtransactions; they do not when there are too many.
    pub subs_are_listed: bool,
}

/// How a reader behaves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Kind {
    /// Takes one snapshot before everything else, as under REPEATABLE READ, rather than one for each statement.
    pub has_old_snapshot: bool,
    /// Has the relation's definition in its caches already.
    pub is_warm: bool,
    /// Its plan is one that the server keeps, and can say whether it is still valid.
    pub keeps_plan: bool,
    pub statements: u8,
}

/// READ COMMITTED, with empty caches.
pub const NEW: Kind = Kind { has_old_snapshot: false, is_warm: false, keeps_plan: false, statements: 1 };
/// READ COMMITTED, with caches that follow invalidation messages.
pub const WARM: Kind = Kind { is_warm: true, ..NEW };
/// A prepared statement.
pub const KEPT: Kind = Kind { keeps_plan: true, ..WARM };
/// REPEATABLE READ.
pub const OLD: Kind = Kind { has_old_snapshot: true, ..NEW };

/// A case that has none of the rarer traits.
pub fn case(name: &'static str, wal: &[Record], readers: &[Kind]) -> Case {
    Case { name, wal: wal.to_vec(), unseen: 0, readers: readers.to_vec(), subs_are_listed: true }
}

/// The rules, each of which can be taken away.
#[derive(Clone, Copy)]
pub struct Rules {
    pub publish_before_end: bool,
    pub subs_are_united: bool,
    pub messages_are_read: bool,
    pub messages_are_published: bool,
    pub lost_definitions_are_assumed: bool,
    pub slots_move_again: bool,
    pub definers_are_counted: bool,
    pub count_begins_before_end: bool,
    pub count_lasts_until_moved: bool,
    pub count_is_asked_under_snapshot: bool,
    pub floor_is_set_by_readers: bool,
    pub overflow_raises_floor: bool,
    pub overflow_moves_slots: bool,
    pub end_raises_floor: bool,
    pub end_moves_slots: bool,
    pub floor_rises_first: bool,
    pub only_ended_are_dropped: bool,
    pub entries_rest_on_oid: bool,
    pub entries_rest_on_file: bool,
    pub catalogs_are_compared: bool,
    pub stop_moves_slots: bool,
    pub stop_closes_first: bool,
    pub place_is_awaited: bool,
    pub plans_from_before_are_told: bool,
    pub arrival_sets_floor: bool,
}

pub const ALL_RULES: Rules = Rules {
    publish_before_end: true,
    subs_are_united: true,
    messages_are_read: true,
    messages_are_published: true,
    lost_definitions_are_assumed: true,
    slots_move_again: true,
    definers_are_counted: true,
    count_begins_before_end: true,
    count_lasts_until_moved: true,
    count_is_asked_under_snapshot: true,
    floor_is_set_by_readers: true,
    overflow_raises_floor: true,
    overflow_moves_slots: true,
    end_raises_floor: true,
    end_moves_slots: true,
    floor_rises_first: true,
    only_ended_are_dropped: true,
    entries_rest_on_oid: true,
    entries_rest_on_file: true,
    catalogs_are_compared: true,
    stop_moves_slots: true,
    stop_closes_first: true,
    place_is_awaited: true,
    plans_from_before_are_told: true,
    arrival_sets_floor: true,
};
