//! What each column is delivered as: a pure function of its type and of the options, never of the data.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_cache_core::formats::decimal::MAX_PRECISION;
use arrow_cache_core::{ExtensionTypes, IntervalAs, NumericAs, OnUnrepresentable, Profile};
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};
use pgrx::pg_sys;

pub use arrow_cache_core::FormError;

use super::column::{Column, Kind};
use super::output;
use crate::pg::compat::tuple_attribute;

/// Arrays and row types that may lie inside each other; deeper ones are text, since readers have limits of their own.
const MAX_DEPTH: u32 = 16;
/// Precision and scale of a numeric without a modifier, as a decimal.
const PLAIN_DECIMAL: (u8, u8) = (MAX_PRECISION, 9);
/// Bytes in front of the modifier that a numeric's precision and scale are packed into (`VARHDRSZ`).
const TYPMOD_OFFSET: i32 = 4;

/// How the values of a column, of an array's elements or of a row's attribute are delivered.
#[derive(Clone, PartialEq, Debug)]
pub enum Form {
    /// As they are stored, in this Arrow type.
    Stored(DataType),
    /// The text that the type's output function gives.
    Text,
    /// The label of an enum.
    Label,
    /// The text of a `"char"`.
    CharByte,
    /// A numeric as a decimal of 128 bits.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// A numeric as a float.
    Float64,
    /// An interval as months, days and nanoseconds.
    MonthDayNano,
    /// An array of one dimension, with the form of its elements.
    List(Box<Child>),
    /// A row, with the form of each attribute.
    Struct(Vec<Child>),
}

/// A part of a value: an array's element, or one attribute of a row.
#[derive(Clone, PartialEq, Debug)]
pub struct Child {
    /// Number of the attribute in its row type, from 0; dropped ones count.
    pub place: usize,
    /// Its Arrow field.
    pub field: FieldRef,
    /// Its PostgreSQL type.
    pub column: Column,
    /// Its form.
    pub form: Form,
}

/// Room for parts of columns in the schema of one result. Row types can hold each other many times over: a column for which
/// there is no room is delivered as text.
#[derive(Clone, Copy, Debug)]
pub struct Room(u32);

impl Room {
    /// Parts that there is room for in one result.
    pub const PARTS: usize = 4096;
    /// That of one result.
    pub const WHOLE: Self = Self(Self::PARTS as u32);

    fn take(&mut self) -> Result<(), Stop> {
        self.0 = self.0.checked_sub(1).ok_or(Stop::NoRoom)?;
        Ok(())
    }
}

/// Why a form is not made.
enum Stop {
    Error(FormError),
    NoRoom,
}

impl Form {
    /// The form of a column, which takes of the result's room.
    ///
    /// # Errors
    /// `Precision` when decimals are asked for and a numeric of the column has too many digits.
    pub fn of_column(column: &Column, profile: &Profile, room: &mut Room) -> Result<Self, FormError> {
        let before = *room;
        match Self::at_depth(column, profile, room, 0) {
            Ok(form) => Ok(form),
            Err(Stop::Error(error)) => Err(error),
            Err(Stop::NoRoom) => {
                *room = before;
                Ok(Self::Text)
            }
        }
    }

    fn at_depth(column: &Column, profile: &Profile, room: &mut Room, depth: u32) -> Result<Self, Stop> {
        match column.kind {
            Kind::Numeric => of_numeric(column.base_typmod, profile).map_err(Stop::Error),
            Kind::Timestamp | Kind::TimestampTz if profile.on_unrepresentable == OnUnrepresentable::Text => {
                Ok(Self::Text)
            }
            Kind::FlatVarlena | Kind::FlatFixed | Kind::FlatCString => of_flat(column, profile, room, depth),
            _ => Ok(Self::Stored(column.storage_type())),
        }
    }

    /// The Arrow type.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Stored(data_type) => data_type.clone(),
            Self::Text | Self::Label | Self::CharByte => DataType::Utf8,
            Self::Decimal { precision, scale } => DataType::Decimal128(*precision, scale.cast_signed()),
            Self::Float64 => DataType::Float64,
            Self::MonthDayNano => DataType::Interval(IntervalUnit::MonthDayNano),
            Self::List(element) => DataType::List(element.field.clone()),
            Self::Struct(attributes) => {
                DataType::Struct(attributes.iter().map(|attribute| attribute.field.clone()).collect::<Fields>())
            }
        }
    }

    /// Do the stored bytes go out as they are?
    pub fn is_stored(&self) -> bool {
        matches!(self, Self::Stored(_))
    }

    /// What a user should know of the form.
    pub fn note(&self) -> Option<String> {
        let note = match self {
            Self::Stored(DataType::Date32) => "the infinities are the largest number of days and its negative",
            Self::Stored(DataType::Timestamp(TimeUnit::Microsecond, _)) => {
                "the infinities are the largest number and its negative; an error from 294247-01-10 on"
            }
            Self::Stored(DataType::Time64(_)) => "24:00:00 is 86400000000, which some readers refuse",
            Self::Stored(_) | Self::Label => return None,
            Self::Text => "the type's text, under fixed settings",
            Self::CharByte => "a byte above 127 as a backslash and three octal digits",
            Self::Decimal { .. } => "an error for NaN, the infinities and numbers of more digits",
            Self::Float64 => "an error for numbers that the shortest text of a float does not show",
            Self::MonthDayNano => "an error for more than 292 years in hours, minutes and seconds",
            Self::List(_) => "an error for several dimensions or a lower bound other than 1",
            Self::Struct(_) => "the row's attributes",
        };
        Some(note.to_owned())
    }

    /// The Arrow field of a column that has this form.
    pub fn field(&self, name: &str, column: &Column, profile: &Profile) -> Field {
        let mut metadata = HashMap::from([("POSTGRESQL:type".to_owned(), output::type_name(column.type_oid))]);
        if column.kind == Kind::Numeric && column.base_typmod >= 0 {
            metadata.insert("POSTGRESQL:typmod".to_owned(), column.base_typmod.to_string());
        }
        if profile.extension_types == ExtensionTypes::Canonical
            && let Some(extension) = extension_name(column.base_type)
        {
            metadata.insert(EXTENSION_TYPE_NAME_KEY.to_owned(), extension.to_owned());
            metadata.insert(EXTENSION_TYPE_METADATA_KEY.to_owned(), String::new());
        }
        Field::new(name, self.data_type(), true).with_metadata(metadata)
    }
}

