//! Values without parts of their own into the buffers of one Arrow array.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, BooleanArray, StringArray, make_array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cache_core::{Reason, Unrepresentable, Why, decimal, jsonb, numeric};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use pgrx::pg_sys;

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
    rows: usize,
    bits: BooleanBufferBuilder,
    /// End of each value, if they vary in length.
    offsets: Vec<i32>,
    values: MutableBuffer,
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
            rows: 0,
            bits: BooleanBufferBuilder::new(0),
            offsets: vec![0],
            values: MutableBuffer::new(0),
            text: Vec::new(),
        }
    }

    /// Makes room for so many more values.
    pub fn reserve(&mut self, rows: usize) {
        match self.data_type {
            DataType::Boolean => self.bits.reserve(rows),
            DataType::Utf8 | DataType::Binary => self.offsets.reserve(rows),
            _ => self.values.reserve(rows * self.width()),
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
    pub fn append_null(&mut self) {
        self.rows += 1;
        match self.data_type {
            DataType::Boolean => self.bits.append(false),
            DataType::Utf8 | DataType::Binary => {
                let end = self.offsets[self.offsets.len() - 1];
                self.offsets.push(end);
            }
            _ => self.values.extend_zeros(self.width()),
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
                    self.bits.append(raw & 0xFF != 0);
                    self.rows += 1;
                    return Ok(());
                }
                Source::Word(length) => self.values.extend_from_slice(&raw.to_le_bytes()[..*length]),
                Source::Bytes(length) => {
                    let bytes = std::slice::from_raw_parts(datum.cast_mut_ptr::<u8>(), *length);
                    self.values.extend_from_slice(bytes);
                }
                Source::Date => {
                    let days = epoch::date_to_arrow(raw as i32).ok_or_else(|| out_of_range(pg_sys::DATEOID, datum))?;
                    self.values.push(days);
                }
                Source::Timestamp(type_oid) => {
                    let micros = epoch::timestamp_to_arrow(raw as i64);
                    if !epoch::is_representable(micros) {
                        return Err(out_of_range(*type_oid, datum));
                    }
                    self.values.push(micros);
                }
                Source::MonthDayNano => {
                    let interval = datum.cast_mut_ptr::<pg_sys::Interval>().read_unaligned();
                    let nanos =
                        interval.time.checked_mul(1000).ok_or_else(|| out_of_range(pg_sys::INTERVALOID, datum))?;
                    self.values.push(interval.month);
                    self.values.push(interval.day);
                    self.values.push(nanos);
                }
                Source::Name => self.values.extend_from_slice(CStr::from_ptr(datum.cast_mut_ptr()).to_bytes()),
                Source::Body => self.values.extend_from_slice(body(datum)),
                Source::Jsonb => {
                    self.text.clear();
                    let printed = jsonb::to_text(body(datum), jsonb::TEXT_MAX, &mut self.text);
                    // The server has a way with what is too deep or too long for that.
                    let text = if printed.is_ok() {
                        self.text.as_slice()
                    } else {
                        OutputFunction::new(pg_sys::JSONBOID).text(datum)
                    };
                    self.values.extend_from_slice(text);
                }
                Source::CharByte => append_char(raw as u8, &mut self.values),
                Source::Label(labels) => self.values.extend_from_slice(labels.label(datum)),
                Source::Text(output) => self.values.extend_from_slice(output.text(datum)),
                Source::Numeric | Source::Decimal(..) | Source::Float64 => {
                    let mut text = std::mem::take(&mut self.text);
                    text.clear();
                    if !numeric::to_text(body(datum), &mut text) {
                        // Laid out as the server itself does not do it any more.
                        text.extend_from_slice(OutputFunction::new(pg_sys::NUMERICOID).text(datum));
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
                self.values.push(value);
            }
            Source::Float64 => {
                let value =
                    decimal::to_float64(text).map_err(|misfit| Unrepresentable::new(Why::Number(misfit), text))?;
                self.values.push(value);
            }
            _ => self.values.extend_from_slice(text),
        }
        self.end_value()
    }

    /// Notes that a value is complete.
    fn end_value(&mut self) -> Result<(), Unrepresentable> {
        self.rows += 1;
        if matches!(self.data_type, DataType::Utf8 | DataType::Binary) {
            let end = i32::try_from(self.values.len()).map_err(|_| Unrepresentable::new(Why::TooLarge, b""))?;
            self.offsets.push(end);
        }
        Ok(())
    }

    /// Takes what was appended as an array and starts anew.
    ///
    /// # Errors
    /// `TextEncoding` when a text is not valid UTF-8.
    pub fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef, Reason> {
        let rows = std::mem::take(&mut self.rows);
        let mut values = || Buffer::from(std::mem::take(&mut self.values));
        let mut offsets = || {
            let offsets = std::mem::replace(&mut self.offsets, vec![0]);
            OffsetBuffer::new(ScalarBuffer::from(offsets))
        };
        Ok(match self.data_type {
            DataType::Boolean => Arc::new(BooleanArray::new(self.bits.finish(), nulls)),
            DataType::Utf8 => {
                Arc::new(StringArray::try_new(offsets(), values(), nulls).map_err(|_| Reason::TextEncoding)?)
            }
            DataType::Binary => {
                Arc::new(BinaryArray::try_new(offsets(), values(), nulls).map_err(|_| Reason::UnsupportedType)?)
            }
            ref fixed => {
                let data = ArrayData::builder(fixed.clone()).len(rows).nulls(nulls).add_buffer(values());
                make_array(data.build().map_err(|_| Reason::UnsupportedType)?)
            }
        })
    }
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
unsafe fn body<'a>(datum: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: as the caller promises.
    unsafe { varlena::body(datum, usize::MAX) }.unwrap_or_default()
}

/// A `"char"` as PostgreSQL 16 prints it: nothing for 0, octal above 127.
fn append_char(byte: u8, out: &mut MutableBuffer) {
    match byte {
        0 => {}
        1..=127 => out.push(byte),
        _ => out.extend_from_slice(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]),
    }
}
