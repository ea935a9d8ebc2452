//! Every interleaving of the process that replays a small WAL with a few readers, through the real code of versions and
//! of what running transactions have changed: no reader is ever served a result that executing would not give. The
//! search must find a violation as soon as one rule is taken away.

mod reader;
mod replay;
mod slots;
mod wal;
mod world;

use wal::{ALL_RULES, Case, KEPT, Kind, Messages, NEW, OLD, Record, Rules, WARM, case, commit, define};
use world::{Outcome, explore};

const fn heap(xid: u32) -> Record {
    Record::Heap { xid, file: 0 }
}

/// A row in the new file, or of another relation as long as there is none.
const fn heap_elsewhere(xid: u32) -> Record {
    Record::Heap { xid, file: 1 }
}

const fn abort(xid: u32) -> Record {
    Record::Abort { xid, subs: &[] }
}

const fn commit_prepared_here(xid: u32, messages: Messages) -> Record {
    Record::CommitPreparedHere { xid, subs: &[], messages }
}

/// Miri would take minutes, and there is no unsafe code that it could check.
const QUICK: bool = cfg!(miri);

fn holds(case: &Case) -> Outcome {
    let outcome = explore(case, &ALL_RULES);
    let Outcome { states, stores, hits, violations, stuck, .. } = outcome;
    assert_eq!((violations, stuck), (0, 0), "{}", case.name);
    assert!(hits > 0, "{}: nobody was ever served, {states} states with {stores} stores prove nothing", case.name);
    outcome
}

fn all_hold(cases: &[Case]) {
    for case in if QUICK { &cases[..1] } else { cases } {
        let outcome = holds(case);
        assert_eq!(outcome.overflows, 0, "{}", case.name);
    }
}

const TWICE: Kind = Kind { statements: 2, ..NEW };
const OLD_TWICE: Kind = Kind { statements: 2, ..OLD };

fn one_writer() -> Case {
    case("one writer", &[heap(3), commit(3, &[])], &[NEW, OLD, NEW])
}

fn subtransactions() -> Case {
    case("subtransactions", &[heap(3), heap(4), abort(4), heap(5), commit(3, &[5])], &[NEW, OLD])
}

/// The top-level transaction itself has changed nothing.
fn only_a_subtransaction() -> Case {
    case("only a subtransaction", &[heap(4), commit(3, &[4])], &[NEW, NEW])
}

#[test]
fn writers_of_rows() {
    all_hold(&[
        one_writer(),
        case("again and again", &[heap(3), commit(3, &[])], &[TWICE, OLD_TWICE]),
        case("two writers", &[heap(3), heap(4), commit(4, &[]), commit(3, &[])], &[OLD, NEW]),
        case("one gives up", &[heap(3), heap(4), abort(3), commit(4, &[])], &[OLD, NEW]),
        case("three", &[heap(3), heap(4), commit(4, &[]), abort(3), heap(5), commit(5, &[])], &[OLD, NEW]),
    ]);
}

#[test]
fn writers_in_subtransactions() {
    let of = |case: Case| Case { subs_are_listed: false, ..case };
    all_hold(&[subtransactions(), of(subtransactions()), only_a_subtransaction(), of(only_a_subtransaction())]);
}

const fn catalog(xid: u32) -> Record {
    Record::Catalog { xid }
}

fn weak_lock() -> Case {
    case("a definition under a weak lock", &[catalog(3), define(3, Messages::Relation)], &[WARM, WARM])
}

fn with_kept_plans() -> Case {
    case("kept plans", &[catalog(3), define(3, Messages::Relation)], &[KEPT, WARM])
}

fn function() -> Case {
    case("a function", &[catalog(3), define(3, Messages::Function)], &[WARM, NEW])
}

fn truncate() -> Case {
    let truncated = [Record::Lock { xid: 4 }, catalog(4), define(4, Messages::File(1))];
    let wal = [&[heap(3), commit(3, &[])], &truncated[..], &[heap_elsewhere(5), commit(5, &[])]].concat();
    case("TRUNCATE", &wal, &[WARM, OLD])
}

/// The rows of the new file are visible to all snapshots.
fn rewrite() -> Case {
    let frozen = Record::Frozen { xid: 3, file: 1 };
    let wal = [Record::Lock { xid: 3 }, catalog(3), frozen, define(3, Messages::File(1))];
    case("a rewrite", &wal, &[NEW, OLD])
}

