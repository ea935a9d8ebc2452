//! Fragments: stored parts of an answer. An aggregate is combined of one part for each leaf of a partitioned table, or
//! each zone of a plain one (`query::decomposition`). The parts are stored, so that after a change only those of
//! changed leaves, or zones, are computed again.
//!
//! The walk of such a statement:
//!
//! 1. The planner hook asks `planning` whether the query may be combined of parts, and is worth it (`admission`). If
//!    so, the server plans the combined query in its place, and the query of each part (`part_plan`). The combined
//!    query reads a named tuplestore, and the path hook puts our scan there (`path`), in whose node the plans of the
//!    parts lie (`recipe`). A plan that is run once, and at once, has none for parts that are stored: if one is gone
//!    when it starts, the query is planned after all (`unplanned`).
//! 2. When the plan starts, the scan (`scan`) finds out what is asked by the present values (`key`), looks for the
//!    stored parts under the snapshot of the statement, and pins them (`parts`).
//! 3. When it is asked for rows, it gives those of the stored parts, and runs the plan of each other part (`part_run`),
//!    whose rows are stored on the way (`capture`).
//!
//! Zones (`zones`) have one plan for each of them, one for all at once (`zone_pass`, planned with `zone_stats`), and
//! one that makes a part of several (`zone_merge`).
//!
//! Statements that differ in the constants of their conditions may share parts (`grains`): the parts have all values of
//! the columns that these name, and the combined query asks the conditions of their rows.
//!
//! A part is planned and run as a statement of its own, by the server's own functions: nothing of the statement around
//! it can reach into what is stored, and the hooks of other libraries see one statement. All state belongs to one query
//! of this backend.

mod admission;
mod grains;
mod key;
mod part_plan;
mod part_run;
mod part_state;
mod parts;
mod path;
mod planning;
mod recipe;
mod scan;
pub mod shown_clock;
mod split_aggregates;
mod unplanned;
mod zone_merge;
mod zone_pass;
mod zone_stats;
mod zones;

pub use path::{attend as attend_paths, attends as attends_paths, end};
pub use planning::{Combination, add_dependencies, combine, combine_moving, is_undecided};
pub use scan::grain_of;
pub use unplanned::planned_after_all;
pub use zone_stats::{tell_of_zones, tells_of};
pub use zones::{is_read_whole, least_blocks as least_zoned_blocks};

/// Makes our scans known to the server. Called once, in the postmaster.
pub fn register() {
    scan::register();
}
