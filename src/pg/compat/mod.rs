//! What differs between PostgreSQL 15, 16, 17 and 18, and nothing else. Only the files of this folder have `cfg(feature
//! = "pgNN")`. Nothing is kept; no lock.

mod copy;
mod executor_run;
mod heap;
mod locks;
mod names;
mod permissions;
mod plans;
mod row_types;
mod settings_table;
mod shared_memory;
mod snapshots;
mod sorting;
mod statistics;
pub mod tree;
mod waiting;
mod wal;

pub use copy::copies_materialized_views;
pub(crate) use executor_run::executor_run_hook;
pub use executor_run::{
    ExecutorRunHook, RunArguments, call_executor_run, executor_run, standard_ExecutorRun, standard_executor_run,
};
pub use heap::UpdatedIndexes;
pub use locks::lock_at_once;
pub use names::{may_execute, may_use_schema, qualified_name};
pub use permissions::{ROLE_OF_MEMBERSHIP, ask_for_no_rights, for_each_selected_column, is_permitted, start_unshown};
pub use plans::{add_relations, pruning_of_append, pruning_of_merge_append, query_id, strip_plan, unchecked_plan};
pub use row_types::{
    has_generated_columns, has_virtual_columns, is_virtual_column, tuple_attribute, virtual_expressions,
};
pub use settings_table::setting_of_server;
pub use shared_memory::{backend_number, create_area, most_backends, next_full_transaction_id, number_of_backend};
pub use snapshots::snapshots_grow_old;
pub use sorting::{compares, order_clause};
pub use statistics::{changes_over, counted_relation};
pub use waiting::{TIMEOUTS_OF_STATEMENTS, holds_lock, wait_event_of_change, wait_event_of_fill};
pub use wal::{RelationFile, file_of_block};