#[test]
fn changes_of_definitions() {
    all_hold(&[
        weak_lock(),
        with_kept_plans(),
        case(
            "two definitions",
            &[catalog(3), define(3, Messages::Relation), catalog(4), define(4, Messages::Relation)],
            &[KEPT, KEPT],
        ),
        case(
            "a definition under a lock",
            &[Record::Lock { xid: 3 }, catalog(3), define(3, Messages::Relation)],
            &[WARM, OLD],
        ),
        case(
            "by a subtransaction",
            &[catalog(4), Record::Commit { xid: 3, subs: &[4], messages: Messages::Relation }],
            &[WARM, NEW],
        ),
        function(),
        truncate(),
        rewrite(),
        case(
            "a definition and rows",
            &[heap(3), catalog(3), define(3, Messages::Relation), heap(4), commit(4, &[])],
            &[WARM, OLD],
        ),
    ]);
}

fn prepared() -> Case {
    case("prepared", &[heap(3), Record::Prepare { xid: 3 }, heap(4), commit(4, &[]), commit(3, &[])], &[NEW, OLD])
}

/// 3 was running when the primary crashed. 5 runs on.
fn leftovers() -> Case {
    let wal = [heap(3), heap(4), commit(4, &[]), heap(5), Record::Running { oldest: 5 }, commit(5, &[])];
    case("leftovers", &wal, &[TWICE, NEW])
}

fn began_before() -> Case {
    let wal = [heap(3), heap(4), commit(4, &[]), commit(3, &[]), heap(5), commit(5, &[])];
    Case { unseen: 2, ..case("began before", &wal, &[NEW, OLD]) }
}

fn defined_before() -> Case {
    Case { unseen: 1, ..case("defined before", &[catalog(3), define(3, Messages::Relation)], &[WARM, WARM]) }
}

#[test]
fn transactions_that_stay_for_long() {
    all_hold(&[prepared(), leftovers(), began_before(), defined_before()]);
}

/// The table forgets 3 when it meets 5. The others write to another relation.
fn overflow() -> Case {
    let noted = [heap(3), heap_elsewhere(3), heap_elsewhere(4), heap_elsewhere(5)];
    let wal = [&noted[..], &[commit(5, &[]), commit(4, &[]), commit(3, &[])]].concat();
    case("overflow", &wal, &[TWICE, NEW])
}

/// Subtransactions that run on when the table is full, and fill it again.
fn overflow_twice() -> Case {
    let mut wal: Vec<Record> = (4..=8).map(heap).collect();
    wal.push(commit(3, &[4, 5, 6, 7, 8]));
    case("overflow twice", &wal, &[TWICE, NEW])
}

/// The table forgets that 3 has changed a catalog.
fn overflow_with_definition() -> Case {
    let wal = [catalog(3), heap_elsewhere(3), heap(3), define(3, Messages::Relation)];
    case("overflow with a definition", &wal, &[Kind { is_warm: true, ..TWICE }, WARM])
}

#[test]
fn more_changes_than_the_table_has_room_for() {
    for (case, overflows) in [(overflow(), 1), (overflow_with_definition(), 1), (overflow_twice(), 2)] {
        assert_eq!(holds(&case).overflows, overflows);
        if QUICK {
            return;
        }
    }
}

const fn define_on_primary(messages: Messages) -> Record {
    Record::DefineHere { xid: 5, messages }
}

fn defined_on_primary() -> Case {
    case("a definition on a primary", &[Record::EndOfRecovery, define_on_primary(Messages::Relation)], &[WARM, WARM])
}

fn defined_by_prepared() -> Case {
    let wal = [heap(3), Record::EndOfRecovery, commit_prepared_here(3, Messages::Relation)];
    case("promotion and a definition", &wal, &[WARM, TWICE])
}

fn promotion() -> Case {
    let wal = [heap(3), Record::Prepare { xid: 3 }, Record::EndOfRecovery, commit_prepared_here(3, Messages::Nothing)];
    case("promotion", &wal, &[TWICE, NEW])
}

#[test]
fn the_end_of_recovery() {
    let write_here = Record::WriteHere { xid: 5, file: 0 };
    let wal = [heap(3), heap(4), commit(4, &[]), Record::EndOfRecovery, commit_prepared_here(3, Messages::Nothing)];
    all_hold(&[
        promotion(),
        case("promotion and a writer", &[&wal[..], &[write_here]].concat(), &[NEW, OLD]),
        defined_by_prepared(),
        defined_on_primary(),
        case("a function on a primary", &[Record::EndOfRecovery, define_on_primary(Messages::Function)], &[WARM, NEW]),
    ]);
}

/// 3 has changed a row before the place from which the standby replays again.
fn restart_under_way() -> Case {
    let wal = [heap(3), heap_elsewhere(4), Record::Restart { from: 1 }, commit(4, &[]), commit(3, &[])];
    case("a restart in the midst of transactions", &wal, &[TWICE, TWICE])
}

fn restart_after_commit() -> Case {
    let wal = [heap(3), commit(3, &[]), heap(4), Record::Restart { from: 0 }, commit(4, &[])];
    case("a restart that replays a commit again", &wal, &[TWICE, TWICE])
}

