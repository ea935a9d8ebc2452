//! Values without parts of their own into the buffers of one Arrow array.

use std::borrow::Cow;
use std::ffi::CStr;

use arrow_cache_core::formats::jsonb::Refusal;
use arrow_cache_core::formats::{decimal, jsonb, numeric};
use arrow_cache_core::{OutOfMemory, Reason, Room, RoomyVec, Unrepresentable, Why};
use arrow_schema::DataType;
use pgrx::pg_sys;

use super::array::Values;
use super::bits::Bits;
use super::column::{Column, Kind};
use super::epoch;
use super::form::Form;
use super::output::{Labels, OutputFunction};
use super::varlena;

/// How a value becomes bytes.
enum Source {
    Bool,
    /// So many bytes of the datum itself.
    Word(usize),
    /// So many bytes behind the datum.
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
    Text(OutputFunction),
}

/// An array in the making. What becomes of NULLs is noted by the owner.
pub struct Leaf {
    source: Source,
    data_type: DataType,
    bits: Bits,
    /// End of each value behind a zero, if they vary in length.
    ends: Vec<u8>,
    values: Vec<u8>,
    /// Reused for the text of numerics and of jsonb.
    text: Vec<u8>,
}

impl Leaf {
    /// Starts an array of this form. The current memory context must outlive the result.
    pub fn new(column: &Column, form: &Form) -> Self {
        let source = match form {
            Form::Decimal { precision, scale } => Source::Decimal(*precision, *scale),
            Form::Float64 => Source::Float64,
            Form::MonthDayNano => Source::MonthDayNano,
            Form::CharByte => Source::CharByte,
            Form::Label => Source::Label(Labels::new(column.base_type)),
            Form::Stored(_) => match column.kind {
                Kind::Bool => Source::Bool,
                Kind::Date => Source::Date,
                Kind::Timestamp | Kind::TimestampTz => Source::Timestamp(column.base_type),
                Kind::Name => Source::Name,
                Kind::Numeric => Source::Numeric,
                Kind::Jsonb => Source::Jsonb,
                Kind::Text | Kind::Bytea => Source::Body,
                _ if column.by_value => Source::Word(column.length as usize),
                _ => Source::Bytes(column.length as usize),
            },
            Form::Text | Form::List(_) | Form::Struct(_) => Source::Text(OutputFunction::new(column.type_oid)),
        };
        Self {
            source,
            data_type: form.data_type(),
            bits: Bits::default(),
            ends: vec![0; size_of::<i32>()],
            values: Vec::new(),
            text: Vec::new(),
        }
    }

    /// Makes room for so many more values.
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

    /// Appends a value.
    ///
    /// # Errors
    /// Why the array cannot hold it. The array is of no further use then.
    ///
    /// # Safety
    /// `datum` must be a value of the column.
    pub unsafe fn append(&mut self, datum: pg_sys::Datum) -> Result<(), Unrepresentable> {
        let raw = datum.value();
        // SAFETY: as the caller promises. Copies that detoasting makes live in the current memory context.
        unsafe {
            match &mut self.source {
                Source::Bool => {
                    self.bits.add(raw & 0xFF != 0)?;
                    return Ok(());
                }
                Source::Word(length) => self.values.add_all(&raw.to_le_bytes()[..*length])?,
                Source::Bytes(length) => {
                    let bytes = std::slice::from_raw_parts(datum.cast_mut_ptr::<u8>(), *length);
                    self.values.add_all(bytes)?;
                }
                Source::Date => {
                    let days = epoch::date_to_arrow(raw as i32).ok_or_else(|| out_of_range(pg_sys::DATEOID, datum))?;
                    self.values.add_all(&days.to_le_bytes())?;
                }
                Source::Timestamp(type_oid) => {
                    let micros = epoch::timestamp_to_arrow(raw as i64);
                    if !epoch::is_representable(micros) {
                        return Err(out_of_range(*type_oid, datum));
                    }
                    self.values.add_all(&micros.to_le_bytes())?;
                }
                Source::MonthDayNano => {
                    let interval = datum.cast_mut_ptr::<pg_sys::Interval>().read_unaligned();
                    let nanos =
                        interval.time.checked_mul(1000).ok_or_else(|| out_of_range(pg_sys::INTERVALOID, datum))?;
                    self.values.add_all(&interval.month.to_le_bytes())?;
                    self.values.add_all(&interval.day.to_le_bytes())?;
                    self.values.add_all(&nanos.to_le_bytes())?;
                }
                Source::Name => self.values.add_all(CStr::from_ptr(datum.cast_mut_ptr()).to_bytes())?,
                Source::Body => self.values.add_all(body(datum)?)?,
                Source::Jsonb => {
                    self.text.clear();
                    let text = match jsonb::to_text(body(datum)?, jsonb::TEXT_MAX, &mut self.text) {
                        Ok(()) => self.text.as_slice(),
                        Err(Refusal::NoMemory) => return Err(OutOfMemory.into()),
                        // The server has a way with what is too deep or too long for that.
                        Err(_) => OutputFunction::new(pg_sys::JSONBOID).text(datum),
                    };
                    self.values.add_all(text)?;
                }
                Source::CharByte => append_char(raw as u8, &mut self.values)?,
                Source::Label(labels) => self.values.add_all(labels.label(datum)?)?,
                Source::Text(output) => self.values.add_all(output.text(datum))?,
                Source::Numeric | Source::Decimal(..) | Source::Float64 => {
                    let mut text = std::mem::take(&mut self.text);
                    text.clear();
                    let body = body(datum)?;
                    text.make_room(numeric::text_bound(body))?;
                    if !numeric::to_text(body, &mut text) {
                        // Laid out as the server itself does not do it any more.
                        text.add_all(OutputFunction::new(pg_sys::NUMERICOID).text(datum))?;
                    }
                    let appended = self.append_numeric_text(&text);
                    self.text = text;
                    return appended;
                }
            }
        }
        self.end_value()
    }

    /// Appends a numeric, given as its text.
    ///
    /// # Errors
    /// As `append`.
    pub fn append_numeric_text(&mut self, text: &[u8]) -> Result<(), Unrepresentable> {
        match self.source {
            Source::Decimal(precision, scale) => {
                let value = decimal::to_decimal128(text, precision, scale)
                    .map_err(|misfit| Unrepresentable::new(Why::Number(misfit), text))?;
                self.values.add_all(&value.to_le_bytes())?;
            }
            Source::Float64 => {
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

/// A date, time or interval beyond what Arrow holds.
///
/// # Safety
/// `datum` must be a value of the type.
pub unsafe fn out_of_range(type_oid: pg_sys::Oid, datum: pg_sys::Datum) -> Unrepresentable {
    // SAFETY: as the caller promises; the function is used within the current memory context.
    Unrepresentable::new(Why::Time, unsafe { OutputFunction::new(type_oid).text(datum) })
}

/// The body of a varlena, whatever its size.
///
/// # Safety
/// As `varlena::body`.
unsafe fn body<'a>(datum: pg_sys::Datum) -> Result<&'a [u8], OutOfMemory> {
    // SAFETY: as the caller promises. Without a limit, memory is all that can be missing.
    unsafe { varlena::body(datum, usize::MAX) }.map_err(|_| OutOfMemory)
}

/// A `"char"` as PostgreSQL 16 prints it: nothing for 0, octal above 127.
fn append_char(byte: u8, out: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    match byte {
        0 => Ok(()),
        1..=127 => out.add(byte),
        _ => out.add_all(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]),
    }
}
