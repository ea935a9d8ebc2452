//! Statements that lately ran in less than `min_execution_time`: capturing their rows again would
//! be work for nothing. Backend-local, a fixed table; a forgotten statement is only captured once
//! more.

use std::cell::RefCell;

use arrow_cache_core::CacheKey;

use crate::pg::backend_local::Local;
use crate::settings;

/// Statements remembered. A power of two.
const PLACES: usize = 1024;

static KNOWN: Local<RefCell<Vec<u64>>> = Local::new(RefCell::new(Vec::new()));

fn place(key: CacheKey) -> usize {
    key.hi as usize % PLACES
}

/// Is the statement known to be too quick to be worth storing?
pub fn is_known(key: CacheKey) -> bool {
    if settings::debug_serve_fills() || settings::min_execution_time().is_zero() {
        return false;
    }
    KNOWN.with_borrow(|known| known.get(place(key)) == Some(&key.lo))
}

/// Remembers whether the statement was too quick this time.
pub fn remember(key: CacheKey, too_quick: bool) {
    KNOWN.with_borrow_mut(|known| {
        if known.is_empty() {
            if !too_quick {
                return;
            }
            known.resize(PLACES, 0);
        }
        let known = &mut known[place(key)];
        if too_quick {
            *known = key.lo;
        } else if *known == key.lo {
            *known = 0;
        }
    });
}
