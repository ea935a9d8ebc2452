//! Conversion of values without parts of their own into the buffers of one Arrow array.

use std::borrow::Cow;

use arrow_cache_core::formats::column_buffers::ColumnBuffers;
use arrow_cache_core::formats::{decimal, epoch};
use arrow_cache_core::{OutOfMemory, Reason, Room, RoomyVec, Unrepresentable, Why};
use arrow_schema::DataType;
use pgrx::pg_sys;

use super::array::Values;
use super::bitmap::Bits;
use super::delivery_type::DeliveryType;
use super::text_output::{LabelSource, Labels, OutputFunction};
use crate::arrow::column::{Column, Kind, are_texts};
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
    /// The body of a varlena.
    Body,
    /// A number, through its text.
    Number(NumberAs, OutputFunction),
    MonthDayNano,
    CharByte,
    Label(Labels),
    Text(OutputFunction),
}

/// What a numeric is delivered as.
#[derive(Clone, Copy)]
enum NumberAs {
    /// With this precision and scale.
    Decimal(u8, u8),
    Float64,
}

/// An array in the making. Its owner notes which values are NULL.
pub struct Leaf {
    conversion: Conversion,
    data_type: DataType,
    bits: Bits,
    /// End of each value behind a zero, if they vary in length.
    ends: Vec<u8>,
    values: Vec<u8>,
}

impl Leaf {
    /// Starts an array of the column, which is delivered so. The current memory context must outlive the result.
    pub fn new(column: &Column, delivered: &DeliveryType, labels: &LabelSource) -> Self {
        let output = || OutputFunction::new(column.type_oid);
        let conversion = match delivered {
            DeliveryType::Decimal { precision, scale } => {
                Conversion::Number(NumberAs::Decimal(*precision, *scale), output())
            }
            DeliveryType::Float64 => Conversion::Number(NumberAs::Float64, output()),
            DeliveryType::MonthDayNano => Conversion::MonthDayNano,
            DeliveryType::CharByte => Conversion::CharByte,
            DeliveryType::Label => Conversion::Label(Labels::new(column.base_type, labels)),
            DeliveryType::Stored(_) => match column.kind {
                Kind::Bool => Conversion::Bool,
                Kind::Date => Conversion::Date,
                Kind::Timestamp | Kind::TimestampTz => Conversion::Timestamp(column.base_type),
                Kind::Text | Kind::Bytea => Conversion::Body,
                Kind::Name | Kind::Numeric | Kind::Jsonb => Conversion::Text(output()),
                _ if column.by_value => Conversion::Word(column.length as usize),
                _ => Conversion::Bytes(column.length as usize),
            },
            DeliveryType::Text | DeliveryType::List(_) | DeliveryType::Struct(_) => Conversion::Text(output()),
        };
        Self {
            conversion,
            data_type: delivered.data_type(),
            bits: Bits::default(),
            ends: vec![0; size_of::<i32>()],
            values: Vec::new(),
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
            Conversion::Number(kind, output) => append_number(output.text(value), *kind, &mut self.values)?,
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
            // SAFETY: the value is one of the column, which holds varlenas.
            Conversion::Body => self.values.add_all(unsafe { Varlena::of(value) }.whole_body()?)?,
            Conversion::CharByte => append_char(value.word() as u8, &mut self.values)?,
            Conversion::Label(labels) => self.values.add_all(labels.label(value)?)?,
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
            Conversion::Number(kind, _) => append_number(stored.bytes(row), *kind, &mut self.values)?,
            Conversion::Label(labels) => {
                let number = pg_sys::Datum::from(i32::from_le_bytes(stored.fixed(row)));
                // SAFETY: the value is one of the column, an enum: four bytes, passed by value.
                self.values.add_all(labels.label(unsafe { Value::of(number) })?)?;
            }
            _ => return Ok(false),
        }
        self.end_value()?;
        Ok(true)
    }

    /// The bytes of an interval.
    fn append_interval(&mut self, value: Value<'_>) -> Result<(), Unrepresentable> {
        // SAFETY: only columns of intervals are converted so; one lies behind the datum.
        let interval = unsafe { value.datum().cast_mut_ptr::<pg_sys::Interval>().read_unaligned() };
        let nanos = interval.time.checked_mul(1000).ok_or_else(|| out_of_range(pg_sys::INTERVALOID, value))?;
        self.values.add_all(&interval.month.to_le_bytes())?;
        self.values.add_all(&interval.day.to_le_bytes())?;
        Ok(self.values.add_all(&nanos.to_le_bytes())?)
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
            DataType::Utf8 if !are_texts(&self.values, self.ends.as_chunks().0) => return Err(Reason::TextEncoding),
            DataType::Utf8 | DataType::Binary => Values::Variable(Cow::Owned(self.ends), Cow::Owned(self.values)),
            _ => Values::Fixed(self.width(), Cow::Owned(self.values)),
        })
    }
}

/// A date, time or interval of this type beyond what Arrow holds. Leaves its text in the current memory context.
pub fn out_of_range(type_oid: pg_sys::Oid, value: Value<'_>) -> Unrepresentable {
    Unrepresentable::new(Why::Time, OutputFunction::new(type_oid).text(value))
}

/// Appends a number, given as its text.
fn append_number(text: &[u8], kind: NumberAs, values: &mut Vec<u8>) -> Result<(), Unrepresentable> {
    let misfit = |misfit| Unrepresentable::new(Why::Number(misfit), text);
    let added = match kind {
        NumberAs::Decimal(precision, scale) => {
            values.add_all(&decimal::to_decimal128(text, precision, scale).map_err(misfit)?.to_le_bytes())
        }
        NumberAs::Float64 => values.add_all(&decimal::to_float64(text).map_err(misfit)?.to_le_bytes()),
    };
    Ok(added?)
}

/// A `"char"` as PostgreSQL 16 prints it: nothing for 0, octal above 127.
fn append_char(byte: u8, out: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    match byte {
        0 => Ok(()),
        1..=127 => out.add(byte),
        _ => out.add_all(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]),
    }
}
