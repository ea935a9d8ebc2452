//! The clock in the columns of an answer: the clock-free part of the statement (`query::shown_clock`) is planned in the place of the statement, and
//! a scan on top computes what the statement asks for. The part is a statement of its own for the cache: it is looked up, stored and served by the
//! rules that hold for all answers.
//!
//! 1. The planner hook has found that the answer moves with the clock. `planning::part` takes the query apart, the server plans the part, and
//!    `planning::plan` puts the scan over its plan. Permissions, relations and locks are those of that plan.
//! 2. When the scan is started (`scan`), the part is looked up (`rows_of_part`) under the statement's snapshot. A stored answer is pinned; otherwise the plan of the
//!    part is run, and its rows are stored on the way.
//! 3. For each row the executor computes the target list of the scan: the projection.
//!
//! This holds for statements of the simple protocol, which are planned and read to the end within one message, and for exports (`COPY … (FORMAT arrow)`,
//! `query`, `fetch`, `messages`). EXPLAIN shows the server's own plan of the statement unless the part is stored.
//!
//! All other statements keep the server's own plan, which carries the query (`kept`). It is exchanged for one with the scan at their first run, if nobody
//! can tell (`late`).

mod kept;
pub mod late;
mod planning;
mod rows_of_part;
mod scan;

pub use late::to_keep;
pub use planning::{combine, part, plan};
pub use scan::register;
