//! Values as text: output functions, names of the catalog. All in UTF-8.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::arrow::column::is_utf8;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::row::Value;
use crate::pg::type_catalog::output_function;

/// The output function of a type, found once.
pub struct OutputFunction {
    /// Boxed, since functions keep pointers to it.
    function: Box<pg_sys::FmgrInfo>,
}

impl OutputFunction {
    /// Finds the output function of a type that a running query has. The current memory context must outlive the
    /// result.
    pub fn new(type_oid: pg_sys::Oid) -> Self {
        let mut function = Box::<pg_sys::FmgrInfo>::default();
        // SAFETY: asks the catalog about a function that is there.
        unsafe { kept!(pg_sys::fmgr_info(output_function(type_oid), &mut *function)) };
        Self { function }
    }

    /// The text of a value of the type. What is made for it is left in the current memory context.
    pub fn text<'v>(&mut self, value: Value<'v>) -> &'v [u8] {
        // SAFETY: the value is of the function's type; the text ends with a NUL, and lives as long as the value and the
        // memory context.
        unsafe {
            utf8(CStr::from_ptr(kept!(pg_sys::OutputFunctionCall(&mut *self.function, value.datum()))).to_bytes())
        }
    }
}

/// Text of the database as UTF-8: itself, or a copy in the current memory context.
pub fn utf8(text: &[u8]) -> &[u8] {
    if is_utf8() {
        return text;
    }
    let length = text.len() as i32;
    // SAFETY: the conversion reads as many bytes as it is told. It gives them back if there is nothing to convert, else
    // a copy that ends with a NUL.
    unsafe {
        let (start, utf8) = (text.as_ptr().cast(), pg_sys::pg_enc::PG_UTF8 as i32);
        let converted = kept!(pg_sys::pg_server_to_any(start, length, utf8));
        if std::ptr::eq(converted, start) { text } else { CStr::from_ptr(converted).to_bytes() }
    }
}

/// Name of a type in the catalog (`int4`, `_text`), as other Arrow drivers for PostgreSQL give it.
pub fn type_name(type_oid: pg_sys::Oid) -> String {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::TYPEOID, type_oid);
    let row = row.as_ref().and_then(CatalogRow::data_type);
    row.map_or_else(|| "unknown".to_owned(), |row| name(&row.typname))
}

/// A name of the catalog.
pub fn name(name: &pg_sys::NameData) -> String {
    // SAFETY: names end with a NUL.
    String::from_utf8_lossy(utf8(unsafe { CStr::from_ptr(name.data.as_ptr()) }.to_bytes())).into_owned()
}
