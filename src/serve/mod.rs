//! Answers from stored entries: a plan with one Custom Scan over the entry (`stub`, `scan`), so
//! that every destination, permission check and EXPLAIN works as for any other plan.

mod columns;
mod explain;
mod hit;
mod hold;
mod output;
mod pieces;
mod rerun;
mod rows;
mod scan;
mod straight;
mod stub;
mod template;

pub use hit::Hit;
pub use hold::Hold;
pub use rerun::Guard;
pub use rows::Rows;
pub use scan::{is_served, note_run, slot_values};
pub use stub::{entry_of, hold, swap_plan};
pub use template::{Template, stands_for};

/// Makes the custom scan known to the server. Called once, in the postmaster.
pub fn register() {
    scan::register();
}
