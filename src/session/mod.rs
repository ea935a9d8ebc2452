//! State of this backend that several rooms ask for: where the present statement stands and what became of the last
//! one. Never shared, so no lock.

mod definition_changes;
mod nesting;
mod own_commits;
mod planning;
mod status;
mod timing;
mod wrapping;

pub use definition_changes::{definition_changes, note_definition_change};
pub use nesting::{
    Outside, at_top_level, depth, enter_level, enter_utility, leave_level, leave_utility, transaction_failed,
};
pub use own_commits::{last_own_commit, note_end, note_writing};
pub use planning::{
    PlanningExport, StartingExport, may_be_answered, must_plan, next_plan_number, note_observed, planning_export,
    plans_matter, set_must_plan, take_starting_export,
};
pub use status::{
    Status, begin_bypass, begin_statement, begin_undecided, last_status, set_status, set_status_of, statement_number,
};
pub use timing::{
    Purpose, Timed, begin_timed, forget_timed, has_fingerprint, keep_timed_for_parts, note_fingerprint,
    take_fingerprint, take_timed, time_run,
};
pub use wrapping::{
    WrappedText, Wrapper, Wrapping, copying, copying_to_client, declaring_cursor, declaring_or_copying, enter_wrapping,
    executing_prepared, explaining, holds_cursor_at_once, is_explaining, is_wrapped, leave_wrapping, wrapped_text,
};
