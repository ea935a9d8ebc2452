//! Conversion: values of a column, as PostgreSQL holds them in memory, become an Arrow array of the column's delivery type.

use std::borrow::Cow;

use arrow_cache_core::formats::column_buffers::ColumnBuffers;
use arrow_cache_core::{OutOfMemory, Reason, Room, RoomyVec, Unrepresentable, Why};
use pgrx::pg_sys;

use super::array::{Array, Values};
use super::bitmap::Bits;
use super::convert_scalar::Leaf;
use super::delivery_type::{Child, DeliveryType};
use super::text_output::LabelSource;
use crate::arrow::column::Column;
use crate::pg::array::{self, ElementType};
use crate::pg::row::{Row, Value};
use crate::pg::row_type::RowType;
use crate::pg::varlena::Varlena;

/// Builds the array of one column.
pub struct Converter {
    validity: Bits,
    builder: ArrayBuilder,
}

/// An array in the making, by its layout.
enum ArrayBuilder {
    Leaf(Box<Leaf>),
    List(Box<List>),
    Struct(Box<Struct>),
}

impl Converter {
    /// A converter for a column that is delivered so.
    ///
    /// The current memory context must outlive the result.
    ///
    /// # Errors
    /// `ChangedMeanwhile` when a row type is no longer what it was when the delivery type was found, `OutOfMemory`.
    pub fn new(column: &Column, delivered: &DeliveryType, labels: &LabelSource) -> Result<Self, Reason> {
        let builder = match delivered {
            DeliveryType::List(element) => ArrayBuilder::List(Box::new(List::new(column, element, labels)?)),
            DeliveryType::Struct(attributes) => {
                ArrayBuilder::Struct(Box::new(Struct::new(column, attributes, labels)?))
            }
            _ => ArrayBuilder::Leaf(Box::new(Leaf::new(column, delivered, labels))),
        };
        Ok(Self { validity: Bits::default(), builder })
    }

    /// Makes room for that many more values.
    ///
    /// # Errors
    /// There is no memory.
    pub fn reserve(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        self.validity.make_room(rows)?;
        match &mut self.builder {
            ArrayBuilder::Leaf(leaf) => leaf.reserve(rows),
            ArrayBuilder::List(list) => list.ends.make_room(rows * size_of::<i32>()),
            ArrayBuilder::Struct(row) => {
                row.attributes.iter_mut().try_for_each(|(_, attribute)| attribute.reserve(rows))
            }
        }
    }

    /// Appends a value of the column, `None` for NULL. What it takes to read it is left in the current memory context.
    ///
    /// # Errors
    /// Why the array cannot hold the value. The converter is of no further use then.
    pub fn append(&mut self, value: Option<Value<'_>>) -> Result<(), Unrepresentable> {
        let Some(value) = value else { return Ok(self.append_null()?) };
        match &mut self.builder {
            ArrayBuilder::Leaf(leaf) => leaf.append(value)?,
            ArrayBuilder::List(list) => list.append(value)?,
            ArrayBuilder::Struct(row) => row.append(value)?,
        }
        Ok(self.validity.add(true)?)
    }

    /// Appends a value of the column as it is stored. False if it has to be decoded first: nothing was appended.
    ///
    /// # Errors
    /// As `append`.
    pub fn append_stored(&mut self, stored: &ColumnBuffers<'_>, row: usize) -> Result<bool, Unrepresentable> {
        if stored.is_null(row) {
            self.append_null()?;
            return Ok(true);
        }
        let ArrayBuilder::Leaf(leaf) = &mut self.builder else { return Ok(false) };
        let appended = leaf.append_stored(stored, row)?;
        if appended {
            self.validity.add(true)?;
        }
        Ok(appended)
    }

    /// Appends NULL.
    ///
    /// # Errors
    /// There is no memory.
    pub fn append_null(&mut self) -> Result<(), OutOfMemory> {
        self.validity.add(false)?;
        match &mut self.builder {
            ArrayBuilder::Leaf(leaf) => leaf.append_null(),
            ArrayBuilder::List(list) => list.ends.add_all(&list.elements.to_le_bytes()),
            ArrayBuilder::Struct(row) => {
                row.attributes.iter_mut().try_for_each(|(_, attribute)| attribute.append_null())
            }
        }
    }

    /// What was appended.
    ///
    /// # Errors
    /// `TextEncoding` when a text is not valid UTF-8, `OutOfMemory`.
    pub fn finish(self) -> Result<Array<'static>, Reason> {
        let validity = if self.validity.zeroes() == 0 { Vec::new() } else { self.validity.into_bytes() };
        let values = match self.builder {
            ArrayBuilder::Leaf(leaf) => leaf.finish()?,
            ArrayBuilder::List(list) => Values::List(list.ends, Box::new(list.converter.finish()?)),
            ArrayBuilder::Struct(row) => {
                let mut attributes = Vec::with_room(row.attributes.len())?;
                for (_, attribute) in row.attributes {
                    attributes.add(attribute.finish()?)?;
                }
                Values::Struct(attributes)
            }
        };
        Ok(Array { validity: Cow::Owned(validity), values })
    }
}

