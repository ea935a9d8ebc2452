//! Conversion of values without parts of their own into the buffers of one Arrow array.

use std::borrow::Cow;
use std::ffi::CStr;

use arrow_cache_core::formats::column_buffers::ColumnBuffers;
use arrow_cache_core::formats::jsonb::Refusal;
use arrow_cache_core::formats::short_text::range::Bounds;
use arrow_cache_core::formats::short_text::{ShortText, interval, network, range};
use arrow_cache_core::formats::{decimal, epoch, jsonb, numeric};
use arrow_cache_core::{OutOfMemory, Reason, Room, RoomyVec, Unrepresentable, Why};
use arrow_schema::DataType;
use pgrx::pg_sys;

use super::array::Values;
use super::bitmap::Bits;
use super::delivery_type::DeliveryType;
use super::text_output::{LabelSource, Labels, OutputFunction};
use crate::arrow::column::{Column, Kind};
use crate::pg::row::Value;
use crate::pg::varlena::Varlena;

/// How a value becomes bytes.
enum Conversion {
    Bool,
    /// That many bytes of the datum itself.
    Word(usize),
    /// That many bytes behind the datum.
    Bytes(usize),
    Date,
    Timestamp(pg_sys::Oid),
    /// The characters up to the first NUL.
    Name,
    /// The body of a varlena.
    Body,
    Jsonb,
    Numeric,
    Decimal(u8, u8),
    Float64,
    MonthDayNano,
    CharByte,
    Label(Labels),
    /// The text of an interval, an address or a range.
    Short(ShortKind, Box<ShortText>, OutputFunction),
    Text(OutputFunction),
}

/// Types with texts of `formats::short_text`.
#[derive(Clone, Copy)]
enum ShortKind {
    Interval,
    Inet,
    Cidr,
    Range(Bounds),
}

impl ShortKind {
    fn of(base_type: pg_sys::Oid) -> Option<Self> {
        match base_type {
            pg_sys::INTERVALOID => Some(Self::Interval),
            pg_sys::INETOID => Some(Self::Inet),
            pg_sys::CIDROID => Some(Self::Cidr),
            pg_sys::INT4RANGEOID => Some(Self::Range(Bounds::Int32)),
            pg_sys::INT8RANGEOID => Some(Self::Range(Bounds::Int64)),
            pg_sys::DATERANGEOID => Some(Self::Range(Bounds::Date)),
            pg_sys::TSRANGEOID => Some(Self::Range(Bounds::Timestamp)),
            pg_sys::TSTZRANGEOID => Some(Self::Range(Bounds::TimestampTz)),
            _ => None,
        }
    }

    /// The text of a value, unless only the server knows it.
    fn text<'r>(self, value: Value<'_>, room: &'r mut ShortText) -> Result<Option<&'r [u8]>, OutOfMemory> {
        if let Self::Interval = self {
            // SAFETY: the value is one of the column, whose type is this.
            let interval = unsafe { interval_of(value) };
            return Ok(interval::text(interval.month, interval.day, interval.time, room));
        }
        Ok(self.text_of_body(body(value)?, room))
    }

    /// The text of a value as it is stored, unless only the server knows it.
    fn text_of_stored<'r>(self, stored: &ColumnBuffers<'_>, row: usize, room: &'r mut ShortText) -> Option<&'r [u8]> {
        let Self::Interval = self else { return self.text_of_body(stored.bytes(row), room) };
        // Microseconds, then days, then months (datatype/timestamp.h, `Interval`).
        let parts = u128::from_le_bytes(stored.fixed(row));
        interval::text((parts >> 96) as i32, (parts >> 64) as i32, parts as i64, room)
    }

    /// The text of a value of a type of variable length.
    fn text_of_body<'r>(self, body: &[u8], room: &'r mut ShortText) -> Option<&'r [u8]> {
        match self {
            Self::Interval => None,
            Self::Inet => network::text(body, false, room),
            Self::Cidr => network::text(body, true, room),
            Self::Range(bounds) => range::text(body, bounds, room),
        }
    }
}

