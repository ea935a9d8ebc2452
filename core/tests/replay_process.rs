//! Notes as the process that replays keeps them, of all its tables together, against a plain map: random transactions with
//! sub-transactions change files and catalogs, some of them noted lately, and end quickly or not. What a commit publishes is all that
//! its transaction has changed.

use arrow_cache_core::replay::changes::{CatalogChange, Change, ChangeKind, Full};
use arrow_cache_core::replay::notes::ReplayNotes;
use arrow_cache_core::versions::slots::SlotId;
use arrow_cache_core::{LatelyNoted, RelationFile, Touched};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Files with a smaller number are those of catalogs.
const FIRST_FILE: u32 = 100;
/// The most sub-transactions of a transaction. Their ids follow its own.
const CHILDREN: u32 = 4;

#[derive(Clone, Debug)]
enum Step {
    Write(u32, Touched),
    /// These sub-transactions abort, and then the transaction commits with the others.
    Commit(u32, BTreeSet<u32>),
    AbortAll(u32),
    AbortOne(u32),
    Assign(u32, BTreeSet<u32>),
    Running(u32),
    ChooseAnew,
}

/// With few lines, so that many transactions share one, and little room behind them.
struct Process {
    notes: ReplayNotes<4, 2, 32>,
    lately: LatelyNoted<4>,
    ended: u64,
    /// What the running transactions have changed, and whether something of it was passed on: then more may be published, if the
    /// sub-transaction aborts after all.
    model: BTreeMap<u32, BTreeSet<u32>>,
    passed_on: bool,
}

fn change_of(touched: Touched) -> Change {
    match u16::try_from(touched.file.number()) {
        Ok(catalog) if touched.file.number() < FIRST_FILE => Change::catalog(catalog, touched.how),
        _ => Change::slot(SlotId(touched.file.number())),
    }
}

impl Process {
    fn new() -> Self {
        Self {
            notes: ReplayNotes::new(),
            lately: LatelyNoted::new(),
            ended: 0,
            model: BTreeMap::new(),
            passed_on: false,
        }
    }

    /// There was no room: everything is forgotten, which raises the floor of all versions.
    fn take_care(&mut self, outcome: Result<(), Full>) {
        if outcome.is_err() {
            self.notes.clear();
            self.lately.clear();
            self.model.clear();
        }
    }

    fn write(&mut self, xid: u32, touched: Touched) {
        let change = change_of(touched);
        self.model.entry(xid).or_default().insert(change.0);
        if self.notes.note_hot(xid, touched.file) || self.lately.has(xid, touched, self.ended) {
            return;
        }
        let outcome = match change.kind() {
            ChangeKind::Slot(slot) => self.notes.note_rows(xid, touched.file, slot),
            ChangeKind::Catalog(..) => self.notes.note(xid, change),
        };
        match outcome {
            Ok(()) => self.lately.add(xid, touched, self.ended),
            Err(_) => self.take_care(outcome),
        }
    }

    /// What is published, and what should be.
    fn commit(&mut self, xid: u32, children: &BTreeSet<u32>) -> (BTreeSet<u32>, BTreeSet<u32>) {
        let list: Vec<u32> = children.iter().copied().collect();
        let mut published = BTreeSet::new();
        if let Some(marks) = self.notes.take_hot(xid, &list) {
            published.extend(self.notes.slots(marks).map(|slot| Change::slot(slot).0));
        } else {
            for part in std::iter::once(xid).chain(list) {
                self.notes.take(part, |change| {
                    published.insert(change.0);
                });
            }
        }
        self.ended += 1;
        (published, self.forget_in_model(xid, children))
    }

    fn forget_in_model(&mut self, xid: u32, children: &BTreeSet<u32>) -> BTreeSet<u32> {
        std::iter::once(&xid).chain(children).filter_map(|part| self.model.remove(part)).flatten().collect()
    }

    fn abort(&mut self, xid: u32, children: &BTreeSet<u32>) {
        for part in std::iter::once(&xid).chain(children) {
            self.notes.forget(*part);
        }
        self.forget_in_model(xid, children);
        self.ended += 1;
    }

    /// The sub-transactions that a transaction may have.
    fn children(xid: u32) -> BTreeSet<u32> {
        (xid + 1..=xid + CHILDREN).collect()
    }

