//! Results for tests that store many of them.

use super::common::{TestStore, described, fill, key};
use arrow_cache_core::cache::{NewEntry, Pin, StoreError};

/// Bytes of a kilobyte.
pub const KIB: usize = 1024;

/// Fills and publishes.
pub fn put(store: &TestStore<'_>, n: u64, chunks: &[Vec<u8>], new: NewEntry<'_>, now: i64) -> Result<Pin, StoreError> {
    store.publish(fill(store, chunks, now)?, key(n), new, now)
}

/// A small result under a key.
pub fn small(store: &TestStore<'_>, n: u64, now: i64) {
    let pin = put(store, n, &[vec![n as u8; 100]], described(b"q", &[]), now).unwrap();
    store.unpin(pin);
}

/// Returns true if there is a result under a key.
pub fn present(store: &TestStore<'_>, n: u64) -> bool {
    store.lookup(key(n)).map(|pin| store.unpin(pin)).is_some()
}
