//! The labels of an enum as its catalog has them now. The caches of this backend, from which the type's output function
//! takes them, may not have heard of a change yet. Nothing is kept.

use std::ops::Range;

use arrow_cache_core::{OutOfMemory, RoomyVec};
use pgrx::pg_sys;

use super::catalog_scan::{self, Catalog, Rows};

/// The labels of one enum, as a snapshot saw them that was taken to read them.
#[derive(Default, PartialEq, Hash, Debug)]
pub struct CatalogLabels {
    /// The values in ascending order, and where the label of each is.
    values: Vec<(u32, Range<usize>)>,
    text: Vec<u8>,
}

impl CatalogLabels {
    /// Those of this enum, as its catalog has them now. Raises what reading a catalog raises.
    ///
    /// # Errors
    /// There is no memory for them, or no room for the locks.
    pub fn read(enum_type: pg_sys::Oid) -> Result<Self, OutOfMemory> {
        let mut labels = Self::default();
        read_labels(enum_type, |value, label| labels.add(value, label))?;
        labels.values.sort_unstable_by_key(|(value, _)| *value);
        Ok(labels)
    }

    fn add(&mut self, value: u32, label: &[u8]) -> Result<(), OutOfMemory> {
        let start = self.text.len();
        self.text.add_all(label)?;
        self.values.add((value, start..self.text.len()))
    }

    /// The label of a value, in the encoding of the database. `None` if there is none.
    pub fn get(&self, value: u32) -> Option<&[u8]> {
        let found = self.values.binary_search_by_key(&value, |(value, _)| *value).ok()?;
        Some(&self.text[self.values[found].1.clone()])
    }
}

/// Gives each value of an enum and its label, in the encoding of the database, to `add`, as a snapshot sees them that
/// is taken now. Stops at an error of `add`. Raises what reading a catalog raises.
///
/// # Errors
/// Those of `add`; there is no room for the locks.
fn read_labels(
    enum_type: pg_sys::Oid,
    mut add: impl FnMut(u32, &[u8]) -> Result<(), OutOfMemory>,
) -> Result<(), OutOfMemory> {
    const LABELS: Catalog = Catalog {
        table: pg_sys::EnumRelationId,
        index: pg_sys::EnumTypIdLabelIndexId,
        column: pg_sys::Anum_pg_enum_enumtypid,
    };
    let mut read = Ok(());
    // SAFETY: the index begins with the type. Rows have the layout of their catalog.
    unsafe {
        // Scans of catalogs then take a new snapshot.
        kept!(pg_sys::InvalidateCatalogSnapshot());
        let scanned = catalog_scan::scan(LABELS, Rows::With(enum_type), |row, _columns| {
            let row = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_enum>();
            read = add(row.oid.to_u32(), std::ffi::CStr::from_ptr(row.enumlabel.data.as_ptr()).to_bytes());
            read.is_ok()
        });
        read.and(scanned.ok_or(OutOfMemory))
    }
}
