//! Values as text: output functions, labels of enums, names of the catalog. All in UTF-8.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::ops::Range;

use arrow_cache_core::{OutOfMemory, Room, RoomyVec};
use pgrx::pg_sys;

use super::column::is_utf8;

/// The output function of a type, looked up once.
pub struct OutputFunction {
    /// In a place of its own, since functions keep pointers to it.
    function: Box<pg_sys::FmgrInfo>,
}

impl OutputFunction {
    /// Looks up the output function of a type that a running query has. The current memory context must outlive the
    /// result.
    pub fn new(type_oid: pg_sys::Oid) -> Self {
        let mut function = Box::<pg_sys::FmgrInfo>::default();
        let (mut oid, mut is_varlena) = (pg_sys::InvalidOid, false);
        // SAFETY: catalog look-ups; a type that is not there raises.
        unsafe {
            pg_sys::getTypeOutputInfo(type_oid, &mut oid, &mut is_varlena);
            pg_sys::fmgr_info(oid, &mut *function);
        }
        Self { function }
    }

    /// The text of a value.
    ///
    /// # Safety
    /// `datum` must be a value of the type. The text lives as long as the value and the current memory context.
    pub unsafe fn text<'a>(&mut self, datum: pg_sys::Datum) -> &'a [u8] {
        // SAFETY: as the caller promises; the text ends with a NUL.
        unsafe { utf8(pg_sys::OutputFunctionCall(&mut *self.function, datum)) }
    }
}

/// Text of the database as UTF-8: itself, or a copy in the current memory context.
///
/// # Safety
/// `text` must end with a NUL. The result lives as long as the text and the current memory context.
unsafe fn utf8<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: as the caller promises; what the conversion makes ends with a NUL too.
    unsafe {
        let plain = CStr::from_ptr(text);
        if is_utf8() {
            return plain.to_bytes();
        }
        let length = plain.to_bytes().len() as i32;
        CStr::from_ptr(pg_sys::pg_server_to_any(text, length, pg_sys::pg_enc::PG_UTF8 as i32)).to_bytes()
    }
}

/// The labels of an enum, each made once.
pub struct Labels {
    output: OutputFunction,
    text: Vec<u8>,
    places: HashMap<u32, Range<usize>>,
    /// The value before, and where its label is: values often come in runs.
    last: (u32, Range<usize>),
}

impl Labels {
    /// The labels of this enum. As for `OutputFunction::new`.
    pub fn new(type_oid: pg_sys::Oid) -> Self {
        Self { output: OutputFunction::new(type_oid), text: Vec::new(), places: HashMap::new(), last: (0, 0..0) }
    }

    /// The label of a value.
    ///
    /// # Errors
    /// There is no memory for it.
    ///
    /// # Safety
    /// `datum` must be a value of the enum.
    pub unsafe fn label(&mut self, datum: pg_sys::Datum) -> Result<&[u8], OutOfMemory> {
        let value = datum.value() as u32;
        // No value of an enum is 0.
        if value != self.last.0 {
            let place = match self.places.get(&value) {
                Some(place) => place.clone(),
                None => {
                    let start = self.text.len();
                    // SAFETY: as the caller promises; the text is copied at once.
                    self.text.add_all(unsafe { self.output.text(datum) })?;
                    self.places.make_room(1)?;
                    self.places.insert(value, start..self.text.len());
                    start..self.text.len()
                }
            };
            self.last = (value, place);
        }
        Ok(&self.text[self.last.1.clone()])
    }
}

/// Name of a type in the catalog (`int4`, `_text`), as other Arrow drivers for PostgreSQL give it.
pub fn type_name(type_oid: pg_sys::Oid) -> String {
    // SAFETY: a catalog look-up; the tuple is read before it is released.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::TYPEOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(type_oid));
        if tuple.is_null() {
            return "unknown".to_owned();
        }
        let row: *mut pg_sys::FormData_pg_type = pg_sys::heap_tuple_get_struct(tuple);
        let name = name(&(*row).typname);
        pg_sys::ReleaseSysCache(tuple);
        name
    }
}

/// A name of the catalog.
pub fn name(name: &pg_sys::NameData) -> String {
    // SAFETY: names end with a NUL; the conversion's copy is read at once.
    unsafe { String::from_utf8_lossy(utf8(name.data.as_ptr())).into_owned() }
}
