//! Values into the arrays that are delivered. (Stand-in until the whole table of types is here.)

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::StringBuilder;
use pgrx::pg_sys;

use super::column::Column;
use super::form::Form;

/// Why a value cannot be delivered.
#[derive(Debug)]
pub struct Unrepresentable {}

/// Builds one array.
pub struct Converter {
    output: pg_sys::Oid,
    text: StringBuilder,
}

impl Converter {
    /// For values of the column.
    pub fn new(column: &Column, _form: &Form) -> Self {
        let (mut output, mut varlena) = (pg_sys::InvalidOid, false);
        // SAFETY: a catalog look-up of a type that a column has.
        unsafe { pg_sys::getTypeOutputInfo(column.type_oid, &mut output, &mut varlena) };
        Self { output, text: StringBuilder::new() }
    }

    /// Adds a value.
    ///
    /// # Safety
    /// It must be of the column's type.
    pub unsafe fn append(&mut self, datum: pg_sys::Datum, is_null: bool) -> Result<(), Unrepresentable> {
        if is_null {
            self.text.append_null();
        } else {
            // SAFETY: as the caller promises.
            unsafe {
                let out = pg_sys::OidOutputFunctionCall(self.output, datum);
                self.text.append_value(CStr::from_ptr(out).to_string_lossy());
            }
        }
        Ok(())
    }

    /// What was added.
    pub fn finish(&mut self) -> ArrayRef {
        Arc::new(self.text.finish())
    }
}
