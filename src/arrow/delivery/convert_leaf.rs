//! Conversion of values without parts: as they are stored, or into the bytes of another type.

use arrow_buffer::Buffer;
use arrow_cache_core::formats::column_buffers::ColumnBuffers;
use arrow_cache_core::formats::{decimal, epoch};
use arrow_cache_core::{Reason, Room, RoomyVec, SpecialTimes, Unrepresentable, Why};
use arrow_schema::DataType;
use pgrx::pg_sys;

use super::delivery_type::DeliveryType;
use super::stored_column::{Decoded, Ends, Problem, StoredColumn};
use super::text_output::{OutputFunction, utf8};
use crate::arrow::column::{Kind, are_texts};
use crate::pg::backend;
use crate::pg::enum_catalog::CatalogLabels;
use crate::pg::row::Value;

/// The values as they are stored.
pub fn as_stored(stored: &StoredColumn<'_>, rows: usize) -> Result<Vec<Buffer>, Problem> {
    let ColumnBuffers { offsets, values, .. } = stored.buffers();
    if stored.has_unrepresentable && matches!(stored.column.kind, Kind::Timestamp | Kind::TimestampTz) {
        for row in 0..rows {
            let code = i64::from_le_bytes(stored.buffers().fixed(row));
            if !stored.buffers().is_null(row) && !epoch::is_representable(code) {
                let micros = pg_sys::Datum::from(epoch::timestamp_from_arrow(code));
                // SAFETY: microseconds are a value of the column's type.
                let problem = out_of_range(stored.column.base_type, unsafe { Value::of(micros) });
                return Err(Problem::Value(row, problem));
            }
        }
    }
    let values = stored.buffer(values);
    Ok(if offsets.is_empty() { vec![values] } else { vec![stored.buffer(offsets), values] })
}

/// Which values are left if the infinities and 24:00 are NULL; `None` if that changes nothing.
///
/// # Errors
/// The first of these, if an error is asked for.
pub fn without_special_times(
    stored: &StoredColumn<'_>,
    rows: usize,
    special: SpecialTimes,
) -> Result<Option<Buffer>, Problem> {
    let times = stored.buffers();
    let is_special = |row: usize| match stored.column.kind {
        Kind::Date => epoch::is_infinite_date(i32::from_le_bytes(times.fixed(row))),
        Kind::Time => i64::from_le_bytes(times.fixed(row)) == epoch::END_OF_DAY,
        _ => epoch::is_infinite_timestamp(i64::from_le_bytes(times.fixed(row))),
    };
    let mut left = Vec::new();
    for row in (0..rows).filter(|row| !times.is_null(*row) && is_special(*row)) {
        if special == SpecialTimes::Error {
            Decoded::new(stored).with(row, |value| {
                let text = OutputFunction::new(stored.column.base_type).text(value);
                Err(Problem::Value(row, Unrepresentable::new(Why::SpecialTime, text)))
            })?;
        }
        if left.is_empty() {
            left.add_all(times.validity)?;
            left.lengthen(rows.div_ceil(8).max(left.len()), u8::MAX)?;
        }
        left[row / 8] &= !(1 << (row % 8));
    }
    Ok((!left.is_empty()).then(|| Buffer::from_vec(left)))
}

/// Numerics, whose texts are stored.
pub fn numbers<const N: usize>(
    stored: &StoredColumn<'_>,
    rows: usize,
    delivered: &DeliveryType,
    number: impl Fn(&[u8]) -> Result<[u8; N], decimal::Misfit>,
) -> Result<Vec<Buffer>, Problem> {
    let texts = stored.buffers();
    leaf(stored, rows, &delivered.data_type(), |row, values| {
        let text = texts.bytes(row);
        let number = number(text).map_err(|misfit| Unrepresentable::new(Why::Number(misfit), text))?;
        Ok(values.add_all(&number)?)
    })
}

/// Intervals as months, days and nanoseconds.
pub fn intervals(stored: &StoredColumn<'_>, rows: usize) -> Result<Vec<Buffer>, Problem> {
    let mut decoded = Decoded::new(stored);
    leaf(stored, rows, &DeliveryType::MonthDayNano.data_type(), |row, values| {
        decoded.with(row, |value| {
            // SAFETY: only columns of intervals are converted so; one lies behind the datum.
            let interval = unsafe { value.datum().cast_mut_ptr::<pg_sys::Interval>().read_unaligned() };
            let nanos = interval.time.checked_mul(1000).ok_or_else(|| out_of_range(pg_sys::INTERVALOID, value))?;
            values.add_all(&interval.month.to_le_bytes())?;
            values.add_all(&interval.day.to_le_bytes())?;
            Ok(values.add_all(&nanos.to_le_bytes())?)
        })
    })
}

/// Labels of an enum.
pub fn labels(stored: &StoredColumn<'_>, rows: usize, labels: &CatalogLabels) -> Result<Vec<Buffer>, Problem> {
    let mut decoded = Decoded::new(stored);
    leaf(stored, rows, &DataType::Utf8, |row, values| {
        decoded.with(row, |value| {
            let label = labels.get(value.word() as u32).map(utf8);
            // A value without a label is the server's to explain.
            Ok(values.add_all(label.unwrap_or_else(|| OutputFunction::new(stored.column.base_type).text(value)))?)
        })
    })
}

/// Texts that the type's output function gives.
pub fn texts(stored: &StoredColumn<'_>, rows: usize) -> Result<Vec<Buffer>, Problem> {
    let mut output = OutputFunction::new(stored.column.type_oid);
    let mut decoded = Decoded::new(stored);
    leaf(stored, rows, &DataType::Utf8, |row, values| {
        decoded.with(row, |value| Ok(values.add_all(output.text(value))?))
    })
}

/// The buffers of values without parts. `append` adds the bytes of the value in a row, which is not NULL.
fn leaf(
    stored: &StoredColumn<'_>,
    rows: usize,
    data_type: &DataType,
    mut append: impl FnMut(usize, &mut Vec<u8>) -> Result<(), Unrepresentable>,
) -> Result<Vec<Buffer>, Problem> {
    let width = data_type.primitive_width();
    let (mut ends, mut values) = (Ends::new(rows)?, Vec::new());
    values.make_room(rows * width.unwrap_or(0))?;
    for row in 0..rows {
        if stored.buffers().is_null(row) {
            values.lengthen(values.len() + width.unwrap_or(0), 0)?;
        } else {
            append(row, &mut values).map_err(|problem| Problem::Value(row, problem))?;
        }
        if width.is_none() {
            ends.add(row, values.len())?;
        }
        backend::accept_interrupts();
    }
    if width.is_some() {
        return Ok(vec![Buffer::from_vec(values)]);
    }
    if !are_texts(&values, ends.bytes().as_chunks().0) {
        return Err(Reason::TextEncoding.into());
    }
    Ok(vec![ends.into_buffer(), Buffer::from_vec(values)])
}

/// A date, time or interval of this type beyond what Arrow holds. Leaves its text in the current memory context.
fn out_of_range(type_oid: pg_sys::Oid, value: Value<'_>) -> Unrepresentable {
    Unrepresentable::new(Why::Time, OutputFunction::new(type_oid).text(value))
}
