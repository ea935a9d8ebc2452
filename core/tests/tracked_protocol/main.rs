//! Every interleaving of a few writers and readers with a relation that is taken in, gets another column, and is taken
//! out again, through the real code: no reader is served an answer over values that its own snapshot would not give.
//! So do writers that change quiet columns, or others, and answers that read these, or do not.
//! The search must find a violation as soon as one rule is taken away.

mod model;
mod one_line;
mod publishing;
mod rules;

use model::{Model, NAME, OF_QUIET_COLUMNS, Outcome, QUESTIONS, SEEN, VISITS};
use rules::{ALL_RULES, Act, Close, Free, Move, Open, Past, PublishPast, ReadNext, Reopen, Rules, Settle};

const TAKEN_IN: [Act; 4] = [Open(1), ReadNext, PublishPast, Settle];
const READ_TOO_EARLY: [Act; 4] = [ReadNext, Open(1), PublishPast, Settle];
const TAKEN_OUT: [Act; 3] = [Close, Move, Free];
const SECOND_COLUMN: [Act; 4] = [Open(2), ReadNext, PublishPast, Settle];
const QUIET: [Act; 3] = [Close, Move, Reopen(SEEN)];
const MORE_QUIET: [Act; 3] = [Close, Move, Reopen(SEEN | VISITS)];

fn explore(xids: &[u64], acts: &[&[Act]], readers: usize, rules: Rules) -> Outcome {
    let acts = acts.concat();
    let changes: Vec<u64> = xids.iter().map(|_| NAME).collect();
    Model { xids, changes: &changes, questions: &QUESTIONS, acts: &acts, rules, replayed: false }.explore(readers)
}

fn explore_replayed(xids: &[u64], acts: &[&[Act]], readers: usize, rules: Rules) -> Outcome {
    let acts = acts.concat();
    let changes: Vec<u64> = xids.iter().map(|_| NAME).collect();
    Model { xids, changes: &changes, questions: &QUESTIONS, acts: &acts, rules, replayed: true }.explore(readers)
}

fn explore_quiet(changes: &[u64], acts: &[&[Act]], rules: Rules) -> Outcome {
    let (acts, xids) = (acts.concat(), &[1, 2][..changes.len()]);
    Model { xids, changes, questions: &OF_QUIET_COLUMNS, acts: &acts, rules, replayed: false }.explore(2)
}

fn holds(xids: &[u64], acts: &[&[Act]], readers: usize) {
    let outcome = explore(xids, acts, readers, ALL_RULES);
    assert_eq!(outcome.violations, 0, "{xids:?} {acts:?}");
    assert!(outcome.hits > 0, "{xids:?} {acts:?}: nobody was ever served, which proves nothing");
    assert!(outcome.hits_beside_changes > 0, "{xids:?} {acts:?}: no answer has outlived a change of another value");
}

/// Miri would take minutes for these, and they have no unsafe code that it could check.
const QUICK: bool = cfg!(miri);

#[test]
fn one_writer_while_a_relation_comes_and_goes() {
    if QUICK {
        return;
    }
    holds(&[1], &[&TAKEN_IN], 3);
    holds(&[1], &[&TAKEN_IN, &TAKEN_OUT], 2);
    holds(&[1], &[&TAKEN_IN, &TAKEN_OUT, &TAKEN_IN], 2);
    holds(&[1], &[&TAKEN_IN, &SECOND_COLUMN], 2);
    holds(&[1], &[&TAKEN_IN, &SECOND_COLUMN, &TAKEN_OUT], 2);
}

#[test]
fn two_writers_while_a_relation_comes_and_goes() {
    if QUICK {
        return;
    }
    holds(&[1, 2], &[&TAKEN_IN], 2);
    holds(&[1, 2], &[&TAKEN_IN, &TAKEN_OUT], 2);
    holds(&[1, 2], &[&TAKEN_IN, &SECOND_COLUMN], 2);
}

#[test]
fn quiet_columns_that_become_more() {
    if QUICK {
        return;
    }
    for changes in [SEEN, SEEN | NAME] {
        let cases: [&[&[Act]]; 4] = [
            &[&TAKEN_IN, &QUIET],
            &[&TAKEN_IN, &QUIET, &MORE_QUIET],
            &[&TAKEN_IN, &QUIET, &SECOND_COLUMN],
            &[&TAKEN_IN, &MORE_QUIET, &TAKEN_OUT, &TAKEN_IN],
        ];
        for acts in cases {
            let outcome = explore_quiet(&[changes], acts, ALL_RULES);
            assert_eq!(outcome.violations, 0, "{changes} {acts:?}");
            assert!(outcome.hits > 0);
        }
    }
    for changes in [[SEEN, NAME], [SEEN, VISITS]] {
        let outcome = explore_quiet(&changes, &[&TAKEN_IN, &MORE_QUIET], ALL_RULES);
        assert_eq!(outcome.violations, 0, "{changes:?}");
        assert!(outcome.hits_beside_changes > 0, "no answer has outlived a change of a quiet column");
    }
}

