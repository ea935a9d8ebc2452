//! The type that each column is delivered as: a pure function of its PostgreSQL type and of the options, never of the
//! data.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use arrow_cache_core::formats::decimal::MAX_PRECISION;
use arrow_cache_core::{ExtensionTypes, IntervalAs, NumericAs, OnUnrepresentable, Profile, SpecialTimes};
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};
use pgrx::pg_sys;

use super::text_output;
use crate::arrow::column::{Column, Kind};
use crate::error::or_raise;
use crate::pg::enum_catalog::CatalogLabels;
use crate::pg::row_type::RowType;
use crate::pg::type_catalog::{form_of, kind_of};

/// Arrays and row types that may lie inside each other; deeper ones are text, since readers have limits of their own.
const MAX_DEPTH: u32 = 16;
/// Precision and scale of a numeric without a modifier, as a decimal.
const PLAIN_DECIMAL: (u8, u8) = (MAX_PRECISION, 9);
/// Bytes in front of the modifier that a numeric's precision and scale are packed into (`VARHDRSZ`).
const TYPMOD_OFFSET: i32 = 4;

/// How the values of a column, of an array's elements or of a row's attribute are delivered.
#[derive(Clone, PartialEq, Hash, Debug)]
pub enum DeliveryType {
    /// As they are stored, in this Arrow type.
    Stored(DataType),
    /// The text that the type's output function gives.
    Text,
    /// The label of an enum, as the catalog had them when the delivery was prepared.
    Label(Rc<CatalogLabels>),
    /// A numeric as a decimal of 128 bits.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
        /// The nearest one.
        is_rounded: bool,
    },
    /// A numeric as a float.
    Float64 {
        /// The nearest one.
        is_rounded: bool,
    },
    /// A date, time or timestamp as it is stored, in this Arrow type, but for the special ones.
    Time(DataType, SpecialTimes),
    /// An interval as months, days and nanoseconds.
    MonthDayNano,
    /// An array of one dimension, with its elements.
    List(Box<Child>),
    /// A row, with its attributes.
    Struct(Vec<Child>),
}

/// A part of a value: an array's element, or one attribute of a row.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct Child {
    /// Number of the attribute in its row type, from 0; dropped ones count.
    pub place: usize,
    /// Its Arrow field.
    pub field: FieldRef,
    /// Its PostgreSQL type.
    pub column: Column,
    /// How it is delivered.
    pub delivered: DeliveryType,
}

/// How many parts the columns of one result may still have in its schema. Row types can hold each other many times
/// over: a column with more parts than are left is delivered as text.
#[derive(Clone, Copy, Debug)]
pub struct PartBudget(u32);

impl PartBudget {
    /// Parts that the columns of one result may have.
    pub const PARTS: usize = 4096;
    /// The budget of one result.
    pub const WHOLE: Self = Self(Self::PARTS as u32);

    fn take(&mut self) -> Result<(), Stop> {
        self.0 = self.0.checked_sub(1).ok_or(Stop::NoBudget)?;
        Ok(())
    }
}

/// Why there is no delivery type.
enum Stop {
    /// A numeric has this number of digits, more than a decimal holds.
    Precision(u32),
    NoBudget,
}

impl DeliveryType {
    /// How a column is delivered. Its parts are taken from the result's budget.
    ///
    /// # Errors
    /// The digits of a numeric of the column that decimals are asked for, and which has too many.
    pub fn of_column(column: &Column, profile: &Profile, budget: &mut PartBudget) -> Result<Self, u32> {
        let before = *budget;
        match Self::at_depth(column, profile, budget, 0) {
            Ok(delivered) => Ok(delivered),
            Err(Stop::Precision(digits)) => Err(digits),
            Err(Stop::NoBudget) => {
                *budget = before;
                Ok(Self::Text)
            }
        }
    }

    fn at_depth(column: &Column, profile: &Profile, budget: &mut PartBudget, depth: u32) -> Result<Self, Stop> {
        match column.kind {
            Kind::Numeric => of_numeric(column.base_typmod, profile),
            Kind::Timestamp | Kind::TimestampTz if profile.on_unrepresentable == OnUnrepresentable::Text => {
                Ok(Self::Text)
            }
            Kind::Date | Kind::Time | Kind::Timestamp | Kind::TimestampTz
                if profile.special_times != SpecialTimes::Keep =>
            {
                Ok(Self::Time(column.storage_type(), profile.special_times))
            }
            Kind::FlatVarlena | Kind::FlatFixed | Kind::FlatCString => of_flat(column, profile, budget, depth),
            _ => Ok(Self::Stored(column.storage_type())),
        }
    }

