//! Values as text: output functions, labels of enums, names of the catalog. All in UTF-8.

use std::collections::HashMap;
use std::ffi::CStr;
use std::ops::Range;
use std::rc::Rc;

use arrow_cache_core::{OutOfMemory, Room, RoomyVec};
use pgrx::pg_sys;

use crate::arrow::column::is_utf8;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::enum_catalog::read_labels;
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
            pg_sys::getTypeOutputInfo(type_oid, &mut oid, &mut is_varlena);
            pg_sys::fmgr_info(oid, &mut *function);
        }
        Self { function }
    }

    /// The text of a value of the type. What is made for it is left in the current memory context.
    pub fn text<'v>(&mut self, value: Value<'v>) -> &'v [u8] {
        // SAFETY: the value is of the function's type; the text ends with a NUL, and lives as long as the value and the memory context.
        unsafe { utf8(CStr::from_ptr(pg_sys::OutputFunctionCall(&mut *self.function, value.datum()))) }
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
        CStr::from_ptr(pg_sys::pg_server_to_any(text.as_ptr(), length, pg_sys::pg_enc::PG_UTF8 as i32)).to_bytes()
    }
}

/// Where the labels of enums come from.
#[derive(Clone)]
pub enum LabelSource {
    /// The type's output function, which remembers them in this backend.
    Remembered,
    /// The catalog as it was when these were read: for what others get, too. In a database in UTF-8.
    Catalog(Rc<[(pg_sys::Oid, ReadLabels)]>),
}

/// The labels of one enum, by its values.
#[derive(Default)]
pub struct ReadLabels {
    text: Vec<u8>,
    places: HashMap<u32, Range<usize>>,
}

impl ReadLabels {
    /// Those of this enum, as its catalog has them now. Raises what reading a catalog raises.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn read(type_oid: pg_sys::Oid) -> Result<Self, OutOfMemory> {
        let mut labels = Self::default();
        read_labels(type_oid, |value, label| labels.add(value, label).map(|_| ()))?;
        Ok(labels)
    }

    /// Notes the label of a value; returns its place.
    fn add(&mut self, value: u32, label: &[u8]) -> Result<Range<usize>, OutOfMemory> {
        let start = self.text.len();
        self.text.add_all(label)?;
        self.places.make_room(1)?;
        self.places.insert(value, start..self.text.len());
        Ok(start..self.text.len())
    }

    fn copy(&self) -> Result<Self, OutOfMemory> {
        let mut places = HashMap::new();
        places.make_room(self.places.len())?;
        places.extend(self.places.iter().map(|(value, place)| (*value, place.clone())));
        Ok(Self { text: Vec::copy_of(&self.text)?, places })
    }
}

/// The labels of an enum, each made once.
pub struct Labels {
    output: OutputFunction,
    known: ReadLabels,
    /// The last value, and where its label is: equal values often follow each other.
    last: (u32, Range<usize>),
}

impl Labels {
    /// The labels of this enum. As for `OutputFunction::new`.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn new(type_oid: pg_sys::Oid, source: &LabelSource) -> Result<Self, OutOfMemory> {
        let known = match source {
            LabelSource::Catalog(read) => read.iter().find(|(of, _)| *of == type_oid).map(|(_, labels)| labels.copy()),
            LabelSource::Remembered => None,
        };
        let known = known.transpose()?.unwrap_or_default();
        Ok(Self { output: OutputFunction::new(type_oid), known, last: (0, 0..0) })
    }

    /// The label of a value of the enum.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn label(&mut self, value: Value<'_>) -> Result<&[u8], OutOfMemory> {
        let number = value.word() as u32;
        // No value of an enum is 0.
        if number != self.last.0 {
            let place = match self.known.places.get(&number) {
                Some(place) => place.clone(),
                None => {
                    let label = self.output.text(value);
                    self.known.add(number, label)?
                }
            };
            self.last = (number, place);
        }
        Ok(&self.known.text[self.last.1.clone()])
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
