//! Values of a column, as PostgreSQL has them in memory, into the Arrow array that the column's form says.

use std::borrow::Cow;

use arrow_cache_core::{OutOfMemory, Reason, Room, RoomyVec};
use pgrx::pg_sys;

pub use arrow_cache_core::{Unrepresentable, Why};

use super::array::{Array, Values};
use super::bits::Bits;
use super::column::Column;
use super::convert_leaf::Leaf;
use super::elements::{ElementLayout, Elements, dimensions};
use super::form::{Child, Form};
use crate::pg::compat::tuple_attribute;

/// Builds the array of one column.
pub struct Converter {
    validity: Bits,
    shape: Shape,
}

enum Shape {
    Leaf(Box<Leaf>),
    List(Box<List>),
    Struct(Box<Struct>),
}

impl Converter {
    /// A converter for a column that has this form.
    ///
    /// The current memory context must outlive the result.
    ///
    /// # Errors
    /// `ChangedMeanwhile` when a row type is not any more what it was when the form was found.
    pub fn new(column: &Column, form: &Form) -> Result<Self, Reason> {
        let shape = match form {
            Form::List(element) => Shape::List(Box::new(List::new(column, element)?)),
            Form::Struct(attributes) => Shape::Struct(Box::new(Struct::new(column, attributes)?)),
            _ => Shape::Leaf(Box::new(Leaf::new(column, form))),
        };
        Ok(Self { validity: Bits::default(), shape })
    }

    /// Makes room for so many more values.
    ///
    /// # Errors
    /// There is no memory.
    pub fn reserve(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        self.validity.make_room(rows)?;
        match &mut self.shape {
            Shape::Leaf(leaf) => leaf.reserve(rows),
            Shape::List(list) => list.ends.make_room(rows * size_of::<i32>()),
            Shape::Struct(row) => row.attributes.iter_mut().try_for_each(|(_, attribute)| attribute.reserve(rows)),
        }
    }

    /// Appends a value. What it takes to read it is left in the current memory context.
    ///
    /// # Errors
    /// Why the form cannot hold the value. The converter is of no further use then.
    ///
    /// # Safety
    /// `datum` must be a value of the column, unless `is_null`.
    pub unsafe fn append(&mut self, datum: pg_sys::Datum, is_null: bool) -> Result<(), Unrepresentable> {
        if is_null {
            return Ok(self.append_null()?);
        }
        // SAFETY: as the caller promises.
        unsafe {
            match &mut self.shape {
                Shape::Leaf(leaf) => leaf.append(datum)?,
                Shape::List(list) => list.append(datum)?,
                Shape::Struct(row) => row.append(datum)?,
            }
        }
        Ok(self.validity.add(true)?)
    }

    /// Appends a value of a numeric column, given as its text.
    ///
    /// # Errors
    /// As `append`.
    pub fn append_numeric_text(&mut self, text: &[u8]) -> Result<(), Unrepresentable> {
        let Shape::Leaf(leaf) = &mut self.shape else { unreachable!("a numeric has no parts") };
        leaf.append_numeric_text(text)?;
        Ok(self.validity.add(true)?)
    }

    /// Appends NULL.
    ///
    /// # Errors
    /// There is no memory.
    pub fn append_null(&mut self) -> Result<(), OutOfMemory> {
        self.validity.add(false)?;
        match &mut self.shape {
            Shape::Leaf(leaf) => leaf.append_null(),
            Shape::List(list) => list.ends.add_all(&list.elements.to_le_bytes()),
            Shape::Struct(row) => row.attributes.iter_mut().try_for_each(|(_, attribute)| attribute.append_null()),
        }
    }