/// The extension type of the Arrow specification that a type's form is.
fn extension_name(type_oid: pg_sys::Oid) -> Option<&'static str> {
    match type_oid {
        pg_sys::UUIDOID => Some("arrow.uuid"),
        pg_sys::JSONOID | pg_sys::JSONBOID => Some("arrow.json"),
        _ => None,
    }
}

fn of_numeric(typmod: i32, profile: &Profile) -> Result<Form, FormError> {
    if profile.on_unrepresentable == OnUnrepresentable::Text {
        return Ok(Form::Stored(DataType::Utf8));
    }
    match profile.numeric {
        NumericAs::Text => Ok(Form::Stored(DataType::Utf8)),
        NumericAs::Float64 => Ok(Form::Float64),
        NumericAs::Decimal128 => {
            let (precision, scale) = decimal_of(typmod)?;
            Ok(Form::Decimal { precision, scale })
        }
    }
}

/// Precision and scale of the decimal that holds every finite number of a numeric type.
fn decimal_of(typmod: i32) -> Result<(u8, u8), FormError> {
    if typmod < TYPMOD_OFFSET {
        return Ok(PLAIN_DECIMAL);
    }
    let packed = typmod - TYPMOD_OFFSET;
    let precision = (packed >> 16) & 0xffff;
    // Eleven bits of two's complement (numeric.c, `numeric_typmod_scale`).
    let scale = ((packed & 0x7ff) ^ 1024) - 1024;
    let digits = if scale < 0 { precision - scale } else { precision.max(scale) };
    match u8::try_from(digits) {
        Ok(digits) if digits <= MAX_PRECISION => Ok((digits, scale.max(0) as u8)),
        _ => Err(FormError::Precision(digits.unsigned_abs())),
    }
}

fn of_flat(column: &Column, profile: &Profile, room: &mut Room, depth: u32) -> Result<Form, Stop> {
    let lenient = profile.on_unrepresentable == OnUnrepresentable::Text;
    match column.base_type {
        pg_sys::CHAROID => return Ok(Form::CharByte),
        pg_sys::INTERVALOID if profile.interval == IntervalAs::MonthDayNano && !lenient => {
            return Ok(Form::MonthDayNano);
        }
        _ => {}
    }
    // SAFETY: catalog look-ups by OID; they find nothing for an unknown type.
    unsafe {
        let element = pg_sys::get_element_type(column.base_type);
        if element != pg_sys::InvalidOid {
            if lenient || depth >= MAX_DEPTH {
                return Ok(Form::Text);
            }
            return of_array(column, element, profile, room, depth);
        }
        match pg_sys::get_typtype(column.base_type) as u8 {
            pg_sys::TYPTYPE_ENUM => Ok(Form::Label),
            pg_sys::TYPTYPE_COMPOSITE if depth < MAX_DEPTH => of_row(column, profile, room, depth),
            _ => Ok(Form::Text),
        }
    }
}

/// # Safety
/// The column must be one of arrays with elements of that type.
unsafe fn of_array(
    array: &Column,
    element: pg_sys::Oid,
    profile: &Profile,
    room: &mut Room,
    depth: u32,
) -> Result<Form, Stop> {
    room.take()?;
    // SAFETY: as the caller promises.
    unsafe {
        let (mut length, mut by_value) = (0, false);
        pg_sys::get_typlenbyval(element, &mut length, &mut by_value);
        let column = Column::new(element, array.base_typmod, length, by_value);
        let form = Form::at_depth(&column, profile, room, depth + 1)?;
        let field = Arc::new(form.field("item", &column, profile));
        Ok(Form::List(Box::new(Child { place: 0, field, column, form })))
    }
}

/// # Safety
/// The column must be one of a composite type.
unsafe fn of_row(row: &Column, profile: &Profile, room: &mut Room, depth: u32) -> Result<Form, Stop> {
    // SAFETY: as the caller promises; the copy of the row type lives in the current memory context.
    unsafe {
        let descriptor = pg_sys::lookup_rowtype_tupdesc_copy(row.base_type, row.base_typmod);
        let mut children = Vec::new();
        for place in 0..(*descriptor).natts as usize {
            let attribute = &*tuple_attribute(descriptor, place);
            if attribute.attisdropped {
                continue;
            }
            room.take()?;
            let column = Column::new(attribute.atttypid, attribute.atttypmod, attribute.attlen, attribute.attbyval);
            let form = Form::at_depth(&column, profile, room, depth + 1)?;
            let field = Arc::new(form.field(&output::name(&attribute.attname), &column, profile));
            children.push(Child { place, field, column, form });
        }
        pg_sys::FreeTupleDesc(descriptor);
        Ok(Form::Struct(children))
    }
}
