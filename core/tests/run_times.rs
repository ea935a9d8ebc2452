//! How long statements run, as sessions tell each other.

mod common;

use common::Block;

const KIB: usize = 1024;

/// A statement in the same word as another.
const SAME_PLACE: u64 = 1 << 60;

#[test]
fn every_process_knows_the_longest_run_of_late() {
    let block = Block::new(1, 64 * KIB);
    let store = block.attach(0);
    assert_eq!(store.longest_run_time(5), (0, 0));
    for _ in 0..15 {
        store.note_run_time(5, 100);
    }
    block.attach(1).note_run_time(5, 300);
    assert_eq!(store.longest_run_time(5), (16, 300));
    assert_eq!([store.longest_run_time(6), store.longest_run_time(5 + SAME_PLACE)], [(0, 0); 2]);
    for _ in 0..100 {
        store.note_run_time(5, 100);
    }
    assert_eq!(store.longest_run_time(5).1, 100, "a long run counts less with each shorter one");
}

#[test]
fn a_statement_takes_the_word_of_another() {
    let block = Block::new(1, 64 * KIB);
    let store = block.attach(0);
    store.note_run_time(5, 100);
    store.note_run_time(5 + SAME_PLACE, 200);
    assert_eq!([store.longest_run_time(5), store.longest_run_time(5 + SAME_PLACE)], [(0, 0), (1, 200)]);
}
