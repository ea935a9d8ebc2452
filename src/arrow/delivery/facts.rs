//! What decides, beside the stored bytes, on the bytes that a column is delivered as: its types, those of its parts, and how each is delivered. Two
//! deliveries of an entry with the same facts have the same bytes. It is known for closed types alone, whose values are written alike by everybody
//! (`pg/plain_output.rs`); enums are, too, if their labels are read from the catalog (`LabelSource`). Pure but for questions to the catalog.

use arrow_cache_core::{HashBuffer, OutOfMemory, RoomyVec};
use pgrx::pg_sys;

use super::delivery_type::{Child, DeliveryType};
use crate::arrow::column::Column;
use crate::pg::plain_output::is_plain;
use crate::pg::row_type::RowType;

/// Adds what decides on the values of a column that is delivered so. False if something else decides, too: the facts are of no use then.
pub fn add(column: &Column, delivered: &DeliveryType, facts: &mut HashBuffer) -> bool {
    facts.words([column.type_oid.to_u32(), column.base_type.to_u32(), column.base_typmod.cast_unsigned()]);
    facts.u8(column.kind as u8);
    match delivered {
        DeliveryType::Stored(_) => facts.u8(0),
        DeliveryType::Text if is_plain(column.base_type) => facts.u8(1),
        DeliveryType::Text => return false,
        DeliveryType::Label => facts.u8(2),
        DeliveryType::CharByte => facts.u8(3),
        DeliveryType::Decimal { precision, scale } => {
            facts.u8(4);
            facts.words([u32::from(*precision), u32::from(*scale)]);
        }
        DeliveryType::Float64 => facts.u8(5),
        DeliveryType::MonthDayNano => facts.u8(6),
        DeliveryType::List(element) => {
            facts.u8(7);
            return add_child(element, facts);
        }
        DeliveryType::Struct(attributes) => {
            facts.u8(8);
            facts.u64(attributes.len() as u64);
            return is_whole(column) && attributes.iter().all(|attribute| add_child(attribute, facts));
        }
    }
    true
}

/// Adds the enums whose labels are in the values of a column that is delivered so, each once.
///
/// # Errors
/// There is no memory for them.
pub fn add_enums(column: &Column, delivered: &DeliveryType, enums: &mut Vec<pg_sys::Oid>) -> Result<(), OutOfMemory> {
    match delivered {
        DeliveryType::Label if !enums.contains(&column.base_type) => enums.add(column.base_type),
        DeliveryType::List(element) => add_enums(&element.column, &element.delivered, enums),
        DeliveryType::Struct(attributes) => {
            attributes.iter().try_for_each(|attribute| add_enums(&attribute.column, &attribute.delivered, enums))
        }
        _ => Ok(()),
    }
}

fn add_child(child: &Child, facts: &mut HashBuffer) -> bool {
    facts.u64(child.place as u64);
    add(&child.column, &child.delivered, facts)
}

/// Do rows of this type have a value of their own for each attribute? Those of a table may lack attributes that it was given later: they have the value
/// that the catalog keeps for such rows.
fn is_whole(row: &Column) -> bool {
    // SAFETY: asks the catalog for a row type that a running query has, and gives the copy back.
    unsafe {
        let descriptor = kept!(pg_sys::lookup_rowtype_tupdesc_copy(row.base_type, row.base_typmod));
        let is_whole = RowType::of(descriptor).attributes().all(|attribute| !attribute.atthasmissing);
        kept!(pg_sys::FreeTupleDesc(descriptor));
        is_whole
    }
}
