//! Notes of changed rows, beside a model of how the server counts changes at each level of a transaction
//! (`AtEOSubXact_PgStat_Relations`): whatever was not noted is found out, unless it was rolled back before anything was
//! noted.

use arrow_cache_core::versions::columns::{QuietColumns, TrackedColumns};
use arrow_cache_core::versions::noted_rows::{Coarse, CountedChanges, MOST_CHANGES, NotedRows, RowChange, RowChanges};
use proptest::prelude::*;

/// What the server counts of one relation.
#[derive(Default)]
struct Server {
    over: RowChanges,
    /// One for each open level, the transaction first; with the values that its changes have touched.
    levels: Vec<(RowChanges, Vec<u64>)>,
}

impl Server {
    fn begin() -> Self {
        let pending = RowChanges { inserted: 5, updated: 2, deleted: 1 };
        Self { over: pending, levels: vec![Default::default()] }
    }

    fn change(&mut self, change: RowChange, value: u64) {
        let level = self.levels.last_mut().unwrap();
        level.0 = level.0.and(RowChanges::one(change));
        level.1.push(value);
    }

    fn open(&mut self) {
        self.levels.push(Default::default());
    }

    fn close(&mut self, is_commit: bool) {
        if self.levels.len() == 1 {
            return;
        }
        let (changes, values) = self.levels.pop().unwrap();
        if is_commit {
            let above = self.levels.last_mut().unwrap();
            above.0 = above.0.and(changes);
            above.1.extend(values);
        } else {
            self.over = self.over.and(changes);
        }
    }

    fn counted(&self) -> CountedChanges {
        let open = self.levels.iter().fold(RowChanges::default(), |all, level| all.and(level.0));
        CountedChanges { open, over: self.over, is_truncated: false }
    }

    fn touched(&self) -> impl Iterator<Item = u64> {
        self.levels.iter().flat_map(|level| level.1.iter().copied())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Noted(RowChange, u64),
    Missed(RowChange, u64),
    Open,
    Close(bool),
}

fn change() -> impl Strategy<Value = RowChange> {
    prop_oneof![Just(RowChange::Insert), Just(RowChange::Update), Just(RowChange::Delete)]
}

fn step(missed: u32) -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (change(), 0..6_u64).prop_map(|(change, value)| Step::Noted(change, value)),
        missed => (change(), 0..6_u64).prop_map(|(change, value)| Step::Missed(change, value)),
        2 => Just(Step::Open),
        2 => any::<bool>().prop_map(Step::Close),
    ]
}

fn tracked(generation: u64) -> TrackedColumns {
    TrackedColumns { generation, columns: [1, 0, 0, 0], ..TrackedColumns::default() }
}

fn values(rows: &NotedRows, now: &TrackedColumns, counted: &CountedChanges) -> Result<Vec<u64>, Coarse> {
    rows.values(now, counted).map(|(values, _)| values.to_vec())
}

fn run(steps: &[Step]) -> (Server, NotedRows) {
    let (mut server, mut rows) = (Server::begin(), NotedRows::new(tracked(7)));
    for step in steps {
        match *step {
            Step::Noted(change, value) => {
                server.change(change, value);
                rows.add_change(change, || Some(server.counted()));
                rows.add_value(value);
            }
            Step::Missed(change, value) => server.change(change, value),
            Step::Open => server.open(),
            Step::Close(is_commit) => server.close(is_commit),
        }
    }
    (server, rows)
}

proptest! {
    #[test]
    fn what_was_noted_throughout_is_precise(steps in prop::collection::vec(step(0), 0..40)) {
        let (server, rows) = run(&steps);
        let noted = steps.iter().any(|step| matches!(step, Step::Noted(..)));
        match values(&rows, &tracked(7), &server.counted()) {
            Ok(values) => {
                prop_assert!(noted);
                prop_assert!(server.touched().all(|value| values.contains(&value)));
            }
            Err(why) => prop_assert!(!noted, "{why:?}"),
        }
    }

    #[test]
    fn what_was_missed_is_found_out(steps in prop::collection::vec(step(1), 0..40)) {
        let (server, rows) = run(&steps);
        if let Ok(values) = values(&rows, &tracked(7), &server.counted()) {
            prop_assert!(server.touched().all(|value| values.contains(&value)));
        }
    }
}

#[test]
fn a_missed_change_makes_it_imprecise() {
    for steps in [
        [Step::Noted(RowChange::Insert, 1), Step::Missed(RowChange::Insert, 2)],
        [Step::Missed(RowChange::Insert, 2), Step::Noted(RowChange::Insert, 1)],
        [Step::Noted(RowChange::Update, 1), Step::Missed(RowChange::Delete, 1)],
    ] {
        let (server, rows) = run(&steps);
        assert_eq!(values(&rows, &tracked(7), &server.counted()), Err(Coarse::NotNoted), "{steps:?}");
    }
}

#[test]
fn kinds_of_changes_do_not_stand_for_each_other() {
    // One too many noted of one kind, one missed of another.
    let (mut server, mut rows) = run(&[Step::Noted(RowChange::Insert, 1)]);
    rows.add_change(RowChange::Delete, || None);
    server.change(RowChange::Update, 2);
    assert_eq!(values(&rows, &tracked(7), &server.counted()), Err(Coarse::NotNoted));
}

