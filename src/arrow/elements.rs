//! The elements of an array one after the other, read in place (utils/array.h). No call into PostgreSQL, since arrays are met
//! once per value.

use std::ffi::{CStr, c_char};

use pgrx::pg_sys;

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
        // SAFETY: a catalog look-up; a type that is not there raises.
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

/// Size and lower bound of each dimension of an array.
///
/// # Safety
/// `array` must be a flat array that lives as long as the result.
pub unsafe fn dimensions<'a>(array: *const pg_sys::ArrayType) -> (&'a [i32], &'a [i32]) {
    // SAFETY: sizes and then lower bounds follow the head of an array.
    unsafe {
        let count = (*array).ndim as usize;
        std::slice::from_raw_parts(array.add(1).cast::<i32>(), 2 * count).split_at(count)
    }
}

/// The elements of one array, `None` for NULL.
pub struct Elements {
    layout: ElementLayout,
    /// Where the next element that is not NULL lies.
    place: *const u8,
    /// One bit for each element, 0 for NULL; null if there are none.
    validity: *const u8,
    next: usize,
    count: usize,
}

impl Elements {
    /// Starts before the first element of an array of one dimension.
    ///
    /// # Safety
    /// `array` must be such an array, flat and aligned, with elements of this layout. It must live and stay as it is as long
    /// as the result.
    pub unsafe fn new(array: *const pg_sys::ArrayType, layout: ElementLayout) -> Self {
        // SAFETY: as the caller promises. The bitmap, if there is one, follows the dimensions, then the data.
        unsafe {
            let (sizes, lower) = dimensions(array);
            let count = sizes.iter().product::<i32>();
            let end_of_head = lower.as_ptr_range().end.cast::<u8>();
            let start = array.cast::<u8>();
            // Data is aligned as seen from the array's start, which itself may be aligned to less.
            let (validity, place) = match (*array).dataoffset {
                0 => (std::ptr::null(), start.add(end_of_head.offset_from_unsigned(start).next_multiple_of(MAX_ALIGN))),
                offset => (end_of_head, start.add(offset as usize)),
            };
            Self { layout, place, validity, next: 0, count: count as usize }
        }
    }
}

impl Iterator for Elements {
    type Item = Option<pg_sys::Datum>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.count {
            return None;
        }
        let index = self.next;
        self.next += 1;
        // SAFETY: the array lives and has this layout, as the maker of this value promised; an element is left.
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
            // Behind the last element nothing may be left, so no pointer is made to what comes after its padding.
            let end = place.wrapping_add(length);
            self.place = end.wrapping_add(end.align_offset(self.layout.alignment));
            Some(Some(fetch(place, self.layout)))
        }
    }
}

/// The datum of the element at `place` (`fetch_att`).
///
/// # Safety
/// An element of this layout must lie there, aligned.
unsafe fn fetch(place: *const u8, layout: ElementLayout) -> pg_sys::Datum {
    if !layout.by_value {
        return pg_sys::Datum::from(place.cast_mut().cast::<std::ffi::c_void>());
    }
    // SAFETY: as the caller promises.
    unsafe {
        match layout.length {
            1 => pg_sys::Datum::from(place.cast::<i8>().read()),
            2 => pg_sys::Datum::from(place.cast::<i16>().read()),
            4 => pg_sys::Datum::from(place.cast::<i32>().read()),
            _ => pg_sys::Datum::from(place.cast::<i64>().read()),
        }
    }
}
