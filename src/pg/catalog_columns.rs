//! Columns of the server's catalogs that describe indexes and partition keys, by their attribute numbers.

use pgrx::pg_sys;

/// Attributes of pg_index: the operator classes of its columns, and its predicate.
pub const INDEX_CLASSES: u32 = pg_sys::Anum_pg_index_indclass;
/// See `INDEX_CLASSES`.
pub const INDEX_PREDICATE: u32 = pg_sys::Anum_pg_index_indpred;
/// See `INDEX_CLASSES`: its expressions.
pub const INDEX_EXPRESSIONS: u32 = pg_sys::Anum_pg_index_indexprs;
/// See `INDEX_CLASSES`: the collations of its columns.
pub const INDEX_COLLATIONS: u32 = pg_sys::Anum_pg_index_indcollation;
/// See `INDEX_CLASSES`: the columns of its table, 0 for expressions.
pub const INDEX_KEYS: u32 = pg_sys::Anum_pg_index_indkey;
/// Attributes of pg_partitioned_table (catalog/pg_partitioned_table.h, the same in 15 to 18): the operator classes of the key's columns, and
/// its expressions.
pub const PARTITION_CLASSES: u32 = 6;
/// See `PARTITION_CLASSES`.
pub const PARTITION_EXPRESSIONS: u32 = 8;
