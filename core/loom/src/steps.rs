//! Steps, between which a check reads.

use super::search::{both, zeroed};
use crate::atomics::{AtomicU64, Ordering::Relaxed};
use crate::cache::steps::Steps;

struct Two([AtomicU64; 2]);

/// What was read while nobody was in a step, and none has begun since, belongs together.
pub fn belongs_together() {
    let steps = zeroed::<Steps>();
    let two = zeroed::<Two>();
    let write = move || {
        let _step = steps.begin();
        two.0.iter().for_each(|word| word.store(1, Relaxed));
    };
    let read = move || {
        let Some(quiet) = steps.quiet() else { return };
        let seen = [0, 1].map(|n: usize| two.0[n].load(Relaxed));
        if steps.is_still(quiet) {
            assert_eq!(seen[0], seen[1], "torn");
        }
    };
    both(write, read);
}
