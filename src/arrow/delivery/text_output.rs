//! Values as text: output functions, labels of enums, names of the catalog. All in UTF-8.

use std::collections::HashMap;
use std::ffi::CStr;
use std::ops::Range;
use std::rc::Rc;

use arrow_cache_core::{OutOfMemory, Room, RoomyVec};
use pgrx::pg_sys;

use crate::arrow::column::is_utf8;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::enum_catalog::CatalogLabels;
use crate::pg::row::Value;

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
        let (mut oid, mut is_varlena) = (pg_sys::InvalidOid, false);
        // SAFETY: asks the catalog; a type that is not there raises.
        unsafe {
            kept!(pg_sys::getTypeOutputInfo(type_oid, &mut oid, &mut is_varlena));
            kept!(pg_sys::fmgr_info(oid, &mut *function));
        }
        Self { function }
    }

    /// The text of a value of the type. What is made for it is left in the current memory context.
    pub fn text<'v>(&mut self, value: Value<'v>) -> &'v [u8] {
        // SAFETY: the value is of the function's type; the text ends with a NUL, and lives as long as the value and the memory context.
        unsafe { utf8(CStr::from_ptr(kept!(pg_sys::OutputFunctionCall(&mut *self.function, value.datum())))) }
    }
}

/// Text of the database as UTF-8: itself, or a copy in the current memory context.
fn utf8(text: &CStr) -> &[u8] {
    if is_utf8() {
        return text.to_bytes();
    }
    let length = text.to_bytes().len() as i32;
    // SAFETY: the conversion reads as many bytes as it is told; what it makes ends with a NUL.
    unsafe {
        CStr::from_ptr(kept!(pg_sys::pg_server_to_any(text.as_ptr(), length, pg_sys::pg_enc::PG_UTF8 as i32)))
            .to_bytes()
    }
}

/// The labels of some enums, by their types.
type LabelsByEnum = Rc<[(pg_sys::Oid, CatalogLabels)]>;

/// Labels as the catalog had them when they were read: for what others get, too, in a database in UTF-8. Without them
/// the output functions give labels, which this backend remembers.
pub type LabelSource = Option<LabelsByEnum>;

/// The labels of an enum.
pub struct Labels {
    /// Those that were read from the catalog, and which of them are the enum's.
    read: Option<(LabelsByEnum, usize)>,
    made: MadeLabels,
}

impl Labels {
    /// The labels of this enum. As for `OutputFunction::new`.
    pub fn new(type_oid: pg_sys::Oid, source: &LabelSource) -> Self {
        let read = source.as_ref().and_then(|read| {
            let place = read.iter().position(|(of, _)| *of == type_oid)?;
            Some((Rc::clone(read), place))
        });
        let output = OutputFunction::new(type_oid);
        Self { read, made: MadeLabels { output, places: HashMap::new(), text: Vec::new(), last: (0, 0..0) } }
    }

    /// The label of a value of the enum.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn label(&mut self, value: Value<'_>) -> Result<&[u8], OutOfMemory> {
        let read = self.read.as_ref().and_then(|(all, place)| all[*place].1.get(value.word() as u32));
        read.map_or_else(|| self.made.label(value), Ok)
    }
}

/// The labels that the output function of an enum has made, each once.
struct MadeLabels {
    output: OutputFunction,
    text: Vec<u8>,
    /// Where the label of each value is.
    places: HashMap<u32, Range<usize>>,
    /// The last value, and where its label is: equal values often follow each other.
    last: (u32, Range<usize>),
}

impl MadeLabels {
    fn label(&mut self, value: Value<'_>) -> Result<&[u8], OutOfMemory> {
        let number = value.word() as u32;
        // No value of an enum is 0.
        if number != self.last.0 {
            let place = match self.places.get(&number) {
                Some(place) => place.clone(),
                None => {
                    let start = self.text.len();
                    self.text.add_all(self.output.text(value))?;
                    self.places.make_room(1)?;
                    self.places.insert(number, start..self.text.len());
                    start..self.text.len()
                }
            };
            self.last = (number, place);
        }
        Ok(&self.text[self.last.1.clone()])
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
    String::from_utf8_lossy(utf8(unsafe { CStr::from_ptr(name.data.as_ptr()) })).into_owned()
}
