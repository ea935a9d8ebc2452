//! What a statement asks: may its answer be kept at all, and what identifies the question. Eligibility is checked once,
//! when the statement is planned; the verdict travels inside the plan, so that prepared statements carry it along.
//! Nothing here knows how results are stored.
//!
//! | question | file |
//! |---|---|
//! | May the answer to this query be kept? | `eligibility` (nodes: `node_table`), `volatility` (functions: `function_table`), `trusted_extensions`, `types` |
//! | Which values of the clock does it ask for? | `clock` (which are worth being in a key: `clock_settling`) |
//! | Which texts are constants wherever they pass through? | `constant_texts` (`enclosing`: the queries around a node) |
//! | … over these relations? | `relations`, `relation_policy` (what owners say), `planner_input` (virtual columns, indexes) |
//! | Is it the same question? | `key`: `identity` (form and tree), `environment` (settings), `asker` (role, rights), `parameters` |
//! | … with functions that are declared pure? | `name_resolution` |
//! | What may its plan open? | `opened_relations` |
//! | Which values have the rows that its plan reads, and which columns does it not read? | `asked_values` (`known_values`: before it runs), `value_hash`, `unread_columns` |
//! | What else does the answer rest on? | `row_types_and_settings` |
//! | … and what is told of it, beside that? | `checking`; what SQL leaves open: `repeatability`, `bytewise` (equal values) |
//! | What was decided, and where does it stand? | `verdict`, `plan_marker` (inside the plan) |
//! | May a stored part raise an error that its statement need not raise? | `failures` |
//! | What does a comment before the statement ask? | `statement_terms`, `statement_text` |
//! | May another statement change the cursor's row? | `updatable_cursor` |
//! | How many rows can there be at most? | `row_bound` |
//! | Which leaves of a partitioned table may hold rows that a query asks for? | `partitions` |
//! | Where in a plan are the parts that an answer is combined of? | `scan_of_parts` |
//!
//! `hashes` are the types of all hashes.

pub mod asked_values;
pub mod asker;
mod bytewise;
pub mod checking;
pub mod clock;
pub mod clock_settling;
mod constant_texts;
pub mod decomposition;
pub mod eligibility;
mod enclosing;
pub mod environment;
pub mod failures;
mod function_table;
pub mod handed_times;
pub mod hashes;
pub mod identity;
pub mod key;
mod known_values;
mod limited_rows;
pub mod name_resolution;
mod node_table;
pub mod opened_relations;
pub mod parameters;
pub mod partitions;
pub mod plan_marker;
pub mod planner_input;
mod present_settings;
pub mod relation_policy;
pub mod relations;
mod repeatability;
pub mod row_bound;
pub mod row_types_and_settings;
pub mod scan_of_parts;
pub mod shown_clock;
pub mod statement_terms;
pub mod statement_text;
pub mod trusted_extensions;
pub mod types;
pub mod unread_columns;
mod unused_columns;
pub mod updatable_cursor;
pub mod value_hash;
mod verdict;
pub mod volatility;

pub use verdict::{Cacheable, Planned, Under, Verdict, Versions};
