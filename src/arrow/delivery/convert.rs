//! Conversion: a stored column becomes an Arrow array of its delivery type.
//!
//! Values that have parts are arrays and rows. The parts of all values of a column are the rows of a batch, which is
//! encoded as if it were to be stored, and delivered as stored batches are. Nothing is kept.

use std::sync::Arc;

use arrow_buffer::Buffer;
use arrow_cache_core::formats::decimal::{to_decimal128, to_float64, to_nearest_float64, to_rounded_decimal128};
use arrow_cache_core::{OutOfMemory, Reason, RoomyVec, Unrepresentable, Why};
use arrow_data::ArrayData;
use pgrx::pg_sys;

use super::convert_leaf::{as_stored, intervals, labels, numbers, texts, without_special_times};
use super::delivery_type::{Child, DeliveryType};
use super::stored_column::{Decoded, Ends, Problem, StoredColumn};
use crate::arrow::chunk::{Chunk, ChunkBytes};
use crate::arrow::column::Column;
use crate::arrow::encode::Encoder;
use crate::pg::array::{self, ElementType};
use crate::pg::backend;
use crate::pg::row::{Row, Value};
use crate::pg::row_type::RowType;
use crate::pg::varlena::Varlena;

/// The first rows of a column as an array. What it takes to convert them is left in the current memory context.
///
/// # Errors
/// The first value that the array cannot hold; `ChangedMeanwhile` if a row type is no longer what it was when the
/// delivery type was found; `TextEncoding` if a text is not valid UTF-8.
pub fn deliver(stored: &StoredColumn<'_>, rows: usize, delivered: &DeliveryType) -> Result<ArrayData, Problem> {
    let validity = stored.buffers().validity;
    let mut validity = (!validity.is_empty()).then(|| stored.buffer(validity));
    let mut parts = Vec::new();
    let buffers = match delivered {
        DeliveryType::Stored(_) => as_stored(stored, rows)?,
        DeliveryType::Text => texts(stored, rows)?,
        DeliveryType::Label(read) => labels(stored, rows, read)?,
        DeliveryType::Decimal { precision, scale, is_rounded } => {
            let to_decimal = if *is_rounded { to_rounded_decimal128 } else { to_decimal128 };
            let number = |text: &[u8]| to_decimal(text, *precision, *scale).map(i128::to_le_bytes);
            numbers(stored, rows, delivered, number)?
        }
        DeliveryType::Float64 { is_rounded } => {
            let to_float = if *is_rounded { to_nearest_float64 } else { to_float64 };
            numbers(stored, rows, delivered, |text| to_float(text).map(f64::to_le_bytes))?
        }
        DeliveryType::Time(_, special) => {
            if let Some(left) = without_special_times(stored, rows, *special)? {
                validity = Some(left);
            }
            as_stored(stored, rows)?
        }
        DeliveryType::MonthDayNano => intervals(stored, rows)?,
        DeliveryType::List(element) => {
            let (ends, elements) = lists(stored, rows, element)?;
            parts.add(elements)?;
            vec![ends]
        }
        DeliveryType::Struct(attributes) => {
            parts = structs(stored, rows, attributes)?;
            Vec::new()
        }
    };
    let array = ArrayData::builder(delivered.data_type())
        .len(rows)
        .null_bit_buffer(validity)
        .buffers(buffers)
        .child_data(parts)
        .align_buffers(true);
    // SAFETY: the buffers are those of such an array, for so many rows at least: they were encoded for it, or converted
    // above.
    Ok(unsafe { array.build_unchecked() })
}

/// Most bytes of a batch of parts, as of a column of a batch.
const MOST_BYTES: usize = i32::MAX as usize;

/// The parts of some values in the making: their elements, or their attributes.
struct Parts {
    columns: Vec<Column>,
    encoder: Encoder,
}

impl Parts {
    fn new(columns: Vec<Column>) -> Result<Self, OutOfMemory> {
        Ok(Self { encoder: Encoder::new(&columns)?, columns })
    }

    /// Adds the parts of the value in row `of` as a row of theirs.
    fn add(&mut self, of: usize, row: Row<'_>) -> Result<(), Problem> {
        let added = self.encoder.append(row, MOST_BYTES);
        if added == Err(Reason::TooLarge) || self.encoder.pending_bytes() > MOST_BYTES {
            return Err(Problem::Value(of, Unrepresentable::new(Why::TooLarge, b"")));
        }
        Ok(added?)
    }

    /// The batch of the parts, of one row at least.
    fn encoded(&mut self) -> Result<Arc<ChunkBytes>, Problem> {
        if self.encoder.pending_rows() == 0 {
            let (values, nulls) = (filled(self.columns.len(), NOTHING)?, filled(self.columns.len(), true)?);
            // SAFETY: all of them are NULL.
            self.add(0, unsafe { Row::new(&values, &nulls) })?;
        }
        Ok(Arc::new(self.encoder.take_batch()?.into_bytes()?))
    }

    /// The first rows of a column of the batch.
    fn deliver(
        &self,
        batch: &Arc<ChunkBytes>,
        index: usize,
        rows: usize,
        delivered: &DeliveryType,
    ) -> Result<ArrayData, Problem> {
        // SAFETY: the batch was written by the encoder of these columns. Its bytes do not move, and the arrays own
        // them.
        let stored = unsafe {
            StoredColumn::of(&self.columns, index, Chunk::new(batch.as_slice()), Arc::<ChunkBytes>::clone(batch))?
        };
        deliver(&stored, rows, delivered)
    }
}

