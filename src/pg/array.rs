//! Arrays and their elements (utils/array.h). Nothing is kept.

use std::ffi::c_char;

use pgrx::pg_sys;

use super::row::Value;
use super::varlena::Varlena;

/// How the elements of an array type lie in its values.
#[derive(Clone, Copy)]
pub struct ElementType {
    type_oid: pg_sys::Oid,
    length: i16,
    by_value: bool,
    alignment: c_char,
}

impl ElementType {
    /// That of elements of this type. Raises if it is not there.
    pub fn of(type_oid: pg_sys::Oid) -> Self {
        let (mut length, mut by_value, mut alignment) = (0, false, 0);
        // SAFETY: asks the catalog.
        unsafe { kept!(pg_sys::get_typlenbyvalalign(type_oid, &mut length, &mut by_value, &mut alignment)) };
        Self { type_oid, length, by_value, alignment }
    }
}

/// An array that is flat and uncompressed.
#[derive(Clone, Copy)]
pub struct Array<'v>(&'v pg_sys::ArrayType);

impl<'v> Array<'v> {
    /// The array that a value is, detoasted into the current memory context if necessary.
    ///
    /// # Safety
    /// The value must be an array.
    pub unsafe fn of(value: Value<'v>) -> Self {
        // SAFETY: the caller vouches for the value.
        unsafe { Self(&*Varlena::of(value).flat().cast_const().cast()) }
    }

    /// Size and lower bound of each dimension.
    pub fn dimensions(self) -> impl ExactSizeIterator<Item = (i32, i32)> {
        let count = self.0.ndim as usize;
        // SAFETY: behind the header of an array come the sizes of its dimensions, and then their lower bounds
        // (utils/array.h).
        let words = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self.0).add(1).cast::<i32>(), 2 * count) };
        (0..count).map(move |number| (words[number], words[count + number]))
    }

    /// The type of the elements.
    pub fn element_type(self) -> pg_sys::Oid {
        self.0.elemtype
    }

    /// The elements one after the other, `None` for NULL. What tells where they are is made in the current memory
    /// context.
    ///
    /// # Safety
    /// The array must have elements of this type.
    pub unsafe fn elements(self, of: ElementType) -> impl Iterator<Item = Option<Value<'v>>> {
        let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
        let array = std::ptr::from_ref(self.0).cast_mut();
        // SAFETY: the caller vouches for the type. The server makes both lists, and the values lie in the array.
        unsafe {
            let (values, nulls, count) = (&raw mut values, &raw mut nulls, &raw mut count);
            let ElementType { type_oid, length, by_value, alignment } = of;
            kept!(pg_sys::deconstruct_array(array, type_oid, length.into(), by_value, alignment, values, nulls, count));
        }
        (0..count as usize).map(move |place| {
            // SAFETY: as above; both lists are as long.
            unsafe { (!*nulls.add(place)).then(|| Value::of(*values.add(place))) }
        })
    }
}
