//! Hits: answers from stored entries. The query's plan is replaced by one with a single Custom Scan over the entry, so
//! that every destination, permission check and EXPLAIN works as for any other plan.
//!
//! The walk of a hit:
//!
//! 1. Before ExecutorStart `swap_plan` pins the entry by a hold in the query's memory (`hold`), and puts the serving
//!    plan in the place of the query's own (`serving_plan`).
//! 2. The server starts that plan as any other: it checks permissions, and our scan (`scan`) opens what the real plan
//!    would open.
//! 3. When the first row is asked for, a guarded scan checks once more that the answer holds (`bound_portal_guard`),
//!    and if not, runs the real plan in its own place (`rerun`).
//! 4. Rows that go to a client are sent by the scan itself (`direct_rows`); other rows are handed to the executor one
//!    by one (`rows`).
//! 5. The end of the scan releases the hold, unless a value lies in its entry; after an error, the end of the query's
//!    memory does.
//!
//! | file | question |
//! |---|---|
//! | `hit` | What is a hit? |
//! | `hold` | How is the entry kept in place, and let go whatever happens? |
//! | `started_under` | What must not change before the last row? |
//! | `bound_portal_guard` | What may change between Bind and the first row? |
//! | `rerun` | How does the real plan run when the answer does not hold any more? |
//! | `rows` | How is an entry read, row by row? |
//! | `stored_chunks` | Where are its chunks: in memory, or in a file? |
//! | `row_slot` | Where are the values of an executor's slot? |
//! | `scan` | What does the executor call? |
//! | `serving_plan` | How is the plan of a hit made? |
//! | `scan_plan` | Of what parts is it made? |
//! | `placeholder_plan` | What does a plan that stands for an answer consist of? |
//! | `part_tap` | Where are the rows of a part that is to be stored? |
//! | `explain` | What does EXPLAIN show of a hit? |
//! | `direct_rows` | How do rows go from the stored columns to the client? |
//! | `client_rows` | How do they go there while they are stored? |
//! | `row_messages` | What makes messages of them? |
//! | `rendition` | Are there finished messages of the rows, and may they be made? |
//! | `client_formats` | Do rows go to the server's own receiver for clients, and in which formats? |
//! | `copied_rows` | What is COPY told of rows that go to the client in its place? |
//! | `column_formats` | Which wire format has a column under the session's settings? |
//! | `output_functions` | Who makes the bytes of a value that we have no wire format for? |
//!
//! Everything here belongs to one backend. The entries are shared, and immutable while they are pinned.

mod bound_portal_guard;
mod client_formats;
mod client_rows;
mod column_formats;
mod copied_rows;
mod direct_rows;
mod explain;
mod hit;
mod hold;
mod output_functions;
mod part_tap;
mod placeholder_plan;
mod rendition;
mod rerun;
mod row_messages;
mod row_slot;
mod rows;
mod scan;
mod scan_plan;
mod serving_plan;
mod started_under;
mod stored_chunks;

use crate::error;

pub use bound_portal_guard::Guard;
pub use client_rows::ClientRows;
pub use column_formats::keeps_text;
pub use hit::Hit;
pub use hold::Hold;
pub use part_tap::{tap, tap_has_ended, tapped};
pub use placeholder_plan::placeholder;
pub use row_slot::slot_values;
pub use rows::Rows;
pub use scan::served;
pub use serving_plan::swap_plan;
pub use started_under::StartedUnder;
pub use stored_chunks::StoredChunks;

/// Makes our scans known to the server, and looks at its receiver of rows. Called once, in the postmaster.
pub fn register() {
    scan::register();
    placeholder_plan::register();
    if !client_formats::look_at_receiver() {
        error::log_unexpected("Rows go to clients one by one.");
    }
}
