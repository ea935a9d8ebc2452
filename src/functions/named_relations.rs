//! Relations and columns as users are shown them: by their names, or not at all, and how much of a relation an answer
//! rests on. Reads catalogs; keeps nothing.

use std::ffi::CStr;

use arrow_cache_core::{EACH_ROW, members};
use pgrx::pg_sys;

use crate::pg::privileges;

/// Most relations that an answer names.
const NAMED_RELATIONS: usize = 20;

/// How much of a relation an answer rests on.
pub enum Extent {
    /// All of it.
    Whole,
    /// The rows with certain values in one of these columns; in `EACH_ROW`, all, but for changes of quiet columns.
    Rows(Vec<i16>),
    /// All of it, until this column is tracked.
    Untracked(i16),
}

impl Extent {
    /// What follows the name of the relation.
    fn told(&self, relation: pg_sys::Oid) -> Vec<u8> {
        match self {
            Self::Whole => Vec::new(),
            Self::Rows(columns) if columns.contains(&EACH_ROW) => b" (but quiet columns)".to_vec(),
            Self::Rows(columns) => {
                let names: Vec<_> = columns.iter().map(|column| column_name(relation, *column)).collect();
                [b" (rows by ".to_vec(), names.join(b", ".as_slice()), b")".to_vec()].concat()
            }
            Self::Untracked(column) => {
                [b" (whole until ".to_vec(), column_name(relation, *column), b" is tracked)".to_vec()].concat()
            }
        }
    }
}

/// Returns true if the user may read the relation itself, or a column of it. The names of other relations, which a view
/// or a policy reads, are not shown.
pub fn is_readable(relation: pg_sys::Oid) -> bool {
    // An index has no rights of its own.
    // SAFETY: reads a catalog; InvalidOid for what is no index.
    let table = unsafe { kept!(pg_sys::IndexGetRelation(relation, true)) };
    let relation = if table == pg_sys::InvalidOid { relation } else { table };
    privileges::has(privileges::current_role(), relation, pg_sys::ACL_SELECT)
}

/// A relation's qualified name.
pub fn relation_name(relation: pg_sys::Oid) -> Vec<u8> {
    // SAFETY: catalog searches. The relation is locked; if it has no name nevertheless, its number is shown.
    unsafe {
        let name = kept!(pg_sys::get_rel_name(relation));
        let schema = kept!(pg_sys::get_namespace_name(kept!(pg_sys::get_rel_namespace(relation))));
        if name.is_null() || schema.is_null() {
            return relation.to_u32().to_string().into_bytes();
        }
        CStr::from_ptr(kept!(pg_sys::quote_qualified_identifier(schema, name))).to_bytes().to_vec()
    }
}

/// The name of a column, or of the two that it stands for; empty if it is gone.
pub fn column_name(relation: pg_sys::Oid, column: i16) -> Vec<u8> {
    if let (first, Some(second)) = members(column) {
        return [column_name(relation, first), column_name(relation, second)].join(b" and ".as_slice());
    }
    // SAFETY: a catalog search about a column of a locked relation; null if it is gone.
    let name = unsafe { kept!(pg_sys::get_attname(relation, column, true)) };
    // SAFETY: not null; a text that ends with NUL.
    if name.is_null() { Vec::new() } else { unsafe { CStr::from_ptr(name) }.to_bytes().to_vec() }
}

/// Relations in the order of their names, at most `NAMED_RELATIONS`. Those that the user may not know are only counted.
pub fn listed(relations: Vec<(u32, Extent)>) -> Vec<u8> {
    let relations = relations.into_iter().map(|(relation, extent)| (pg_sys::Oid::from(relation), extent));
    let (readable, others): (Vec<_>, Vec<_>) = relations.partition(|(relation, _)| is_readable(*relation));
    let more = readable.len().saturating_sub(NAMED_RELATIONS);
    let mut names: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (relation, extent) in readable {
        let name = relation_name(relation);
        let place = names.partition_point(|(earlier, _)| *earlier < name);
        names.insert(place, (name, extent.told(relation)));
        names.truncate(NAMED_RELATIONS);
    }
    let mut parts = Vec::new();
    if !names.is_empty() {
        let names: Vec<_> = names.into_iter().map(|(name, extent)| [name, extent].concat()).collect();
        parts.push(names.join(b", ".as_slice()));
    }
    if more > 0 {
        parts.push(format!("{more} more").into_bytes());
    }
    if !others.is_empty() {
        parts.push(format!("{} that you may not read", others.len()).into_bytes());
    }
    if parts.is_empty() { b"its own text alone".to_vec() } else { parts.join(b" and ".as_slice()) }
}
