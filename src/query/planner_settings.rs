//! The settings by which the planner estimates what plans cost, as one number. They are those that the server itself lists under the planner, memory and
//! parallel workers: a later version has its own. Where they lie is found once per backend; state of this backend, no lock.

use std::cell::{Cell, OnceCell};

use arrow_cache_core::{HashBuffer, LastHash};

use crate::pg::backend_local::Local;
use crate::pg::compat::{Variable, variables_of_planning};

static VARIABLES: Local<OnceCell<Vec<Variable>>> = Local::new(OnceCell::new());
static LAST: Local<Cell<LastHash>> = Local::new(Cell::new(LastHash::new()));

/// The present settings as one number.
pub fn hash() -> u64 {
    let variables = VARIABLES.get_or_init(variables_of_planning);
    let mut last = LAST.take();
    let hash = last.of(|key| variables.iter().for_each(|variable| add(key, variable)));
    LAST.set(last);
    hash.lo
}

fn add(key: &mut HashBuffer, variable: &Variable) {
    // SAFETY: variables of the server's own settings, which are never freed, read on the backend's only thread.
    unsafe {
        match *variable {
            Variable::Flag(flag) => key.u8(u8::from(*flag)),
            Variable::Number(number) => key.u32(*number as u32),
            Variable::Real(real) => key.u64((*real).to_bits()),
        }
    }
}
