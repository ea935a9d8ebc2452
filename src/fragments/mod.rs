//! Fragments: stored parts of an answer. An aggregate over a partitioned table is combined of one part for each of its leaves
//! (`query::decomposition`); the parts are stored, so that after a change only those of changed leaves are computed again.
//!
//! The walk of such a statement:
//!
//! 1. The planner hook asks `planning` whether the query may be combined of parts, and is worth it (`admission`). If so, the server plans the
//!    combined query in its place. A plan that is kept, or made for a Bind, is the server's own; the query goes along with it (`carried`), and if
//!    there is no answer when it starts, the combined query is planned then (`starting`), or at its first run, if it matters how it is read (`first_run`), and no index has to be waited for (`index_locks`). The combined query reads a named tuplestore, and the path hook puts our scan there (`path`).
//! 2. When the plan starts, the scan (`scan`) looks for the stored parts under the snapshot of the statement, and pins them (`parts`). It plans the
//!    others (`part_plan`), unless definitions have changed: then another plan runs (`way_back`).
//! 3. When it is asked for rows, it gives those of the stored parts, and runs the query of each other part (`part_run`), whose rows are stored
//!    on the way (`capture`).
//!
//! A part is planned and run as a statement of its own, by the server's own functions: nothing of the statement around it can reach into what
//! is stored, and the hooks of other libraries see one statement. All state belongs to one query of this backend.

mod admission;
mod carried;
mod exchange;
mod explain;
mod first_run;
mod index_locks;
mod key;
mod part_plan;
mod part_run;
mod parts;
mod path;
mod planning;
mod recipe;
mod refused;
mod scan;
pub mod shown_clock;
mod starting;
mod tuples;
mod way_back;

pub use carried::attach;
pub use first_run::{decide_at_run, end as end_late, is_idle as is_none_late};
pub use path::{add_path, is_planning as plans_combined};
pub use planning::{Combination, add_relations, combine, combine_moving, end};
pub use starting::{combine_at_start, question};

/// Makes our scans known to the server. Called once, in the postmaster.
pub fn register() {
    scan::register();
}
