//! Names and numbers in a query tree that mean a column by its place or by what it is called. Row types may be altered
//! while a statement is parsed, and prepared trees outlive that: what such a tree says must be in its hash.

use std::ffi::{CStr, c_char};

use arrow_cache_core::KeyHasher;
use pgrx::pg_sys::{self, NodeTag};

use super::types::{integers, nodes};

/// Hashes what a node says about the columns of a row by name or number. Relations are protected by their locks, so the
/// names of their columns are left out.
///
/// # Safety
/// `node` must be a valid node of a query tree.
pub unsafe fn hash_columns(hasher: &mut KeyHasher, node: *const pg_sys::Node) {
    // SAFETY: each cast follows the node's tag.
    unsafe {
        match (*node).type_ {
            NodeTag::T_FieldSelect => hasher.u32((*node.cast::<pg_sys::FieldSelect>()).fieldnum as u32),
            NodeTag::T_FieldStore => {
                for number in integers((*node.cast::<pg_sys::FieldStore>()).fieldnums) {
                    hasher.u32(number as u32);
                }
            }
            NodeTag::T_RowExpr => hash_names(hasher, (*node.cast::<pg_sys::RowExpr>()).colnames),
            NodeTag::T_RangeTblEntry => {
                let entry = &*node.cast::<pg_sys::RangeTblEntry>();
                if entry.rtekind != pg_sys::RTEKind::RTE_RELATION && !entry.eref.is_null() {
                    hash_names(hasher, (*entry.eref).colnames);
                }
            }
            _ => {}
        }
    }
}

/// # Safety
/// `list` must be NIL or a list of strings.
unsafe fn hash_names(hasher: &mut KeyHasher, list: *const pg_sys::List) {
    // SAFETY: as the caller promises.
    unsafe {
        for name in nodes::<pg_sys::String>(list) {
            let text: *const c_char = (*name).sval;
            if !text.is_null() {
                hasher.part(CStr::from_ptr(text).to_bytes());
            }
        }
    }
}