/// Arrays in the making.
struct List {
    elements_of: ElementType,
    /// A vector type: its lower bound is 0 and does not show in its text.
    is_vector: bool,
    converter: Converter,
    /// End of each array, behind a zero.
    ends: Vec<u8>,
    /// Elements so far.
    elements: i32,
}

impl List {
    fn new(column: &Column, child: &Child, labels: &LabelSource) -> Result<Self, Reason> {
        Ok(Self {
            elements_of: ElementType::of(child.column.type_oid),
            is_vector: matches!(column.base_type, pg_sys::INT2VECTOROID | pg_sys::OIDVECTOROID),
            converter: Converter::new(&child.column, &child.delivered, labels)?,
            ends: vec![0; size_of::<i32>()],
            elements: 0,
        })
    }

    fn append(&mut self, value: Value<'_>) -> Result<(), Unrepresentable> {
        // SAFETY: the value is one of the column, whose type is that of arrays with such elements.
        let array = unsafe { array::Array::of(value) };
        let (count, bound) = match array.dimensions() {
            [] => (0, 1),
            [(size, bound)] => (*size, if self.is_vector { 1 } else { *bound }),
            _ => (0, 0),
        };
        if bound != 1 {
            return Err(Unrepresentable::new(Why::ArrayBounds, bounds(array.dimensions()).as_bytes()));
        }
        let end = self.elements.checked_add(count);
        self.elements = end.ok_or_else(|| Unrepresentable::new(Why::TooLarge, b""))?;
        self.ends.add_all(&self.elements.to_le_bytes())?;
        self.converter.reserve(count as usize)?;
        // SAFETY: as above.
        unsafe { array.elements(self.elements_of) }.try_for_each(|element| self.converter.append(element))
    }
}

/// The bounds of an array as PostgreSQL prints them: `[0:2][1:1]`.
fn bounds(dimensions: &[(i32, i32)]) -> String {
    let one = |&(size, lower): &(i32, i32)| format!("[{lower}:{}]", i64::from(lower) + i64::from(size) - 1);
    dimensions.iter().map(one).collect()
}

/// Rows in the making.
struct Struct {
    /// In the memory context that was current when this value was made.
    descriptor: pg_sys::TupleDesc,
    /// Each live attribute, with its number in the row type.
    attributes: Vec<(usize, Converter)>,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl Struct {
    fn new(column: &Column, children: &[Child], labels: &LabelSource) -> Result<Self, Reason> {
        // SAFETY: asks the catalog for a row type that a running query has; the copy is ours.
        let descriptor = unsafe { kept!(pg_sys::lookup_rowtype_tupdesc_copy(column.base_type, column.base_typmod)) };
        // SAFETY: the copy is valid as long as this value.
        let row_type = unsafe { RowType::of(descriptor) };
        let mut attributes = Vec::with_room(children.len())?;
        for child in children {
            // Attributes are never renumbered and rarely retyped, but reading one as another type must not happen.
            let found = row_type.attribute(child.place).map(|attribute| attribute.atttypid);
            if found != Some(child.column.type_oid) {
                return Err(Reason::ChangedMeanwhile);
            }
            attributes.push((child.place, Converter::new(&child.column, &child.delivered, labels)?));
        }
        let count = row_type.len();
        Ok(Self { descriptor, attributes, values: filled(count, pg_sys::Datum::from(0))?, nulls: filled(count, true)? })
    }

    fn append(&mut self, value: Value<'_>) -> Result<(), Unrepresentable> {
        // SAFETY: the value is one of the column, so it is a row of this type: a varlena whose head is that of a tuple. There is room for
        // each of its attributes, which live as long as the value.
        let row = unsafe {
            let header: pg_sys::HeapTupleHeader = Varlena::of(value).flat().cast();
            let mut tuple = pg_sys::HeapTupleData {
                t_len: pgrx::varlena::varsize_4b(header.cast()) as u32,
                t_data: header,
                ..Default::default()
            };
            kept!(pg_sys::heap_deform_tuple(
                &mut tuple,
                self.descriptor,
                self.values.as_mut_ptr(),
                self.nulls.as_mut_ptr()
            ));
            Row::new(&self.values, &self.nulls)
        };
        for (place, attribute) in &mut self.attributes {
            attribute.append(row.value(*place))?;
        }
        Ok(())
    }
}

/// That many copies of an item.
fn filled<T: Copy>(count: usize, item: T) -> Result<Vec<T>, OutOfMemory> {
    let mut items = Vec::new();
    items.lengthen(count, item)?;
    Ok(items)
}
