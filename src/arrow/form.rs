//! What a column becomes on delivery. (Stand-in until the whole table of types is here.)

use arrow_cache_core::Profile;
use arrow_schema::{DataType, Field};

use super::column::{Column, Kind};

/// What a column becomes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// As it is stored.
    Stored(DataType),
    /// Its text.
    Text,
}

/// Why a column cannot be delivered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FormError {}

impl Form {
    /// What the column becomes.
    ///
    /// # Errors
    /// It cannot be delivered.
    pub fn of_column(column: &Column, _profile: &Profile) -> Result<Self, FormError> {
        Ok(match column.kind {
            Kind::FlatVarlena | Kind::FlatFixed | Kind::FlatCString => Self::Text,
            _ => Self::Stored(column.storage_type()),
        })
    }

    /// Its Arrow type.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Stored(stored) => stored.clone(),
            Self::Text => DataType::Utf8,
        }
    }

    /// Does it go out as it is stored?
    pub fn is_stored(&self) -> bool {
        matches!(self, Self::Stored(_))
    }

    /// What there is to know.
    pub fn note(&self) -> Option<String> {
        None
    }

    /// The field.
    pub fn field(&self, name: &str, _column: &Column) -> Field {
        Field::new(name, self.data_type(), true)
    }
}