/// Stands for NULL.
const NOTHING: pg_sys::Datum = pg_sys::Datum::null();

/// Arrays with such elements: where each ends, and the elements of all.
fn lists(stored: &StoredColumn<'_>, rows: usize, element: &Child) -> Result<(Buffer, ArrayData), Problem> {
    let of = ElementType::of(element.column.type_oid);
    // A vector type: its lower bound is 0 and does not show in its text.
    let is_vector = matches!(stored.column.base_type, pg_sys::INT2VECTOROID | pg_sys::OIDVECTOROID);
    let mut elements = Parts::new(Vec::collected(std::iter::once(element.column))?)?;
    let mut ends = Ends::new(rows)?;
    let mut decoded = Decoded::new(stored);
    for row in 0..rows {
        decoded.with(row, |value| {
            // SAFETY: the value is one of the column, whose type is that of arrays with such elements.
            let array = unsafe { array::Array::of(value) };
            let mut dimensions = array.dimensions();
            let is_list = match (dimensions.len(), dimensions.next()) {
                (1, Some((_, bound))) => bound == 1 || is_vector,
                (count, _) => count == 0,
            };
            if !is_list {
                let bounds = Unrepresentable::new(Why::ArrayBounds, bounds(array.dimensions()).as_bytes());
                return Err(Problem::Value(row, bounds));
            }
            // SAFETY: as above.
            unsafe { array.elements(of) }.try_for_each(|element| {
                let (value, is_null) = ([element.map_or(NOTHING, Value::datum)], [element.is_none()]);
                // SAFETY: the element is a value of the column that the parts were made for.
                elements.add(row, unsafe { Row::new(&value, &is_null) })
            })
        })?;
        ends.add(row, elements.encoder.pending_rows())?;
        backend::accept_interrupts();
    }
    let count = elements.encoder.pending_rows();
    let batch = elements.encoded()?;
    let array = elements.deliver(&batch, 0, count, &element.delivered).map_err(|problem| match problem {
        Problem::Value(element, problem) => Problem::Value(ends.row_of(element), problem),
        other => other,
    })?;
    Ok((ends.into_buffer(), array))
}

/// The bounds of an array as PostgreSQL prints them: `[0:2][1:1]`.
fn bounds(dimensions: impl Iterator<Item = (i32, i32)>) -> String {
    dimensions.map(|(size, lower)| format!("[{lower}:{}]", i64::from(lower) + i64::from(size) - 1)).collect()
}

/// Rows with such attributes.
fn structs(stored: &StoredColumn<'_>, rows: usize, attributes: &[Child]) -> Result<Vec<ArrayData>, Problem> {
    let Column { base_type, base_typmod, .. } = stored.column;
    // SAFETY: asks the catalog for a row type that a running query has; the copy is ours, in the current memory
    // context.
    let (descriptor, row_type) = unsafe {
        let descriptor = kept!(pg_sys::lookup_rowtype_tupdesc_copy(base_type, base_typmod));
        (descriptor, RowType::of(descriptor))
    };
    // Attributes are never renumbered and rarely retyped, but reading one as another type must not happen.
    let is_same =
        |child: &Child| row_type.attribute(child.place).map(|found| found.atttypid) == Some(child.column.type_oid);
    if !attributes.iter().all(is_same) {
        return Err(Reason::ChangedMeanwhile.into());
    }
    let mut parts = Parts::new(Vec::collected(attributes.iter().map(|child| child.column))?)?;
    let (mut all, mut all_nulls) = (filled(row_type.len(), NOTHING)?, filled(row_type.len(), true)?);
    let (mut values, mut nulls) = (filled(attributes.len(), NOTHING)?, filled(attributes.len(), true)?);
    let mut decoded = Decoded::new(stored);
    for row in 0..rows {
        if stored.buffers().is_null(row) {
            nulls.fill(true);
            // SAFETY: all attributes are NULL.
            parts.add(row, unsafe { Row::new(&values, &nulls) })?;
            continue;
        }
        decoded.with(row, |value| {
            // SAFETY: the value is one of the column, so it is a row of this type: a varlena whose head is that of a
            // tuple. There is room for each of its attributes, which live as long as the value and are of the types
            // that the parts were made for.
            unsafe {
                let header: pg_sys::HeapTupleHeader = Varlena::of(value).flat().cast();
                let mut tuple = pg_sys::HeapTupleData {
                    t_len: pgrx::varlena::varsize_4b(header.cast()) as u32,
                    t_data: header,
                    ..Default::default()
                };
                kept!(pg_sys::heap_deform_tuple(&mut tuple, descriptor, all.as_mut_ptr(), all_nulls.as_mut_ptr()));
                for (index, child) in attributes.iter().enumerate() {
                    (values[index], nulls[index]) = (all[child.place], all_nulls[child.place]);
                }
                parts.add(row, Row::new(&values, &nulls))
            }
        })?;
        backend::accept_interrupts();
    }
    let batch = parts.encoded()?;
    let mut arrays = Vec::with_room(attributes.len())?;
    for (index, child) in attributes.iter().enumerate() {
        arrays.add(parts.deliver(&batch, index, rows, &child.delivered)?)?;
    }
    Ok(arrays)
}

/// That many copies of an item.
fn filled<T: Copy>(count: usize, item: T) -> Result<Vec<T>, OutOfMemory> {
    let mut items = Vec::new();
    items.lengthen(count, item)?;
    Ok(items)
}