#[test]
fn truncation_and_a_server_that_does_not_count_make_it_imprecise() {
    let (server, rows) = run(&[Step::Noted(RowChange::Insert, 1)]);
    let truncated = CountedChanges { is_truncated: true, ..server.counted() };
    assert_eq!(values(&rows, &tracked(7), &truncated), Err(Coarse::NotNoted));
    let mut rows = NotedRows::new(tracked(7));
    rows.add_change(RowChange::Insert, || None);
    assert!(!rows.wants_more());
}

#[test]
fn another_generation_makes_it_imprecise() {
    let (server, mut rows) = run(&[Step::Noted(RowChange::Insert, 1)]);
    assert_eq!(values(&rows, &tracked(8), &server.counted()), Err(Coarse::Generation));
    rows.expect(&tracked(7));
    assert_eq!(values(&rows, &tracked(7), &server.counted()), Ok(vec![1]));
    rows.expect(&tracked(8));
    assert_eq!(values(&rows, &tracked(7), &server.counted()), Err(Coarse::Generation));
}

/// What was noted by fewer columns still holds for these, and nothing is known of the others.
#[test]
fn a_column_that_comes_meanwhile_leaves_the_others() {
    let (server, mut rows) = run(&[Step::Noted(RowChange::Insert, 1)]);
    let more = TrackedColumns { generation: 9, columns: [1, 4, 3, 0], ..TrackedColumns::default() };
    let added = |rows: &NotedRows, now: &TrackedColumns| {
        rows.values(now, &server.counted()).map(|(values, added)| (values.to_vec(), added.collect::<Vec<_>>()))
    };
    assert_eq!(added(&rows, &tracked(7)), Ok((vec![1], vec![])));
    assert_eq!(added(&rows, &more), Ok((vec![1], vec![4, 3])));
    for other in [
        TrackedColumns { generation: 8, ..more },
        TrackedColumns { generation: 10, ..more },
        TrackedColumns { generation: 6, ..tracked(7) },
        TrackedColumns { quiet: QuietColumns(8), ..more },
        TrackedColumns { columns: [1, 4, 0, 0], ..more },
        TrackedColumns { generation: 7, ..TrackedColumns::default() },
    ] {
        assert_eq!(added(&rows, &other), Err(Coarse::Generation), "{other:?}");
    }
    rows.expect(&more);
    assert_eq!(added(&rows, &more), Ok((vec![1], vec![4, 3])), "a later statement knows more, the first one does not");
    rows.expect(&TrackedColumns { quiet: QuietColumns(8), ..more });
    assert_eq!(added(&rows, &more), Err(Coarse::Generation));
}

#[test]
fn values_of_as_many_changes_are_noted_as_may_be() {
    let (mut server, mut rows) = run(&[Step::Noted(RowChange::Insert, 0)]);
    for value in 1..MOST_CHANGES as u64 {
        server.change(RowChange::Update, value);
        rows.add_change(RowChange::Update, || None);
        rows.look();
        for _ in 0..2 {
            rows.add_value(value);
            rows.add_value(value - 1);
        }
    }
    let all: Vec<_> = (0..MOST_CHANGES as u64).collect();
    assert_eq!(values(&rows, &tracked(7), &server.counted()), Ok(all.clone()));
    server.change(RowChange::Update, 0);
    rows.add_change(RowChange::Update, || None);
    rows.look();
    assert_eq!(values(&rows, &tracked(7), &server.counted()), Ok(all.clone()));
    server.change(RowChange::Update, 0);
    rows.add_change(RowChange::Update, || None);
    rows.look();
    assert_eq!(values(&rows, &tracked(7), &server.counted()), Err(Coarse::Overflow));
}

#[test]
fn values_that_come_in_turn_are_noted_once() {
    let (server, mut rows) = run(&[Step::Noted(RowChange::Insert, 5)]);
    let in_turn: Vec<_> = (0..200).map(|value| 600 + 7 * value % 200).collect();
    for _ in 0..MOST_CHANGES {
        in_turn.iter().for_each(|value| rows.add_value(*value));
    }
    assert_eq!(values(&rows, &tracked(7), &server.counted()), Ok([vec![5], in_turn].concat()));
}

#[test]
fn more_values_than_changes_are_not_noted() {
    let (mut server, mut rows) = run(&[Step::Noted(RowChange::Insert, 0)]);
    for value in 1..MOST_CHANGES as u64 / 2 {
        server.change(RowChange::Delete, value);
        rows.add_change(RowChange::Delete, || None);
        rows.look();
        rows.add_value(value);
        rows.add_value(5000 + value);
    }
    assert_eq!(values(&rows, &tracked(7), &server.counted()).map(|values| values.len()), Ok(MOST_CHANGES as usize - 1));
    rows.add_value(9001);
    assert!(rows.wants_more());
    rows.add_value(9002);
    assert_eq!(values(&rows, &tracked(7), &server.counted()), Err(Coarse::Overflow));
}
