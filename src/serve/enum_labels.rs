//! The labels of enums that are columns of an answer, read for a rendition. The output function of an enum takes labels
//! from the caches of this backend, which may not have heard of a change that the entry already has. That lasts for a
//! moment only, but a rendition would keep it. So the catalog is asked, under a snapshot of its own: who renames a
//! label outdates all entries with the enum before the new label can be seen (docs/architecture/exactness.md). State of
//! one run of this backend.

use arrow_cache_core::{OutOfMemory, RoomyVec};
use pgrx::pg_sys;

use crate::arrow::column::{Column, Kind};
use crate::pg::enum_catalog::CatalogLabels;

/// The labels of some columns.
#[derive(Default)]
pub struct EnumLabels {
    /// For each column of the answer, up to the last one that is an enum, which of the enums it is.
    places: Vec<Option<usize>>,
    enums: Vec<(pg_sys::Oid, CatalogLabels)>,
}

/// Returns true if the column is an enum, or a domain over one.
pub fn is_enum(column: &Column) -> bool {
    // SAFETY: a catalog look-up by OID, in a transaction; it gives nothing for types that are not there.
    column.kind == Kind::FlatFixed && unsafe { kept!(pg_sys::type_is_enum(column.base_type)) }
}

impl EnumLabels {
    /// Those of all columns that are enums, as they are now. Raises what reading a catalog raises.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn of(columns: &[Column]) -> Result<Self, OutOfMemory> {
        let mut labels = Self::default();
        for (index, column) in columns.iter().enumerate().filter(|(_, column)| is_enum(column)) {
            let known = labels.enums.iter().position(|(known, _)| *known == column.base_type);
            let place = match known {
                Some(place) => place,
                None => {
                    labels.enums.add((column.base_type, CatalogLabels::read(column.base_type)?))?;
                    labels.enums.len() - 1
                }
            };
            labels.places.lengthen(index + 1, None)?;
            labels.places[index] = Some(place);
        }
        Ok(labels)
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.enums.is_empty()
    }

    /// Returns true if the labels of this column are here.
    pub fn has(&self, column: usize) -> bool {
        self.places.get(column).is_some_and(Option::is_some)
    }

    /// The label of a value of a column, in the encoding of the database. `None` if there is none.
    pub fn label(&self, column: usize, value: u32) -> Option<&[u8]> {
        self.enums[(*self.places.get(column)?)?].1.get(value)
    }
}