#[test]
fn the_search_finds_what_each_missing_rule_of_quiet_columns_breaks() {
    if QUICK {
        return;
    }
    let rules = ALL_RULES;
    let cases: [(&str, Rules, u64, &[&[Act]]); 5] = [
        ("reading", Rules { quiet_changes_concern_those_who_read: false, ..rules }, SEEN, &[&TAKEN_IN, &QUIET]),
        ("all", Rules { all_changed_columns_must_be_quiet: false, ..rules }, SEEN | NAME, &[&TAKEN_IN, &QUIET]),
        ("move", Rules { coarse_moves_at_the_end: false, ..rules }, SEEN, &[&TAKEN_IN, &QUIET]),
        ("settled", Rules { only_settled_lines_are_used: false, ..rules }, SEEN, &[&TAKEN_IN, &QUIET]),
        ("coarse at the end", Rules { coarse_is_kept: false, ..rules }, SEEN, &[&TAKEN_IN, &QUIET]),
    ];
    for (name, rules, changes, acts) in cases {
        assert!(explore_quiet(&[changes], acts, rules).violations > 0, "{name}: not caught");
    }
}

#[test]
fn the_search_finds_what_each_missing_rule_breaks() {
    if QUICK {
        return;
    }
    let beside: &[&[Act]] = &[&TAKEN_IN, &SECOND_COLUMN];
    let cases: [(&str, Rules, &[&[Act]]); 13] = [
        ("the past", Rules { past: Past::Nothing, ..ALL_RULES }, &[&TAKEN_IN]),
        ("those of the past that have ended", Rules { past: Past::Running, ..ALL_RULES }, &[&TAKEN_IN]),
        ("next", ALL_RULES, &[&READ_TOO_EARLY]),
        ("settled", Rules { only_settled_lines_are_used: false, ..ALL_RULES }, &[&TAKEN_IN]),
        ("closing", Rules { closing_lines_count: false, ..ALL_RULES }, &[&TAKEN_IN, &TAKEN_OUT]),
        ("move", Rules { coarse_moves_at_the_end: false, ..ALL_RULES }, &[&TAKEN_IN, &TAKEN_OUT]),
        ("order", Rules { coarse_is_read_before_the_line: false, ..ALL_RULES }, &[&TAKEN_IN, &TAKEN_OUT]),
        ("counts", Rules { counts_are_compared: false, ..ALL_RULES }, &[&TAKEN_IN]),
        ("values", Rules { values_are_seen_whole: false, ..ALL_RULES }, &[&TAKEN_IN]),
        ("coarse at the end", Rules { coarse_is_kept: false, ..ALL_RULES }, &[&TAKEN_IN, &TAKEN_OUT]),
        ("generations", Rules { generations_are_compared: false, ..ALL_RULES }, beside),
        ("unknown values", Rules { unknown_values_are_published: false, ..ALL_RULES }, beside),
        ("who rests on them", Rules { unknown_values_count: false, ..ALL_RULES }, beside),
    ];
    for (name, rules, acts) in cases {
        let caught = [1, 2].into_iter().any(|writers| explore(&[1, 2][..writers], acts, 2, rules).violations > 0);
        assert!(caught, "{name}: not caught");
    }
}

#[test]
fn replay_while_a_relation_comes_and_goes() {
    if QUICK {
        return;
    }
    let one: [&[&[Act]]; 3] =
        [&[&TAKEN_IN, &TAKEN_OUT, &TAKEN_IN], &[&TAKEN_IN, &SECOND_COLUMN, &TAKEN_OUT], &[&TAKEN_IN, &TAKEN_OUT]];
    let two: [&[&[Act]]; 3] = [&[&TAKEN_IN], &[&TAKEN_IN, &TAKEN_OUT], &[&TAKEN_IN, &SECOND_COLUMN]];
    let cases = one.map(|acts| (&[1][..], acts)).into_iter().chain(two.map(|acts| (&[1, 2][..], acts)));
    for (xids, acts) in cases {
        let outcome = explore_replayed(xids, acts, 2, ALL_RULES);
        assert_eq!(outcome.violations, 0, "{xids:?} {acts:?}");
        assert!(outcome.hits_beside_changes > 0, "{xids:?} {acts:?}: no answer has outlived a change of another value");
    }
}

#[test]
fn the_search_finds_what_each_missing_rule_of_replay_breaks() {
    if QUICK {
        return;
    }
    let rules = ALL_RULES;
    let beside: &[&[Act]] = &[&TAKEN_IN, &SECOND_COLUMN];
    let cases: [(&str, Rules, &[&[Act]]); 10] = [
        ("the past", Rules { past: Past::Nothing, ..rules }, &[&TAKEN_IN]),
        ("those of the past that have ended", Rules { past: Past::Running, ..rules }, &[&TAKEN_IN]),
        ("the past of another column", Rules { unknown_values_count: false, ..rules }, beside),
        ("next", rules, &[&READ_TOO_EARLY]),
        ("settled", Rules { only_settled_lines_are_used: false, ..rules }, &[&TAKEN_IN]),
        ("closing", Rules { closing_lines_count: false, ..rules }, &[&TAKEN_IN, &TAKEN_OUT]),
        ("move", Rules { coarse_moves_at_the_end: false, ..rules }, &[&TAKEN_IN, &TAKEN_OUT]),
        ("order", Rules { coarse_is_read_before_the_line: false, ..rules }, &[&TAKEN_IN, &TAKEN_OUT]),
        ("values", Rules { values_are_seen_whole: false, ..rules }, &[&TAKEN_IN]),
        ("coarse at the end", Rules { coarse_is_kept: false, ..rules }, &[&TAKEN_IN, &TAKEN_OUT]),
    ];
    for (name, rules, acts) in cases {
        let caught =
            [1, 2].into_iter().any(|writers| explore_replayed(&[1, 2][..writers], acts, 2, rules).violations > 0);
        assert!(caught, "{name}: not caught");
    }
}
