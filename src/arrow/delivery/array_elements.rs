//! The elements of an array one after the other, read in place (utils/array.h). No call into PostgreSQL, since an array is met
//! once per value.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

use pgrx::pg_sys;

use crate::pg::row::Value;
use crate::pg::varlena::Varlena;

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
        unsafe { pg_sys::get_typlenbyvalalign(element_type, &mut length, &mut by_value, &mut align) };
        let alignment = match align as u8 {
            pg_sys::TYPALIGN_CHAR => 1,
            pg_sys::TYPALIGN_SHORT => 2,
            pg_sys::TYPALIGN_INT => 4,
            _ => MAX_ALIGN,
        };
        Self { length, by_value, alignment }
    }
}

/// A flat array whose elements have a known layout, valid for `'v`.
#[derive(Clone, Copy)]
pub struct FlatArray<'v> {
    head: *const pg_sys::ArrayType,
    layout: ElementLayout,
    valid: PhantomData<&'v [u8]>,
}

impl<'v> FlatArray<'v> {
    /// The array that a value is, made flat if it is not.
    ///
    /// # Safety
    /// The value must be an array with elements of this layout.
    pub unsafe fn of(value: Value<'v>, layout: ElementLayout) -> Self {
        // SAFETY: arrays are of variable length.
        let flat = unsafe { Varlena::of(value) }.flat();
        Self { head: flat.cast_const().cast(), layout, valid: PhantomData }
    }

    /// Size and lower bound of each dimension.
    pub fn dimensions(self) -> (&'v [i32], &'v [i32]) {
        // SAFETY: sizes and then lower bounds follow the head of an array.
        unsafe {
            let count = (*self.head).ndim as usize;
            std::slice::from_raw_parts(self.head.add(1).cast::<i32>(), 2 * count).split_at(count)
        }
    }

    /// The elements of an array of one dimension.
    pub fn elements(self) -> Elements<'v> {
        let (sizes, lower) = self.dimensions();
        let count = sizes.iter().product::<i32>();
        let end_of_head = lower.as_ptr_range().end.cast::<u8>();
        let start = self.head.cast::<u8>();
        // SAFETY: the bitmap, if there is one, follows the dimensions; the data follow the bitmap. Data are aligned as seen from the
        // array's start, which itself may be aligned to less.
        let (validity, place) = unsafe {
            match (*self.head).dataoffset {
                0 => (std::ptr::null(), start.add(end_of_head.offset_from_unsigned(start).next_multiple_of(MAX_ALIGN))),
                offset => (end_of_head, start.add(offset as usize)),
            }
        };
        Elements { layout: self.layout, place, validity, next: 0, count: count as usize, valid: PhantomData }
    }
}

/// The elements of one array, `None` for NULL.
pub struct Elements<'v> {
    layout: ElementLayout,
    /// Where the next element that is not NULL lies.
    place: *const u8,
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
        // SAFETY: `FlatArray::of` was promised an array of this layout, which is valid for `'v`; an element is left.
        unsafe {
            if !self.validity.is_null() && *self.validity.add(index / 8) >> (index % 8) & 1 == 0 {
                return Some(None);
            }
            let place = self.place;
            let length = match self.layout.length {
                -1 => pgrx::varlena::varsize_any(place.cast()),
                -2 => CStr::from_ptr(place.cast::<c_char>()).to_bytes_with_nul().len(),
                fixed => fixed as usize,
            };
            // Nothing need be behind the last element, so no pointer is made to what comes after its padding.
            let end = place.wrapping_add(length);
            self.place = end.wrapping_add(end.align_offset(self.layout.alignment));
            // As `fetch_att`.
            let datum = match (self.layout.by_value, length) {
                (false, _) => pg_sys::Datum::from(place.cast_mut().cast::<std::ffi::c_void>()),
                (true, 1) => pg_sys::Datum::from(place.cast::<i8>().read()),
                (true, 2) => pg_sys::Datum::from(place.cast::<i16>().read()),
                (true, 4) => pg_sys::Datum::from(place.cast::<i32>().read()),
                (true, _) => pg_sys::Datum::from(place.cast::<i64>().read()),
            };
            Some(Some(Value::of(datum)))
        }
    }
}