/// 4 begins when readers may have come again.
fn restart_in_the_past() -> Case {
    let wal = [heap(3), commit(3, &[]), heap(4), Record::Restart { from: 2 }, commit(4, &[])];
    case("a restart that replays the begin of a transaction again", &wal, &[TWICE, TWICE])
}

fn restart_after_definition() -> Case {
    let wal = [catalog(3), define(3, Messages::Relation), Record::Restart { from: 0 }];
    case("a restart that replays a definition again", &wal, &[TWICE, TWICE])
}

fn restart_in_definition() -> Case {
    let wal = [catalog(3), Record::Restart { from: 1 }, define(3, Messages::Relation)];
    case("a restart in the midst of a definition", &wal, &[TWICE, TWICE])
}

fn restart_in_subtransaction() -> Case {
    let wal = [heap(4), heap_elsewhere(5), Record::Restart { from: 1 }, commit(3, &[4]), commit(5, &[])];
    case("a restart in the midst of a subtransaction", &wal, &[TWICE, TWICE])
}

#[test]
fn restarts_of_the_standby() {
    all_hold(&[
        restart_under_way(),
        restart_after_commit(),
        restart_in_the_past(),
        restart_after_definition(),
        restart_in_definition(),
        restart_in_subtransaction(),
    ]);
}

#[test]
fn the_search_finds_what_each_missing_rule_breaks() {
    if QUICK {
        return;
    }
    let all = ALL_RULES;
    let cases: Vec<(&str, Rules, Case)> = vec![
        ("order", Rules { publish_before_end: false, ..all }, one_writer()),
        ("subtransactions", Rules { subs_are_united: false, ..all }, only_a_subtransaction()),
        ("messages", Rules { messages_are_published: false, ..all }, truncate()),
        ("messages of functions", Rules { messages_are_read: false, ..all }, function()),
        ("second move", Rules { slots_move_again: false, ..all }, weak_lock()),
        ("definers", Rules { definers_are_counted: false, ..all }, weak_lock()),
        ("definers and kept plans", Rules { definers_are_counted: false, ..all }, with_kept_plans()),
        ("definers of functions", Rules { definers_are_counted: false, ..all }, function()),
        ("definers on a primary", Rules { definers_are_counted: false, ..all }, defined_on_primary()),
        ("definers that are prepared", Rules { definers_are_counted: false, ..all }, defined_by_prepared()),
        ("count before the end", Rules { count_begins_before_end: false, ..all }, weak_lock()),
        ("count until the slots have moved", Rules { count_lasts_until_moved: false, ..all }, weak_lock()),
        ("count under the snapshot", Rules { count_is_asked_under_snapshot: false, ..all }, with_kept_plans()),
        ("second move of functions", Rules { slots_move_again: false, ..all }, function()),
        ("comparison of catalogs", Rules { catalogs_are_compared: false, ..all }, weak_lock()),
        ("what was lost before", Rules { lost_definitions_are_assumed: false, ..all }, defined_before()),
        ("what was lost", Rules { lost_definitions_are_assumed: false, ..all }, overflow_with_definition()),
        ("floor", Rules { floor_is_set_by_readers: false, ..all }, began_before()),
        ("floor at overflow", Rules { overflow_raises_floor: false, ..all }, overflow()),
        ("slots at overflow", Rules { overflow_moves_slots: false, ..all }, overflow()),
        ("order at overflow", Rules { floor_rises_first: false, ..all }, overflow()),
        ("floor at the end", Rules { end_raises_floor: false, ..all }, promotion()),
        ("slots at the end", Rules { end_moves_slots: false, ..all }, promotion()),
        ("order at the end", Rules { floor_rises_first: false, ..all }, promotion()),
        ("those that run", Rules { only_ended_are_dropped: false, ..all }, leftovers()),
        ("definition", Rules { entries_rest_on_oid: false, ..all }, weak_lock()),
        ("definition with a file", Rules { entries_rest_on_oid: false, ..all }, truncate()),
        ("rows", Rules { entries_rest_on_file: false, ..all }, one_writer()),
        ("slots at the stop", Rules { stop_moves_slots: false, ..all }, restart_under_way()),
        ("order at the stop", Rules { stop_closes_first: false, ..all }, restart_under_way()),
        ("the place that was left", Rules { place_is_awaited: false, ..all }, restart_in_the_past()),
        ("plans from before it", Rules { plans_from_before_are_told: false, ..all }, restart_after_definition()),
        ("floor at the start", Rules { arrival_sets_floor: false, ..all }, restart_in_definition()),
    ];
    for (name, rules, case) in cases {
        assert!(explore(&case, &rules).violations > 0, "{name}: not caught");
    }
}
