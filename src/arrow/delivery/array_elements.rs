//! The elements of an array one after the other, read in place (utils/array.h). No call into PostgreSQL, since an array is met
//! once per value.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

use pgrx::pg_sys;

use crate::pg::row::Value;
use crate::pg::varlena::{self, Varlena};

/// Alignment of an array's data: the largest PostgreSQL type alignment.
const MAX_ALIGN: usize = 8;

/// How the elements of an array type lie in its values.
#[derive(Clone, Copy, Debug)]
pub struct ElementLayout {
    length: i16,
    by_value: bool,
    alignment: usize,
}

impl ElementLayout {
    /// The layout of elements of a type that a running query has.
    pub fn of(element_type: pg_sys::Oid) -> Self {
        let (mut length, mut by_value, mut align) = (0, false, 0);
        // SAFETY: asks the catalog; a type that is not there raises.
        unsafe { kept!(pg_sys::get_typlenbyvalalign(element_type, &mut length, &mut by_value, &mut align)) };
        let alignment = match align as u8 {
            pg_sys::TYPALIGN_CHAR => 1,
            pg_sys::TYPALIGN_SHORT => 2,
            pg_sys::TYPALIGN_INT => 4,
            _ => MAX_ALIGN,
        };
        Self { length, by_value, alignment }
    }
}

/// A flat array whose elements have a known layout, valid for `'v`. It may lie anywhere: nothing is taken to be aligned.
#[derive(Clone, Copy)]
pub struct FlatArray<'v> {
    /// Where its header is, or would be before a body that is stored without one. What follows is read as seen from here.
    start: *const u8,
    layout: ElementLayout,
    valid: PhantomData<&'v [u8]>,
}

/// Where the number of dimensions is (`ArrayType.ndim`).
const DIMENSIONS: usize = std::mem::offset_of!(pg_sys::ArrayType, ndim);
/// Where the start of the data is, 0 for arrays without NULL (`ArrayType.dataoffset`).
const DATA: usize = std::mem::offset_of!(pg_sys::ArrayType, dataoffset);
/// Where the sizes are, followed by the lower bounds.
const SIZES: usize = std::mem::size_of::<pg_sys::ArrayType>();
/// Bytes of a size, or of a bound.
const WORD: usize = std::mem::size_of::<i32>();

impl<'v> FlatArray<'v> {
    /// The array that a value is, made flat if it is not.
    ///
    /// # Safety
    /// The value must be an array with elements of this layout.
    pub unsafe fn of(value: Value<'v>, layout: ElementLayout) -> Self {
        // SAFETY: arrays are of variable length.
        let flat = unsafe { Varlena::of(value) }.flat();
        Self { start: flat.cast_const().cast(), layout, valid: PhantomData }
    }

    /// The array with this body.
    ///
    /// # Safety
    /// It must be the body of a flat array with elements of this layout.
    pub unsafe fn of_body(body: &'v [u8], layout: ElementLayout) -> Self {
        Self { start: body.as_ptr().wrapping_sub(varlena::HEADER), layout, valid: PhantomData }
    }

    /// A word of the array.
    ///
    /// # Safety
    /// It must have one there, behind the header.
    unsafe fn word(self, offset: usize) -> i32 {
        // SAFETY: the caller's promise; `of` and `of_body` were promised that the array is valid for `'v`.
        unsafe { self.start.wrapping_add(offset).cast::<i32>().read_unaligned() }
    }

    /// How many dimensions it has.
    pub fn dimensions(self) -> usize {
        // SAFETY: every array has that.
        unsafe { self.word(DIMENSIONS) as usize }
    }

    /// Size and lower bound of a dimension that it has.
    pub fn dimension(self, number: usize) -> (i32, i32) {
        assert!(number < self.dimensions(), "an array without that dimension");
        // SAFETY: sizes and then lower bounds follow the head of an array.
        unsafe { (self.word(SIZES + number * WORD), self.word(SIZES + (self.dimensions() + number) * WORD)) }
    }

    /// The elements of an array of one dimension.
    pub fn elements(self) -> Elements<'v> {
        let dimensions = self.dimensions();
        let count = (0..dimensions).map(|number| self.dimension(number).0).product::<i32>();
        let end_of_head = SIZES + 2 * dimensions * WORD;
        // SAFETY: every array has that. The bitmap, if there is one, follows the dimensions; the data follow the bitmap.
        let (validity, offset) = match unsafe { self.word(DATA) } {
            0 => (std::ptr::null(), end_of_head.next_multiple_of(MAX_ALIGN)),
            offset => (self.start.wrapping_add(end_of_head), offset as usize),
        };
        Elements {
            start: self.start,
            layout: self.layout,
            offset,
            validity,
            next: 0,
            count: count as usize,
            valid: PhantomData,
        }
    }
}

/// The elements of one array, `None` for NULL.
pub struct Elements<'v> {
    /// That of the array.
    start: *const u8,
    layout: ElementLayout,
    /// How far behind it the next element that is not NULL lies.
    offset: usize,
    /// One bit for each element, 0 for NULL. A null pointer if no element is NULL.
    validity: *const u8,
    next: usize,
    count: usize,
    valid: PhantomData<&'v [u8]>,
}

impl<'v> Iterator for Elements<'v> {
    type Item = Option<Value<'v>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.count {
            return None;
        }
        let index = self.next;
        self.next += 1;
        // SAFETY: whoever made the array was promised one of this layout, which is valid for `'v`; an element is left. Elements are aligned as
        // seen from the array's start.
        unsafe {
            if !self.validity.is_null() && *self.validity.add(index / 8) >> (index % 8) & 1 == 0 {
                return Some(None);
            }
            let place = self.start.wrapping_add(self.offset);
            let length = match self.layout.length {
                -1 => varlena::size(place),
                -2 => CStr::from_ptr(place.cast::<c_char>()).to_bytes_with_nul().len(),
                fixed => fixed as usize,
            };
            self.offset = (self.offset + length).next_multiple_of(self.layout.alignment);
            // As `fetch_att`.
            let datum = match (self.layout.by_value, length) {
                (false, _) => pg_sys::Datum::from(place.cast_mut().cast::<std::ffi::c_void>()),
                (true, 1) => pg_sys::Datum::from(place.cast::<i8>().read()),
                (true, 2) => pg_sys::Datum::from(place.cast::<i16>().read_unaligned()),
                (true, 4) => pg_sys::Datum::from(place.cast::<i32>().read_unaligned()),
                (true, _) => pg_sys::Datum::from(place.cast::<i64>().read_unaligned()),
            };
            Some(Some(Value::of(datum)))
        }
    }
}
