//! What is noted of running transactions, one rule at a time: hot files, and what was noted lately. `replayed.rs` compares random operations
//! with a plain map.

#[path = "common/notes.rs"]
mod notes;

use arrow_cache_core::replay::changes::{CatalogChange, Change};
use arrow_cache_core::replay::notes::ReplayNotes;
use arrow_cache_core::versions::slots::SlotId;
use arrow_cache_core::{LatelyNoted, RelationFile, Touched};
use notes::{all_notes, change_rows, file};

#[test]
fn files_become_hot_and_are_told_apart() {
    let mut notes = ReplayNotes::<8, 2, 16>::new();
    assert!(!notes.note_hot(10, file(7)), "nobody has named it yet");
    change_rows(&mut notes, 10, 7).unwrap();
    assert_eq!(notes.take_hot(10, &[]), None, "it was noted elsewhere");
    assert!(notes.note_hot(11, file(7)));
    assert!(!notes.note_hot(11, file(7 + 64)), "another file has its bit");
    assert!(!notes.note_hot(11, RelationFile::new(6, 7)), "so has the file of another database");
    assert!(!notes.note_hot(0, file(7)), "no transaction");
    assert!(notes.note_hot(u32::MAX, file(7)));
    assert_eq!((all_notes(&notes, 0), all_notes(&notes, u32::MAX)), (vec![], vec![7]));
    notes.forget(u32::MAX);
    notes.forget(10);
    let marks = notes.take_hot(11, &[]).expect("nothing else is noted");
    assert_eq!(notes.slots(marks).collect::<Vec<_>>(), [SlotId(7)]);
    assert!(notes.is_empty());
}

#[test]
fn hot_notes_of_a_transaction_and_its_children_are_united() {
    let mut notes = ReplayNotes::<8, 2, 16>::new();
    for number in [1, 2, 63, 64] {
        change_rows(&mut notes, 3, number).unwrap();
    }
    notes.forget(3);
    for (xid, number) in [(10, 1), (11, 2), (11, 64), (12, 63), (13, 1)] {
        assert!(notes.note_hot(xid, file(number)));
    }
    notes.note(14, Change(99)).unwrap();
    assert_eq!(notes.take_hot(10, &[11, 12]), None, "a child may have changed more");
    notes.forget(14);
    let marks = notes.take_hot(10, &[11, 12]).expect("nothing else is noted");
    let mut slots: Vec<u32> = notes.slots(marks).map(|slot| slot.0).collect();
    slots.sort_unstable();
    assert_eq!((slots, all_notes(&notes, 13)), (vec![1, 2, 63, 64], vec![1]));
}

/// 21 and 13 share a line.
#[test]
fn who_has_no_line_is_noted_elsewhere() {
    let mut notes = ReplayNotes::<8, 2, 16>::new();
    change_rows(&mut notes, 3, 1).unwrap();
    notes.forget(3);
    assert!(notes.note_hot(13, file(1)) && !notes.note_hot(21, file(1)));
    change_rows(&mut notes, 21, 1).unwrap();
    assert_eq!((all_notes(&notes, 13), all_notes(&notes, 21)), (vec![1], vec![1]));
    notes.pass_on(13, 21).unwrap();
    assert_eq!((all_notes(&notes, 13), all_notes(&notes, 21)), (vec![], vec![1]));
    notes.forget(21);
    assert!(notes.is_empty());
}

/// Two files take turns on one bit. What is noted stays when the bits are given away anew.
#[test]
fn other_files_become_hot_in_the_end() {
    let mut notes = ReplayNotes::<8, 2, 64>::new();
    change_rows(&mut notes, 9, 1).unwrap();
    notes.forget(9);
    assert!(notes.note_hot(12, file(1)));
    let mut tries = 0;
    while !notes.note_hot(11, file(65)) {
        notes.note_rows(10, file(65), SlotId(65)).unwrap();
        tries += 1;
        assert!(tries < 10_000, "it never becomes hot");
    }
    assert_eq!((all_notes(&notes, 10), all_notes(&notes, 11), all_notes(&notes, 12)), (vec![65], vec![65], vec![1]));
}

#[test]
fn what_was_noted_lately_holds_until_a_transaction_ends() {
    let mut lately = LatelyNoted::<64>::new();
    let touched = |number, how| Touched { file: file(number), how };
    let insert = touched(1259, CatalogChange::Inserted);
    assert!(!lately.has(10, insert, 1));
    lately.add(10, insert, 1);
    assert!(lately.has(10, insert, 1));
    assert!(!lately.has(11, insert, 1) && !lately.has(10, insert, 2));
    for other in [CatalogChange::InPlace, CatalogChange::Changed] {
        assert!(!lately.has(10, touched(1259, other), 1));
        lately.add(10, touched(1259, other), 1);
    }
    assert!(!lately.has(10, Touched { file: RelationFile::new(0, 1259), ..insert }, 1));
    assert!(!lately.has(10, touched(1259 + 64, CatalogChange::Inserted), 1));
    lately.clear();
    assert!(!lately.has(10, insert, 1));
    // Neither an empty place nor a note makes a record without transaction known.
    lately.add(0, insert, 1);
    assert!(!lately.has(0, insert, 1) && !lately.has(0, touched(0, CatalogChange::InPlace), 0));
}

#[test]
fn a_file_is_read_as_one_word() {
    let mut neighbours = [0; 8];
    neighbours[..4].copy_from_slice(&5_u32.to_ne_bytes());
    neighbours[4..].copy_from_slice(&70_000_u32.to_ne_bytes());
    let file = RelationFile::of_neighbours(u64::from_ne_bytes(neighbours));
    assert_eq!((file, file.database(), file.number()), (RelationFile::new(5, 70_000), 5, 70_000));
}