    fn assign(&mut self, parent: u32, children: &BTreeSet<u32>) {
        for child in children {
            let outcome = self.notes.pass_on(*child, parent);
            let changes = self.model.remove(child).unwrap_or_default();
            self.passed_on |= !changes.is_empty();
            self.model.entry(parent).or_default().extend(changes);
            self.take_care(outcome);
        }
    }
}

/// Few transactions. The children of one are those of its ten.
fn xids() -> impl Strategy<Value = u32> {
    (1..4u32).prop_map(|ten| ten * 10)
}

fn family() -> impl Strategy<Value = (u32, BTreeSet<u32>)> {
    (xids(), prop::collection::btree_set(1..=CHILDREN, 0..4))
        .prop_map(|(xid, children)| (xid, children.into_iter().map(|child| xid + child).collect()))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let how = prop_oneof![Just(CatalogChange::Inserted), Just(CatalogChange::Changed), Just(CatalogChange::InPlace)];
    // Some share a bit, and some a place among those that were noted lately.
    let number = prop_oneof![6 => FIRST_FILE..FIRST_FILE + 6, 2 => FIRST_FILE + 64..FIRST_FILE + 67, 2 => 1..4u32];
    let write = (xids(), 0..=CHILDREN, number, how).prop_map(|(xid, child, number, how)| {
        Step::Write(xid + child, Touched { file: RelationFile::new(5, number), how })
    });
    let step = prop_oneof![
        30 => write,
        5 => family().prop_map(|(xid, children)| Step::Commit(xid, children)),
        1 => xids().prop_map(Step::AbortAll),
        3 => (xids(), 1..=CHILDREN).prop_map(|(xid, child)| Step::AbortOne(xid + child)),
        2 => family().prop_map(|(xid, children)| Step::Assign(xid, children)),
        1 => xids().prop_map(Step::Running),
        1 => Just(Step::ChooseAnew),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 40 } else { 300 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 5 } else { 2000 }, ..ProptestConfig::default() })]

    #[test]
    fn a_commit_publishes_all_that_its_transaction_has_changed(steps in steps()) {
        let mut process = Process::new();
        for step in steps {
            match step {
                Step::Write(xid, touched) => process.write(xid, touched),
                Step::Commit(xid, aborted) => {
                    aborted.iter().for_each(|child| process.abort(*child, &BTreeSet::new()));
                    let children = &Process::children(xid) - &aborted;
                    let (published, changed) = process.commit(xid, &children);
                    prop_assert!(published.is_superset(&changed), "{published:?} instead of {changed:?}");
                    prop_assert!(process.passed_on || published == changed, "{published:?} instead of {changed:?}");
                }
                Step::AbortAll(xid) => process.abort(xid, &Process::children(xid)),
                Step::AbortOne(child) => process.abort(child, &BTreeSet::new()),
                Step::Assign(xid, children) => process.assign(xid, &children),
                Step::Running(oldest) => {
                    process.notes.forget_older(oldest);
                    // What ran before is over: its ids do not come again before many others have ended.
                    process.model.retain(|xid, _| *xid >= oldest);
                    process.ended += 1;
                }
                Step::ChooseAnew => {
                    let outcome = process.notes.choose_anew();
                    process.take_care(outcome);
                }
            }
        }
    }
}

/// What does not fit is not noted, so it must be noted when it comes again.
#[test]
fn a_change_that_did_not_fit_is_not_taken_for_noted() {
    let write = |process: &mut Process, xid, number| {
        process.write(xid, Touched { file: RelationFile::new(5, number), how: CatalogChange::Inserted });
    };
    let mut process = Process::new();
    // Each transaction has more changes than one place holds. One of them fills the last place, which has all forgotten.
    let mut forgotten = None;
    for number in 0..400 {
        let (xid, file) = (10 * (1 + number % 40), FIRST_FILE + number);
        write(&mut process, xid, file);
        if process.model.is_empty() {
            forgotten = Some((xid, file));
            break;
        }
    }
    let (xid, file) = forgotten.expect("there is room for all");
    write(&mut process, xid, file);
    let (published, changed) = process.commit(xid, &BTreeSet::new());
    assert_eq!(published, changed);
    assert_eq!(changed.len(), 1);
}
