//! What became of the executions of statements: no count is lost or told twice, whoever counts and looks meanwhile; a
//! full set loses the statement that was not executed for longest, and says so.

#[expect(dead_code, reason = "entries are of no concern here")]
mod common;

use arrow_cache_core::{Reason, StatementCounter, StatementCounts, StatementKey};
use common::{Block, SEATS, TestStore};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const ROUNDS: i64 = if cfg!(miri) { 40 } else { 20_000 };

fn key(query_id: i64) -> StatementKey {
    StatementKey { query_id, user: query_id as u32 % 3 + 10, database: 5 }
}

fn hit() -> StatementCounts {
    StatementCounts::one(StatementCounter::Hits).saving(7)
}

fn seen(store: &TestStore<'_>) -> HashMap<StatementKey, StatementCounts> {
    let mut found = HashMap::new();
    store.for_each_statement(|key, counts| assert!(found.insert(key, counts).is_none(), "one place for each"));
    found
}

#[test]
fn every_count_is_seen_once() {
    let block = Block::new(10, 4096);
    let (seated, other, without) = (block.seat(1), block.seat(2), block.attach(SEATS as usize + 1));
    let bypass = StatementCounts::one(StatementCounter::Bypasses).because(Some(Reason::OwnWrites));
    for now in 0..30 {
        seated.count_statement(key(now % 10 + 1), hit(), now);
        other.count_statement(key(now % 10 + 1), hit(), now);
        without.count_statement(key(now % 10 + 1), bypass, now);
        without.count_statement(StatementKey { query_id: 0, user: 1, database: 5 }, bypass, now);
    }
    for _ in 0..2 {
        let found = seen(&without);
        assert_eq!(found.len(), 10);
        for counts in found.values() {
            assert_eq!((counts.count(StatementCounter::Hits), counts.saved_micros), (6, 42));
            assert_eq!((counts.count(StatementCounter::Bypasses), counts.last_reason), (3, Some(Reason::OwnWrites)));
        }
    }
    assert_eq!(without.statements_dropped(), 0);
    seated.count_statement(key(1), hit(), 31);
    without.reset_stats(32);
    assert!(seen(&without).is_empty());
}

#[test]
fn a_full_table_drops_the_oldest_and_counts_it() {
    let block = Block::new(10, 4096);
    let store = block.attach(0);
    let many = 20_000;
    (1..=many).for_each(|n| store.count_statement(key(n), hit(), n));
    let found = seen(&store);
    assert_eq!(found.len() as u64 + store.statements_dropped(), many as u64);
    assert!(found.len() >= 128, "no place is empty");
    // Sets are full of the last statements that fall into them.
    let newest = found.keys().map(|key| key.query_id).max();
    let oldest = found.keys().map(|key| key.query_id).min();
    assert_eq!(newest, Some(many));
    assert!(oldest > Some(many - 2000), "{oldest:?}");
    store.reset_stats(many);
    assert_eq!(store.statements_dropped(), 0);
}

#[test]
fn nothing_is_lost_while_all_count_and_look() {
    let block = Block::new(10, 4096);
    let is_over = AtomicBool::new(false);
    let seated = 4;
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let store = block.attach(15);
            let mut before = 0;
            while !is_over.load(Relaxed) {
                let sum = seen(&store).values().map(|counts| counts.count(StatementCounter::Hits)).sum();
                assert!(sum >= before, "a counter does not go back");
                before = sum;
            }
        });
        let counting: Vec<_> = (0..=seated)
            .map(|number| {
                let block = &block;
                scope.spawn(move || {
                    // The last one has no seat.
                    let store = if number < seated { block.seat(number) } else { block.attach(number) };
                    (0..ROUNDS).for_each(|n| store.count_statement(key(n % 9 + 1), hit(), n * 300));
                })
            })
            .collect();
        counting.into_iter().for_each(|thread| thread.join().unwrap());
        is_over.store(true, Relaxed);
        looking.join().unwrap();
    });
    let found = seen(&block.attach(0));
    let sum: u64 = found.values().map(|counts| counts.count(StatementCounter::Hits)).sum();
    assert_eq!(sum, (seated as u64 + 1) * ROUNDS as u64);
    assert_eq!(found.values().map(|counts| counts.saved_micros).sum::<u64>(), sum * 7);
}
