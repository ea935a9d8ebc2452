//! Moments between two steps of the store, with somebody else acting in them.

mod common;

use arrow_cache_core::memory::Locks;
use arrow_cache_core::store::{Fill, Store, StoreError};
use common::{Block, described, fill, key};
use std::cell::{Cell, RefCell};

/// The block's locks, with one act of somebody else just before the next partition lock is taken.
struct Interposed<'a> {
    block: &'a Block,
    act: RefCell<Option<Box<dyn FnOnce() + 'a>>>,
}

impl Interposed<'_> {
    fn happen(&self) {
        if let Some(act) = self.act.take() {
            act();
        }
    }
}

impl Locks for &Interposed<'_> {
    fn shared<R>(&self, partition: usize, f: impl FnOnce() -> R) -> R {
        self.happen();
        self.block.shared(partition, f)
    }

    fn exclusive<R>(&self, partition: usize, f: impl FnOnce() -> R) -> R {
        self.happen();
        self.block.exclusive(partition, f)
    }

    fn store<R>(&self, f: impl FnOnce() -> R) -> R {
        self.block.store(f)
    }
}

/// One entry is published; `act` happens between our look at its record and our pin; `then` is what we do.
fn between<'a, R>(
    block: &'a Block,
    act: impl FnOnce() + 'a,
    then: impl FnOnce(&Store<'_, &Interposed<'a>, &'a Block>) -> R,
) -> R {
    let locks = Interposed { block, act: RefCell::new(Some(Box::new(act))) };
    // SAFETY: the block is initialized for its layout; the interposed locks are the block's own.
    let store = unsafe { Store::attach(block.base(), &block.layout, &locks, block, 0) };
    then(&store)
}

fn publish_one(block: &Block) {
    let store = block.attach(0);
    let made = fill(&store, &[vec![1; 100]], 0).unwrap();
    let pin = store.publish(made, key(1), described(b"q", &[]), 0).unwrap();
    store.unpin(pin);
}

#[test]
fn a_record_that_is_being_filled_anew_is_not_visited() {
    let block = Block::new(1, 64 * 1024);
    publish_one(&block);
    let taken: Cell<Option<Fill>> = Cell::new(None);
    let act = || {
        let store = block.attach(1);
        assert_eq!(store.retire_matching(|_| true), 1);
        taken.set(Some(fill(&store, &[vec![2; 100]], 0).unwrap()));
    };
    let visits = between(&block, act, |store| {
        let mut visits = 0;
        store.for_each(|_| visits += 1);
        visits
    });
    assert_eq!(visits, 0);
    let store = block.attach(0);
    store.abandon(taken.take().unwrap());
    assert_eq!(store.bytes_used(), block.layout.bookkeeping_bytes());
    assert_eq!(block.live(), 0);
}

#[test]
fn a_record_that_holds_another_result_is_not_taken_for_the_one_seen() {
    let block = Block::new(1, 64 * 1024);
    publish_one(&block);
    let act = || {
        let store = block.attach(1);
        assert_eq!(store.retire_matching(|_| true), 1);
        publish_one(&block);
    };
    assert_eq!(between(&block, act, |store| store.retire_matching(|_| true)), 0);
    assert_eq!(block.attach(0).entries(), 1);
}

#[test]
fn an_entry_pinned_after_it_was_chosen_for_eviction_stays_readable() {
    let block = Block::new(1, 64 * 1024);
    publish_one(&block);
    let other = block.attach(1);
    let held = Cell::new(None);
    let act = || held.set(other.lookup(key(1)));
    // Chosen and retired, but somebody reads it, so there is no record to give.
    let outcome = between(&block, act, |store| store.reserve(5).map(|_| ()));
    assert_eq!(outcome, Err(StoreError::NoRoom));
    let pin = held.take().unwrap();
    assert_eq!(other.view(&pin).chunks().next(), Some(&[1; 100][..]));
    other.unpin(pin);
    let fill = other.reserve(6).unwrap();
    other.abandon(fill);
    assert_eq!(block.live(), 0);
}
