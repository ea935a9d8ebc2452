//! The rules, each of which can be taken away, and the steps of a registrar.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Past {
    Whole,
    /// Only those who still run.
    Running,
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    pub past: Past,
    pub only_settled_lines_are_used: bool,
    pub closing_lines_count: bool,
    pub coarse_moves_at_the_end: bool,
    pub coarse_is_read_before_the_line: bool,
    pub counts_are_compared: bool,
    pub generations_are_compared: bool,
    pub quiet_changes_concern_those_who_read: bool,
    pub all_changed_columns_must_be_quiet: bool,
    pub values_are_seen_whole: bool,
    pub coarse_is_kept: bool,
    pub unknown_values_are_published: bool,
    pub unknown_values_count: bool,
}

pub const ALL_RULES: Rules = Rules {
    past: Past::Whole,
    only_settled_lines_are_used: true,
    closing_lines_count: true,
    coarse_moves_at_the_end: true,
    coarse_is_read_before_the_line: true,
    counts_are_compared: true,
    generations_are_compared: true,
    quiet_changes_concern_those_who_read: true,
    all_changed_columns_must_be_quiet: true,
    values_are_seen_whole: true,
    coarse_is_kept: true,
    unknown_values_are_published: true,
    unknown_values_count: true,
};

/// What the registrar does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Act {
    /// The column.
    Open(i16),
    ReadNext,
    PublishPast,
    Settle,
    Close,
    Move,
    Free,
    /// The columns that become quiet.
    Reopen(u64),
}
pub use Act::{Close, Free, Move, Open, PublishPast, ReadNext, Reopen, Settle};
