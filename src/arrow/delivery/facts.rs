//! What decides, beside the stored bytes, on the bytes that a column is delivered as: its types, those of its parts,
//! and how each is delivered. Two deliveries of an entry with the same facts have the same bytes. It is known for
//! closed types alone, whose values are written alike by everybody (`pg/plain_output.rs`); the labels of enums are a
//! part of how they are delivered. Pure but for questions to the catalog.

use super::delivery_type::{Child, DeliveryType};
use crate::arrow::column::Column;
use crate::pg::plain_output::is_plain;
use crate::pg::row_type::RowType;

/// Returns true if nothing but these types decides on the bytes of a column that is delivered so.
pub fn are_all(column: &Column, delivered: &DeliveryType) -> bool {
    let of_child = |child: &Child| are_all(&child.column, &child.delivered);
    match delivered {
        DeliveryType::Text => is_plain(column.base_type),
        DeliveryType::List(element) => of_child(element),
        DeliveryType::Struct(attributes) => is_whole(column) && attributes.iter().all(of_child),
        _ => true,
    }
}

/// Returns true if rows of this type have a value of their own for each attribute. Those of a table may lack attributes
/// that it was given later: they have the value that the catalog keeps for such rows.
fn is_whole(row: &Column) -> bool {
    // SAFETY: asks the catalog for a row type that a running query has, and gives the copy back.
    unsafe {
        let descriptor = kept!(pg_sys::lookup_rowtype_tupdesc_copy(row.base_type, row.base_typmod));
        let is_whole = RowType::of(descriptor).attributes().all(|attribute| !attribute.atthasmissing);
        kept!(pg_sys::FreeTupleDesc(descriptor));
        is_whole
    }
}