/// An array in the making. Its owner notes which values are NULL.
pub struct Leaf {
    conversion: Conversion,
    data_type: DataType,
    bits: Bits,
    /// End of each value behind a zero, if they vary in length.
    ends: Vec<u8>,
    values: Vec<u8>,
    /// Reused for the text of numerics and of jsonb.
    text: Vec<u8>,
}

impl Leaf {
    /// Starts an array of the column, which is delivered so. The current memory context must outlive the result.
    pub fn new(column: &Column, delivered: &DeliveryType, labels: &LabelSource) -> Self {
        let conversion = match delivered {
            DeliveryType::Decimal { precision, scale } => Conversion::Decimal(*precision, *scale),
            DeliveryType::Float64 => Conversion::Float64,
            DeliveryType::MonthDayNano => Conversion::MonthDayNano,
            DeliveryType::CharByte => Conversion::CharByte,
            DeliveryType::Label => Conversion::Label(Labels::new(column.base_type, labels)),
            DeliveryType::Stored(_) => match column.kind {
                Kind::Bool => Conversion::Bool,
                Kind::Date => Conversion::Date,
                Kind::Timestamp | Kind::TimestampTz => Conversion::Timestamp(column.base_type),
                Kind::Name => Conversion::Name,
                Kind::Numeric => Conversion::Numeric,
                Kind::Jsonb => Conversion::Jsonb,
                Kind::Text | Kind::Bytea => Conversion::Body,
                _ if column.by_value => Conversion::Word(column.length as usize),
                _ => Conversion::Bytes(column.length as usize),
            },
            DeliveryType::Text | DeliveryType::List(_) | DeliveryType::Struct(_) => {
                let output = OutputFunction::new(column.type_oid);
                match ShortKind::of(column.base_type) {
                    Some(kind) => Conversion::Short(kind, Box::default(), output),
                    None => Conversion::Text(output),
                }
            }
        };
        Self {
            conversion,
            data_type: delivered.data_type(),
            bits: Bits::default(),
            ends: vec![0; size_of::<i32>()],
            values: Vec::new(),
            text: Vec::new(),
        }
    }

    /// Makes room for that many more values.
    ///
    /// # Errors
    /// There is no memory.
    pub fn reserve(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        match self.data_type {
            DataType::Boolean => self.bits.make_room(rows),
            DataType::Utf8 | DataType::Binary => self.ends.make_room(rows * size_of::<i32>()),
            _ => self.values.make_room(rows * self.width()),
        }
    }

    /// Bytes of one value, if all have the same length.
    fn width(&self) -> usize {
        match self.data_type {
            DataType::FixedSizeBinary(length) => length as usize,
            ref other => other.primitive_width().unwrap_or(0),
        }
    }

    /// Appends a place for NULL.
    ///
    /// # Errors
    /// There is no memory.
    pub fn append_null(&mut self) -> Result<(), OutOfMemory> {
        match self.data_type {
            DataType::Boolean => self.bits.add(false),
            DataType::Utf8 | DataType::Binary => self.ends.add_all(&(self.values.len() as i32).to_le_bytes()),
            _ => self.values.lengthen(self.values.len() + self.width(), 0),
        }
    }