    /// The Arrow type.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Stored(data_type) | Self::Time(data_type, _) => data_type.clone(),
            Self::Text | Self::Label(_) => DataType::Utf8,
            Self::Decimal { precision, scale, .. } => DataType::Decimal128(*precision, scale.cast_signed()),
            Self::Float64 { .. } => DataType::Float64,
            Self::MonthDayNano => DataType::Interval(IntervalUnit::MonthDayNano),
            Self::List(element) => DataType::List(element.field.clone()),
            Self::Struct(attributes) => {
                DataType::Struct(attributes.iter().map(|attribute| attribute.field.clone()).collect::<Fields>())
            }
        }
    }

    /// Returns true if the stored bytes go out as they are.
    pub fn is_stored(&self) -> bool {
        matches!(self, Self::Stored(_))
    }

    /// What a user should know of values that are delivered so.
    pub fn note(&self) -> Option<String> {
        let note = match self {
            Self::Stored(DataType::Date32) => "the infinities are the largest number of days and its negative",
            Self::Stored(DataType::Timestamp(TimeUnit::Microsecond, _)) => {
                "the infinities are the largest number and its negative; an error from 294247-01-10 on"
            }
            Self::Stored(DataType::Time64(_)) => "24:00:00 is 86400000000, which some readers refuse",
            Self::Stored(_) | Self::Label(_) => return None,
            Self::Text => "the type's text, under fixed settings",
            Self::Time(_, SpecialTimes::Error) => "an error for the infinities and 24:00:00",
            Self::Time(..) => "NULL for the infinities and 24:00:00",
            Self::Decimal { is_rounded: true, .. } => "rounded; an error for NaN, the infinities and larger numbers",
            Self::Decimal { .. } => "an error for NaN, the infinities and numbers of more digits",
            Self::Float64 { is_rounded: true } => "the nearest float; an error for larger numbers",
            Self::Float64 { .. } => "an error for numbers that the shortest text of a float does not show",
            Self::MonthDayNano => "an error for more than 292 years in hours, minutes and seconds",
            Self::List(_) => "an error for several dimensions or a lower bound other than 1",
            Self::Struct(_) => "the row's attributes",
        };
        Some(note.to_owned())
    }

    /// The Arrow field of a column that is delivered so.
    pub fn field(&self, name: &str, column: &Column, profile: &Profile) -> Field {
        let mut metadata = HashMap::from([("POSTGRESQL:type".to_owned(), text_output::type_name(column.type_oid))]);
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

/// The extension type of the Arrow specification that a type is delivered as.
fn extension_name(type_oid: pg_sys::Oid) -> Option<&'static str> {
    match type_oid {
        pg_sys::UUIDOID => Some("arrow.uuid"),
        pg_sys::JSONOID | pg_sys::JSONBOID => Some("arrow.json"),
        _ => None,
    }
}

fn of_numeric(typmod: i32, profile: &Profile) -> Result<DeliveryType, Stop> {
    if profile.on_unrepresentable == OnUnrepresentable::Text {
        return Ok(DeliveryType::Stored(DataType::Utf8));
    }
    match profile.numeric {
        NumericAs::Text => Ok(DeliveryType::Stored(DataType::Utf8)),
        NumericAs::Float64 => Ok(DeliveryType::Float64 { is_rounded: false }),
        NumericAs::NearestFloat64 => Ok(DeliveryType::Float64 { is_rounded: true }),
        NumericAs::RoundedDecimal128 { precision, scale } => {
            Ok(DeliveryType::Decimal { precision, scale, is_rounded: true })
        }
        NumericAs::Decimal128 => {
            let (precision, scale) = decimal_of(typmod)?;
            Ok(DeliveryType::Decimal { precision, scale, is_rounded: false })
        }
    }
}

/// Precision and scale of the decimal that holds every finite number of a numeric type.
fn decimal_of(typmod: i32) -> Result<(u8, u8), Stop> {
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
        _ => Err(Stop::Precision(digits.unsigned_abs())),
    }
}

fn of_flat(column: &Column, profile: &Profile, budget: &mut PartBudget, depth: u32) -> Result<DeliveryType, Stop> {
    let lenient = profile.on_unrepresentable == OnUnrepresentable::Text;
    if column.base_type == pg_sys::INTERVALOID && profile.interval == IntervalAs::MonthDayNano && !lenient {
        return Ok(DeliveryType::MonthDayNano);
    }
    // SAFETY: asks the catalog, which has no element type for an unknown type.
    let element = unsafe { kept!(pg_sys::get_element_type(column.base_type)) };
    if element != pg_sys::InvalidOid {
        if lenient || depth >= MAX_DEPTH {
            return Ok(DeliveryType::Text);
        }
        return of_array(column, element, profile, budget, depth);
    }
    match kind_of(column.base_type) {
        pg_sys::TYPTYPE_ENUM => Ok(DeliveryType::Label(Rc::new(or_raise(CatalogLabels::read(column.base_type))))),
        pg_sys::TYPTYPE_COMPOSITE if depth < MAX_DEPTH => of_row(column, profile, budget, depth),
        _ => Ok(DeliveryType::Text),
    }
}

/// An array column, by the type of its elements.
fn of_array(
    array: &Column,
    element: pg_sys::Oid,
    profile: &Profile,
    budget: &mut PartBudget,
    depth: u32,
) -> Result<DeliveryType, Stop> {
    budget.take()?;
    let (length, by_value) = form_of(element);
    let column = Column::new(element, array.base_typmod, length, by_value);
    let delivered = DeliveryType::at_depth(&column, profile, budget, depth + 1)?;
    let field = Arc::new(delivered.field("item", &column, profile));
    Ok(DeliveryType::List(Box::new(Child { place: 0, field, column, delivered })))
}

/// A column of a composite type.
fn of_row(row: &Column, profile: &Profile, budget: &mut PartBudget, depth: u32) -> Result<DeliveryType, Stop> {
    // SAFETY: asks the catalog; a type that is no row type raises. The copy lives in the current memory context until
    // it is freed.
    let (descriptor, row_type) = unsafe {
        let descriptor = kept!(pg_sys::lookup_rowtype_tupdesc_copy(row.base_type, row.base_typmod));
        (descriptor, RowType::of(descriptor))
    };
    let mut children = Vec::new();
    for (place, attribute) in row_type.attributes().enumerate() {
        if attribute.attisdropped {
            continue;
        }
        budget.take()?;
        let column = Column::of_attribute(attribute);
        let delivered = DeliveryType::at_depth(&column, profile, budget, depth + 1)?;
        let field = Arc::new(delivered.field(&text_output::name(&attribute.attname), &column, profile));
        children.push(Child { place, field, column, delivered });
    }
    // SAFETY: made above, and used no more.
    unsafe { kept!(pg_sys::FreeTupleDesc(descriptor)) };
    Ok(DeliveryType::Struct(children))
}
