//! Arrays and their elements (utils/array.h), read without a call of the server, since an array is met once per value.
//! Nothing is kept.

use std::ffi::{CStr, c_char, c_void};

use pgrx::pg_sys;

use super::row::Value;
use super::varlena::Varlena;

/// Most dimensions of an array.
const MOST_DIMENSIONS: usize = pg_sys::MAXDIM as usize;
/// Alignment of an array's data: the largest PostgreSQL type alignment.
const MAX_ALIGN: usize = 8;

/// How the elements of an array type lie in its values.
#[derive(Clone, Copy)]
pub struct ElementType {
    length: i16,
    by_value: bool,
    alignment: usize,
}

impl ElementType {
    /// That of elements of this type. Raises if it is not there.
    pub fn of(type_oid: pg_sys::Oid) -> Self {
        let (mut length, mut by_value, mut alignment) = (0, false, 0);
        // SAFETY: asks the catalog.
        unsafe { kept!(pg_sys::get_typlenbyvalalign(type_oid, &mut length, &mut by_value, &mut alignment)) };
        let alignment = match alignment as u8 {
            pg_sys::TYPALIGN_CHAR => 1,
            pg_sys::TYPALIGN_SHORT => 2,
            pg_sys::TYPALIGN_INT => 4,
            _ => MAX_ALIGN,
        };
        Self { length, by_value, alignment }
    }
}

/// An array that is flat and uncompressed.
#[derive(Clone, Copy)]
pub struct Array<'v> {
    header: &'v pg_sys::ArrayType,
    dimensions: ([(i32, i32); MOST_DIMENSIONS], usize),
}

impl<'v> Array<'v> {
    /// The array that a value is, detoasted into the current memory context if necessary.
    ///
    /// # Safety
    /// The value must be an array.
    pub unsafe fn of(value: Value<'v>) -> Self {
        // SAFETY: an array is of variable length; its sizes, and then its lower bounds, follow its header
        // (utils/array.h).
        unsafe {
            let header: *const pg_sys::ArrayType = Varlena::of(value).flat().cast_const().cast();
            let count = (*header).ndim as usize;
            let words = header.add(1).cast::<i32>();
            let mut dimensions = [(0, 0); MOST_DIMENSIONS];
            for (number, dimension) in dimensions.iter_mut().enumerate().take(count) {
                *dimension = (*words.add(number), *words.add(count + number));
            }
            Self { header: &*header, dimensions: (dimensions, count) }
        }
    }

    /// Size and lower bound of each dimension.
    pub fn dimensions(&self) -> &[(i32, i32)] {
        let (dimensions, count) = &self.dimensions;
        &dimensions[..*count]
    }

    /// The type of the elements.
    pub fn element_type(&self) -> pg_sys::Oid {
        self.header.elemtype
    }

    /// The elements one after the other, `None` for NULL.
    ///
    /// # Safety
    /// The array must have elements of this type.
    pub unsafe fn elements(&self, of: ElementType) -> impl Iterator<Item = Option<Value<'v>>> + use<'v> {
        let count = self.dimensions().iter().map(|(size, _)| *size).product::<i32>() as usize;
        let count = if self.dimensions().is_empty() { 0 } else { count };
        let start = std::ptr::from_ref(self.header).cast::<u8>();
        let end_of_head = size_of::<pg_sys::ArrayType>() + 2 * self.dimensions().len() * size_of::<i32>();
        // The bitmap, if there is one, follows the dimensions; the data follow the bitmap.
        let (has_nulls, mut offset) = match self.header.dataoffset as usize {
            0 => (false, end_of_head.next_multiple_of(MAX_ALIGN)),
            offset => (true, offset),
        };
        (0..count).map(move |index| {
            // SAFETY: the caller's promise: an element lies there, or none where the bitmap says so. A flat array is
            // valid for `'v`.
            unsafe {
                if has_nulls && *start.add(end_of_head + index / 8) >> (index % 8) & 1 == 0 {
                    return None;
                }
                let place = start.add(offset);
                let length = match of.length {
                    -1 => pgrx::varlena::varsize_any(place.cast()),
                    -2 => CStr::from_ptr(place.cast::<c_char>()).to_bytes_with_nul().len(),
                    fixed => fixed as usize,
                };
                offset = (offset + length).next_multiple_of(of.alignment);
                Some(Value::of(match (of.by_value, length) {
                    // As `fetch_att`.
                    (false, _) => pg_sys::Datum::from(place.cast_mut().cast::<c_void>()),
                    (true, 1) => pg_sys::Datum::from(place.cast::<i8>().read()),
                    (true, 2) => pg_sys::Datum::from(place.cast::<i16>().read()),
                    (true, 4) => pg_sys::Datum::from(place.cast::<i32>().read()),
                    (true, _) => pg_sys::Datum::from(place.cast::<i64>().read()),
                }))
            }
        })
    }
}