    /// Appends a value of the column.
    ///
    /// # Errors
    /// Why the array cannot hold it. The array is of no further use then.
    pub fn append(&mut self, value: Value<'_>) -> Result<(), Unrepresentable> {
        match &mut self.conversion {
            Conversion::Bool => return Ok(self.bits.add(value.word() & 0xFF != 0)?),
            Conversion::Numeric | Conversion::Decimal(..) | Conversion::Float64 => return self.append_numeric(value),
            Conversion::Word(length) => self.values.add_all(&value.word().to_le_bytes()[..*length])?,
            Conversion::Bytes(length) => {
                // SAFETY: the value is one of the column, whose type has this length and is passed by reference.
                let bytes = unsafe { std::slice::from_raw_parts(value.datum().cast_mut_ptr::<u8>(), *length) };
                self.values.add_all(bytes)?;
            }
            Conversion::Date => {
                let days = epoch::date_to_arrow(value.word() as i32);
                let days = days.ok_or_else(|| out_of_range(pg_sys::DATEOID, value))?;
                self.values.add_all(&days.to_le_bytes())?;
            }
            Conversion::Timestamp(type_oid) => {
                let micros = epoch::timestamp_to_arrow(value.word() as i64);
                if !epoch::is_representable(micros) {
                    return Err(out_of_range(*type_oid, value));
                }
                self.values.add_all(&micros.to_le_bytes())?;
            }
            Conversion::MonthDayNano => self.append_interval(value)?,
            Conversion::Name => {
                // SAFETY: the value is one of the column, which holds names; a name ends with a NUL.
                self.values.add_all(unsafe { CStr::from_ptr(value.datum().cast_mut_ptr()) }.to_bytes())?;
            }
            Conversion::Body => self.values.add_all(body(value)?)?,
            Conversion::Jsonb => self.append_jsonb(value)?,
            Conversion::CharByte => append_char(value.word() as u8, &mut self.values)?,
            Conversion::Label(labels) => self.values.add_all(labels.label(value)?)?,
            Conversion::Short(kind, room, output) => match kind.text(value, room)? {
                Some(text) => self.values.add_all(text)?,
                None => self.values.add_all(output.text(value))?,
            },
            Conversion::Text(output) => self.values.add_all(output.text(value))?,
        }
        self.end_value()
    }

    /// Appends a value of the column as it is stored, if the array can be made of that. False: it has to be decoded first, and nothing was
    /// appended.
    ///
    /// # Errors
    /// As `append`.
    pub fn append_stored(&mut self, stored: &ColumnBuffers<'_>, row: usize) -> Result<bool, Unrepresentable> {
        match &mut self.conversion {
            Conversion::Numeric | Conversion::Decimal(..) | Conversion::Float64 => {
                self.append_numeric_text(stored.bytes(row))?;
                return Ok(true);
            }
            Conversion::Label(labels) => {
                let number = pg_sys::Datum::from(i32::from_le_bytes(stored.fixed(row)));
                // SAFETY: the value is one of the column, an enum: four bytes, passed by value.
                self.values.add_all(labels.label(unsafe { Value::of(number) })?)?;
            }
            Conversion::Short(kind, room, _) => match kind.text_of_stored(stored, row, room) {
                Some(text) => self.values.add_all(text)?,
                None => return Ok(false),
            },
            _ => return Ok(false),
        }
        self.end_value()?;
        Ok(true)
    }

    /// May values that are appended lie anywhere in memory? The server's functions take them to be aligned.
    pub fn reads_in_place(&self) -> bool {
        match self.conversion {
            Conversion::Bool
            | Conversion::Word(_)
            | Conversion::Bytes(_)
            | Conversion::Date
            | Conversion::Timestamp(_)
            | Conversion::Body
            | Conversion::CharByte
            | Conversion::Label(_) => true,
            Conversion::Name
            | Conversion::Jsonb
            | Conversion::Numeric
            | Conversion::Decimal(..)
            | Conversion::Float64
            | Conversion::MonthDayNano
            | Conversion::Short(..)
            | Conversion::Text(_) => false,
        }
    }

    /// The bytes of an interval.
    fn append_interval(&mut self, value: Value<'_>) -> Result<(), Unrepresentable> {
        // SAFETY: only columns of intervals are converted so.
        let interval = unsafe { interval_of(value) };
        let nanos = interval.time.checked_mul(1000).ok_or_else(|| out_of_range(pg_sys::INTERVALOID, value))?;
        self.values.add_all(&interval.month.to_le_bytes())?;
        self.values.add_all(&interval.day.to_le_bytes())?;
        Ok(self.values.add_all(&nanos.to_le_bytes())?)
    }

    /// The text of a jsonb.
    fn append_jsonb(&mut self, value: Value<'_>) -> Result<(), OutOfMemory> {
        self.text.clear();
        let text = match jsonb::to_text(body(value)?, jsonb::TEXT_MAX, &mut self.text) {
            Ok(()) => self.text.as_slice(),
            Err(Refusal::NoMemory) => return Err(OutOfMemory),
            // The server's own function prints, or refuses, what is too deep or too long for ours.
            Err(_) => OutputFunction::new(pg_sys::JSONBOID).text(value),
        };
        self.values.add_all(text)
    }