    /// What was appended.
    ///
    /// # Errors
    /// `TextEncoding` when a text is not valid UTF-8, `OutOfMemory`.
    pub fn finish(self) -> Result<Array<'static>, Reason> {
        let validity = if self.validity.zeroes() == 0 { Vec::new() } else { self.validity.into_bytes() };
        let values = match self.shape {
            Shape::Leaf(leaf) => leaf.finish()?,
            Shape::List(list) => Values::List(list.ends, Box::new(list.converter.finish()?)),
            Shape::Struct(row) => {
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
    layout: ElementLayout,
    /// A vector type: its lower bound is 0 and does not show in its text.
    is_vector: bool,
    converter: Converter,
    /// End of each array, behind a zero.
    ends: Vec<u8>,
    /// Elements so far.
    elements: i32,
}

impl List {
    fn new(column: &Column, child: &Child) -> Result<Self, Reason> {
        Ok(Self {
            layout: ElementLayout::of(child.column.type_oid),
            is_vector: matches!(column.base_type, pg_sys::INT2VECTOROID | pg_sys::OIDVECTOROID),
            converter: Converter::new(&child.column, &child.form)?,
            ends: vec![0; size_of::<i32>()],
            elements: 0,
        })
    }

    /// # Safety
    /// `datum` must be an array of the column's type.
    unsafe fn append(&mut self, datum: pg_sys::Datum) -> Result<(), Unrepresentable> {
        // SAFETY: as the caller promises.
        unsafe {
            let array = plain(datum).cast::<pg_sys::ArrayType>();
            let (sizes, lower) = dimensions(array);
            let (count, bound) = match (sizes, lower) {
                ([], _) => (0, 1),
                ([size], [bound]) => (*size, if self.is_vector { 1 } else { *bound }),
                _ => (0, 0),
            };
            if bound != 1 {
                return Err(Unrepresentable::new(Why::ArrayBounds, bounds(sizes, lower).as_bytes()));
            }
            let end = self.elements.checked_add(count);
            self.elements = end.ok_or_else(|| Unrepresentable::new(Why::TooLarge, b""))?;
            self.ends.add_all(&self.elements.to_le_bytes())?;
            if count > 0 {
                self.converter.reserve(count as usize)?;
                for element in Elements::new(array, self.layout) {
                    self.converter.append(element.unwrap_or(pg_sys::Datum::null()), element.is_none())?;
                }
            }
        }
        Ok(())
    }
}

/// The bounds of an array as PostgreSQL prints them: `[0:2][1:1]`.
fn bounds(sizes: &[i32], lower: &[i32]) -> String {
    let last = |size: &i32, lower: &i32| i64::from(*lower) + i64::from(*size) - 1;
    sizes.iter().zip(lower).map(|(size, lower)| format!("[{lower}:{}]", last(size, lower))).collect()
}

/// A varlena with its long header, neither compressed nor kept elsewhere: itself, or a copy in the current memory context.
///
/// # Safety
/// `datum` must be a varlena.
unsafe fn plain(datum: pg_sys::Datum) -> *mut pg_sys::varlena {
    let value = datum.cast_mut_ptr::<pg_sys::varlena>();
    // SAFETY: as the caller promises. The two low bits of a plain header are zero (varatt.h); asking PostgreSQL costs more
    // than most values.
    unsafe { if *value.cast::<u8>() & 0x03 == 0 { value } else { pg_sys::pg_detoast_datum(value) } }
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
    fn new(column: &Column, children: &[Child]) -> Result<Self, Reason> {
        // SAFETY: a catalog look-up of a row type that a running query has; its copy is read as far as it goes.
        unsafe {
            let descriptor = pg_sys::lookup_rowtype_tupdesc_copy(column.base_type, column.base_typmod);
            let count = (*descriptor).natts as usize;
            let mut attributes = Vec::with_room(children.len())?;
            for child in children {
                // Attributes are never renumbered and rarely retyped, but reading one as another type must not happen.
                let place = child.place;
                if place >= count || (*tuple_attribute(descriptor, place)).atttypid != child.column.type_oid {
                    return Err(Reason::ChangedMeanwhile);
                }
                attributes.push((place, Converter::new(&child.column, &child.form)?));
            }
            Ok(Self {
                descriptor,
                attributes,
                values: filled(count, pg_sys::Datum::from(0))?,
                nulls: filled(count, true)?,
            })
        }
    }

    /// # Safety
    /// `datum` must be a row of the column's type.
    unsafe fn append(&mut self, datum: pg_sys::Datum) -> Result<(), Unrepresentable> {
        // SAFETY: as the caller promises. A row as a value is a varlena whose head is that of a tuple.
        unsafe {
            let header: pg_sys::HeapTupleHeader = plain(datum).cast();
            let mut tuple = pg_sys::HeapTupleData {
                t_len: pgrx::varlena::varsize_4b(header.cast()) as u32,
                t_data: header,
                ..Default::default()
            };
            pg_sys::heap_deform_tuple(&mut tuple, self.descriptor, self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
            for (place, attribute) in &mut self.attributes {
                attribute.append(self.values[*place], self.nulls[*place])?;
            }
        }
        Ok(())
    }
}

/// So many copies of an item.
fn filled<T: Copy>(count: usize, item: T) -> Result<Vec<T>, OutOfMemory> {
    let mut items = Vec::new();
    items.lengthen(count, item)?;
    Ok(items)
}
