//! The partition keys of open relations, whose head differs between 15 and later versions.

#[cfg(feature = "pg15")]
use std::ffi::c_char;

use pgrx::pg_sys;

/// The head of `PartitionKeyData` (utils/partcache.h). pgrx does not bind it.
#[repr(C)]
struct KeyOfServer {
    #[cfg(feature = "pg15")]
    strategy: c_char,
    #[cfg(not(feature = "pg15"))]
    strategy: pg_sys::PartitionStrategy::Type,
    columns: i16,
    column_numbers: *mut pg_sys::AttrNumber,
    expressions: *mut pg_sys::List,
    families: *mut pg_sys::Oid,
    input_types: *mut pg_sys::Oid,
    support: *mut pg_sys::FmgrInfo,
    collations: *mut pg_sys::Oid,
    types: *mut pg_sys::Oid,
}

unsafe extern "C-unwind" {
    /// utils/partcache.h; makes the key if the relation has none yet.
    fn RelationGetPartitionKey(relation: pg_sys::Relation) -> *const KeyOfServer;
}

/// How rows are sent to partitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartitionStrategy {
    /// By ranges of values.
    Range,
    /// By lists of values.
    List,
}

/// A partition key that is one column.
#[derive(Clone, Copy, Debug)]
pub struct PartitionColumn {
    /// By ranges or by lists.
    pub strategy: PartitionStrategy,
    /// The column's number in the partitioned table.
    pub number: i16,
    /// The column's type.
    pub type_oid: pg_sys::Oid,
    /// The operator family that orders its values.
    pub family: pg_sys::Oid,
    /// The type that the operators of the key's operator class take.
    pub input_type: pg_sys::Oid,
    /// The collation of the key.
    pub collation: pg_sys::Oid,
    /// The function that compares two values. It lives as long as the relation is open.
    pub support: *mut pg_sys::FmgrInfo,
}

/// The numbers of the columns that the partition key of an open partitioned table has, 0 for an expression.
///
/// # Safety
/// The relation must be open, and partitioned.
pub unsafe fn partition_key_columns(relation: pg_sys::Relation) -> Vec<i16> {
    // SAFETY: as in `partition_column`.
    unsafe {
        let Some(key) = kept!(RelationGetPartitionKey(relation)).as_ref() else { return vec![0] };
        (0..key.columns as usize).map(|column| *key.column_numbers.add(column)).collect()
    }
}

/// The partition key of an open partitioned table, if it is one column, by ranges or lists. `None` for hashes, expressions and several columns.
///
/// # Safety
/// The relation must be open, and partitioned.
pub unsafe fn partition_column(relation: pg_sys::Relation) -> Option<PartitionColumn> {
    // SAFETY: an open partitioned table has a key, whose arrays have as many items as it has columns. They live as long as it is open.
    unsafe {
        let key = kept!(RelationGetPartitionKey(relation)).as_ref()?;
        let strategy = match u8::try_from(key.strategy) {
            Ok(b'r') => PartitionStrategy::Range,
            Ok(b'l') => PartitionStrategy::List,
            _ => return None,
        };
        if key.columns != 1 || *key.column_numbers <= 0 || !key.expressions.is_null() {
            return None;
        }
        Some(PartitionColumn {
            strategy,
            number: *key.column_numbers,
            type_oid: *key.types,
            family: *key.families,
            input_type: *key.input_types,
            collation: *key.collations,
            support: key.support,
        })
    }
}
