//! What is remembered of forms whose rows come about as fast as they can be stored, and of keys that were asked before.

mod common;
#[path = "common/results.rs"]
mod results;

use arrow_cache_core::cache::key::CacheKey;
use arrow_cache_core::hash::Hash128;
use common::{Block, key};
use results::{KIB, present, small};

const FORM: u64 = 0x1234_5678_9ABC_DEF0;
/// Another form in the same line.
const RIVAL: u64 = FORM ^ 1 << 60;

#[test]
fn a_form_is_quick_until_a_run_computes() {
    let block = Block::new(20, 64 * KIB);
    let store = block.attach(0);
    assert_eq!(store.quick_rows(FORM), None);
    store.note_quick_rows(FORM, 700);
    assert_eq!(block.attach(1).quick_rows(FORM), Some(700), "every process knows it");
    assert_eq!(store.form_times(FORM), arrow_cache_core::FormTimes::default(), "the times of the form are apart");
    store.forget_quick_rows(RIVAL);
    assert_eq!((store.quick_rows(FORM), store.quick_rows(RIVAL)), (Some(700), None));
    store.forget_quick_rows(FORM);
    assert_eq!(store.quick_rows(FORM), None);
}

#[test]
fn now_and_then_a_run_is_measured_again() {
    let block = Block::new(20, 64 * KIB);
    let store = block.attach(0);
    let mut measured = Vec::new();
    for run in 0..100 {
        if store.quick_rows(FORM).is_none() {
            measured.push(run);
        }
        store.note_quick_rows(FORM, 700);
    }
    assert_eq!(measured, [0, 32, 64, 96]);
}

#[test]
fn a_question_was_asked_once_a_run_was_counted_or_an_answer_stored() {
    let block = Block::new(20, 64 * KIB);
    let store = block.attach(0);
    assert!(!store.was_asked(key(1)) && !store.was_asked(key(2)));
    store.count_run(key(1));
    assert!(store.was_asked(key(1)));
    small(&store, 2, 0);
    assert!(store.was_asked(key(2)));
    assert!(present(&store, 2));
    assert_eq!(store.retire_matching(|_| true), 1);
    assert!(store.was_asked(key(2)), "also when the answer has gone");
    assert!(!store.was_asked(CacheKey(Hash128 { hi: 0, lo: 3 })), "words without a run are of no key");
}
