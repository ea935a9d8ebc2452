//! What stands in the way of a decomposition, in words for `why()`.

/// What stands in the way of a decomposition: a sentence for `why()`, or `NO_TABLE`.
pub type Obstacle = &'static str;

/// No query level groups, or aggregates, the rows of a table with partitions, or of a large one: nothing to tell.
pub const NO_TABLE: Obstacle = "";
pub(super) const GROUPING_SETS: Obstacle = "It has grouping sets.";
pub(super) const OTHER_RELATION: Obstacle = "It joins a relation that is no plain table or materialized view.";
pub(super) const PARAMETER: Obstacle = "The value of a parameter is not known when it is planned.";
pub(super) const SUB_QUERY: Obstacle =
    "A sub-query stands in WHERE, in a join, in a key or in the argument of an aggregate.";
pub(super) const SYSTEM_COLUMN: Obstacle = "It reads a system column, or whole rows, of the table.";
pub(super) const UNGROUPED_COLUMN: Obstacle = "It uses a column that is not grouped.";
