//! Row types: the server's descriptors of what the columns of a row are. Reading only.

use std::marker::PhantomData;
use std::ptr::NonNull;

use pgrx::pg_sys;

use super::compat::tuple_attribute;

/// The type of rows, valid for `'t`.
#[derive(Clone, Copy)]
pub struct RowType<'t> {
    descriptor: NonNull<pg_sys::TupleDescData>,
    valid: PhantomData<&'t pg_sys::TupleDescData>,
}

impl<'t> RowType<'t> {
    /// The row type of a descriptor.
    ///
    /// # Safety
    /// The descriptor must not be null. It must be valid, and changed by nobody, for `'t`.
    pub unsafe fn of(descriptor: pg_sys::TupleDesc) -> Self {
        // SAFETY: the caller promises that it is not null.
        Self { descriptor: unsafe { NonNull::new_unchecked(descriptor) }, valid: PhantomData }
    }

    /// As the server knows it.
    pub fn as_ptr(self) -> pg_sys::TupleDesc {
        self.descriptor.as_ptr()
    }

    /// How many attributes it has, dropped ones included.
    pub fn len(self) -> usize {
        // SAFETY: `of` was promised that the descriptor is valid.
        unsafe { (*self.as_ptr()).natts as usize }
    }

    /// An attribute, by its number from 0; `None` if it has fewer.
    pub fn attribute(self, index: usize) -> Option<&'t pg_sys::FormData_pg_attribute> {
        // SAFETY: the descriptor is valid and has that many attributes.
        (index < self.len()).then(|| unsafe { &*tuple_attribute(self.as_ptr(), index) })
    }

    /// The attributes in their order, dropped ones included.
    pub fn attributes(self) -> impl Iterator<Item = &'t pg_sys::FormData_pg_attribute> {
        (0..self.len()).filter_map(move |index| self.attribute(index))
    }
}

/// The types of the columns of a named row type.
pub fn columns_of(row_type: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: the descriptor is reference counted and released below; nothing in between raises.
    unsafe {
        let descriptor = kept!(pg_sys::lookup_rowtype_tupdesc(row_type, -1));
        let types = RowType::of(descriptor)
            .attributes()
            .filter(|column| !column.attisdropped)
            .map(|column| column.atttypid)
            .collect();
        if (*descriptor).tdrefcount >= 0 {
            kept!(pg_sys::DecrTupleDescRefCount(descriptor));
        }
        types
    }
}