    /// A numeric, through its text.
    fn append_numeric(&mut self, value: Value<'_>) -> Result<(), Unrepresentable> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let body = body(value)?;
        text.make_room(numeric::text_bound(body))?;
        if !numeric::to_text(body, &mut text) {
            // A layout that the server does not write any more.
            text.add_all(OutputFunction::new(pg_sys::NUMERICOID).text(value))?;
        }
        let appended = self.append_numeric_text(&text);
        self.text = text;
        appended
    }

    /// Appends a numeric, given as its text.
    fn append_numeric_text(&mut self, text: &[u8]) -> Result<(), Unrepresentable> {
        match self.conversion {
            Conversion::Decimal(precision, scale) => {
                let value = decimal::to_decimal128(text, precision, scale)
                    .map_err(|misfit| Unrepresentable::new(Why::Number(misfit), text))?;
                self.values.add_all(&value.to_le_bytes())?;
            }
            Conversion::Float64 => {
                let value =
                    decimal::to_float64(text).map_err(|misfit| Unrepresentable::new(Why::Number(misfit), text))?;
                self.values.add_all(&value.to_le_bytes())?;
            }
            _ => self.values.add_all(text)?,
        }
        self.end_value()
    }

    /// Notes that a value is complete.
    fn end_value(&mut self) -> Result<(), Unrepresentable> {
        if matches!(self.data_type, DataType::Utf8 | DataType::Binary) {
            let end = i32::try_from(self.values.len()).map_err(|_| Unrepresentable::new(Why::TooLarge, b""))?;
            self.ends.add_all(&end.to_le_bytes())?;
        }
        Ok(())
    }

    /// What was appended.
    ///
    /// # Errors
    /// `TextEncoding` when a text is not valid UTF-8.
    pub fn finish(self) -> Result<Values<'static>, Reason> {
        Ok(match self.data_type {
            DataType::Boolean => Values::Bits(Cow::Owned(self.bits.into_bytes())),
            DataType::Utf8 if !are_texts(&self.values, &self.ends) => return Err(Reason::TextEncoding),
            DataType::Utf8 | DataType::Binary => Values::Variable(Cow::Owned(self.ends), Cow::Owned(self.values)),
            _ => Values::Fixed(self.width(), Cow::Owned(self.values)),
        })
    }
}

/// Is each of these values UTF-8?
fn are_texts(values: &[u8], ends: &[u8]) -> bool {
    let (ends, _) = ends.as_chunks();
    values.is_ascii()
        || std::str::from_utf8(values)
            .is_ok_and(|text| ends.iter().all(|end| text.is_char_boundary(u32::from_le_bytes(*end) as usize)))
}

/// A date, time or interval of this type beyond what Arrow holds. Leaves its text in the current memory context.
pub fn out_of_range(type_oid: pg_sys::Oid, value: Value<'_>) -> Unrepresentable {
    Unrepresentable::new(Why::Time, OutputFunction::new(type_oid).text(value))
}

/// A value as the interval that it is.
///
/// # Safety
/// The value is of type interval.
unsafe fn interval_of(value: Value<'_>) -> pg_sys::Interval {
    // SAFETY: the caller promises that an interval lies behind the datum.
    unsafe { value.datum().cast_mut_ptr::<pg_sys::Interval>().read_unaligned() }
}

/// The body of a varlena, whatever its size.
#[inline]
fn body(value: Value<'_>) -> Result<&[u8], OutOfMemory> {
    // SAFETY: the value is one of a column whose conversion reads the body of a varlena.
    unsafe { Varlena::of(value) }.whole_body()
}

/// A `"char"` as PostgreSQL 16 prints it: nothing for 0, octal above 127.
fn append_char(byte: u8, out: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    match byte {
        0 => Ok(()),
        1..=127 => out.add(byte),
        _ => out.add_all(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]),
    }
}
