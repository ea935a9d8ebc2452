//! Names and numbers in a query tree that mean a column by its place or by what it is called. Row types may be altered
//! while a statement is parsed, and prepared trees outlive that: what such a tree says must be in its hash.

use std::ffi::{CStr, c_char};

use arrow_cache_core::KeyHasher;
use pgrx::pg_sys::{self, NodeTag};

use super::types::{integers, nodes};

/// Hashes what a node says about the columns of a row by name or number, and how it came to treat them. Relations are protected by their locks, so the
/// names of their columns are left out.
///
/// # Safety
/// `node` must be a valid node of a query tree.
pub unsafe fn hash_columns(hasher: &mut KeyHasher, node: *const pg_sys::Node) {
    // SAFETY: each cast follows the node's tag; what has a type has the rest as well.
    unsafe {
        if makes_a_type((*node).type_) {
            hasher.u32(pg_sys::exprTypmod(node).cast_unsigned());
            hasher.u32(pg_sys::exprCollation(node).to_u32());
            hasher.u32(pg_sys::exprInputCollation(node).to_u32());
        }
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

/// Can an expression of this kind have a type that none of its parts has?
pub fn makes_a_type(tag: NodeTag) -> bool {
    matches!(
        tag,
        NodeTag::T_Aggref
            | NodeTag::T_WindowFunc
            | NodeTag::T_FuncExpr
            | NodeTag::T_OpExpr
            | NodeTag::T_SubLink
            | NodeTag::T_FieldSelect
            | NodeTag::T_SubscriptingRef
            | NodeTag::T_ArrayCoerceExpr
            | NodeTag::T_ConvertRowtypeExpr
            | NodeTag::T_ArrayExpr
            | NodeTag::T_RowExpr
            | NodeTag::T_CaseExpr
            | NodeTag::T_CoalesceExpr
    )
}
