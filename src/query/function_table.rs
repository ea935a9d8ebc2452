//! What is known of the server's own functions. Their numbers are the same in all versions. A function has one row, in
//! `rows`, with all of its properties; those that are `CLEAN` and nothing else stand in `generated_clean`. One without
//! a row has no property, and is refused wherever a property would admit it.
//!
//! Where a property is known from stands beside it (`properties`): scripts/functions/audit.py has found it in the
//! server's code, or it was given by hand, for the reason that stands there. The audit writes both lists, and keeps
//! what was given by hand. It checks that functions that are accepted by hand read no more than they may. The client
//! tests `functions` compare all signatures with the server's.
//!
//! What one function alone is known for has a constant beside the code that knows it.

mod generated_clean;
pub mod properties;
mod rows;

use generated_clean::NOTHING_ELSE;
use pgrx::pg_sys;
use properties::CLEAN;
use rows::FUNCTIONS;

/// The properties of each function, by its number.
static TABLE: [u32; LENGTH] = table();
const LENGTH: usize = {
    let last = FUNCTIONS[FUNCTIONS.len() - 1].0;
    let last_clean = NOTHING_ELSE[NOTHING_ELSE.len() - 1];
    1 + if last > last_clean { last } else { last_clean } as usize
};

/// Both lists are in ascending order, and no function is on both.
const fn table() -> [u32; LENGTH] {
    let mut table = [0; LENGTH];
    let mut place = 0;
    while place < FUNCTIONS.len() {
        let (function, properties) = FUNCTIONS[place];
        assert!(place == 0 || FUNCTIONS[place - 1].0 < function, "rows.rs is not in ascending order");
        table[function as usize] = properties;
        place += 1;
    }
    place = 0;
    while place < NOTHING_ELSE.len() {
        let function = NOTHING_ELSE[place];
        assert!(place == 0 || NOTHING_ELSE[place - 1] < function, "generated_clean.rs is not in ascending order");
        assert!(table[function as usize] == 0, "a function of generated_clean.rs has a row in rows.rs");
        table[function as usize] = CLEAN;
        place += 1;
    }
    table
}

/// Returns true if a function has one of these properties.
pub fn has(function: pg_sys::Oid, properties: u32) -> bool {
    TABLE.get(function.to_u32() as usize).is_some_and(|known| known & properties != 0)
}
