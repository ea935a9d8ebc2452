//! Moments between two steps of the store, in which another process acts.

mod common;

use arrow_cache_core::cache::key::CacheKey;
use arrow_cache_core::cache::memory::Locks;
use arrow_cache_core::cache::{Store, StoreError};
use arrow_cache_core::hash::Hash128;
use common::{Block, described, fill, key};
use std::cell::{Cell, RefCell};

/// The block's locks. Another process acts once, just before the next partition lock is taken.
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

/// `then` is what we do, and `act` happens when we are about to take the first lock of a partition.
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

fn no_lock_here() {
    panic!("a lock was taken");
}

#[test]
fn looking_takes_no_lock() {
    let block = Block::new(10, 64 * 1024);
    publish_one(&block);
    between(&block, no_lock_here, |store| {
        let pin = store.lookup(key(1)).unwrap();
        assert_eq!(store.view(&pin).text(), b"q");
        store.unpin(pin);
        // One in the same bucket, one in an empty one.
        assert!(store.lookup(key(6)).is_none());
        assert!(store.lookup(key(2)).is_none());
        let mut visits = 0;
        store.for_each(|_| visits += 1);
        assert_eq!(visits, 1);
    });
}

#[test]
fn what_lies_deep_in_a_chain_is_found_under_the_lock() {
    const DEEP: u64 = 100;
    let block = Block::new(DEEP as u32, 64 * 1024);
    let store = block.attach(0);
    let chained = |n: u64| CacheKey(Hash128 { hi: n << 32, lo: n });
    for n in 0..DEEP {
        let made = fill(&store, &[], 0).unwrap();
        store.unpin(store.publish(made, chained(n), described(&n.to_le_bytes(), &[]), 0).unwrap());
    }
    let locked = Cell::new(0);
    for n in 0..DEEP {
        let count = || locked.set(locked.get() + 1);
        between(&block, count, |store| {
            let pin = store.lookup(chained(n)).unwrap();
            assert_eq!(store.view(&pin).text(), n.to_le_bytes());
            store.unpin(pin);
        });
    }
    assert!((1..DEEP).contains(&locked.get()), "{} of {DEEP} under a lock", locked.get());
    assert!(store.lookup(chained(DEEP)).is_none());
}

#[test]
fn an_entry_pinned_after_it_was_chosen_for_eviction_stays_readable() {
    let block = Block::new(1, 64 * 1024);
    publish_one(&block);
    let other = block.attach(1);
    let held = Cell::new(None);
    let act = || held.set(other.lookup(key(1)));
    // Chosen and retired, but another process reads it, so no record is free.
    let outcome = between(&block, act, |store| store.reserve(5).map(|_| ()));
    assert_eq!(outcome, Err(StoreError::NoRoom));
    let pin = held.take().unwrap();
    assert_eq!(other.view(&pin).chunks().next(), Some(&[1; 100][..]));
    other.unpin(pin);
    let fill = other.reserve(6).unwrap();
    other.abandon(fill);
    assert_eq!(block.live(), 0);
}
