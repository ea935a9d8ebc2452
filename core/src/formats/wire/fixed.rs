//! Values that are stored with a fixed length: which function writes which format. Pure functions over the bytes of a chunk.

use super::format::{LONGEST, WireFormat};
use super::server::Server;
use super::zone::Zone;
use super::{float, moment, text};
use crate::formats::column_buffers::ColumnBuffers;
use crate::formats::epoch;

/// Writes a value that is stored with a fixed length, and returns the bytes of it; `None` if it is refused.
#[inline]
pub fn write_fixed(
    format: WireFormat,
    (column, row): (&ColumnBuffers<'_>, usize),
    zone: &mut Zone,
    server: &impl Server,
    out: &mut [u8; LONGEST],
) -> Option<usize> {
    let micros = || epoch::timestamp_from_arrow(i64::from_le_bytes(column.fixed(row)));
    let days = || epoch::date_from_arrow(i32::from_le_bytes(column.fixed(row)));
    Some(match format {
        WireFormat::BoolText => text::word(if column.truth(row) { b"t" } else { b"f" }, out),
        WireFormat::Int16Text => text::integer(i16::from_le_bytes(column.fixed(row)), out),
        WireFormat::Int32Text => text::integer(i32::from_le_bytes(column.fixed(row)), out),
        WireFormat::Int64Text => text::integer(i64::from_le_bytes(column.fixed(row)), out),
        WireFormat::UInt32Text => text::integer(u32::from_le_bytes(column.fixed(row)), out),
        WireFormat::UInt64Text => text::integer(u64::from_le_bytes(column.fixed(row)), out),
        WireFormat::LsnText => text::lsn(u64::from_le_bytes(column.fixed(row)), out),
        WireFormat::Float32Text => float::float4(f32::from_le_bytes(column.fixed(row)), server, out),
        WireFormat::Float64Text => float::float8(f64::from_le_bytes(column.fixed(row)), server, out),
        WireFormat::DateText => return moment::date(days(), out),
        WireFormat::TimeText => return moment::time(i64::from_le_bytes(column.fixed(row)), out),
        WireFormat::TimestampText => return moment::timestamp(micros(), out),
        WireFormat::TimestampTzText => return moment::timestamptz(micros(), zone, out),
        WireFormat::UuidText => text::uuid(column.fixed(row), out),
        WireFormat::BoolBinary => text::word(&[u8::from(column.truth(row))], out),
        WireFormat::Word2 => text::word(&reversed::<2>(column.fixed(row)), out),
        WireFormat::Word4 => text::word(&reversed::<4>(column.fixed(row)), out),
        WireFormat::Word8 => text::word(&reversed::<8>(column.fixed(row)), out),
        WireFormat::DateBinary => text::word(&days().to_be_bytes(), out),
        WireFormat::TimestampBinary => text::word(&micros().to_be_bytes(), out),
        WireFormat::Bytes16 => text::word(&column.fixed::<16>(row), out),
        WireFormat::Bytes
        | WireFormat::ByteaText
        | WireFormat::NumericBinary
        | WireFormat::JsonbBinary
        | WireFormat::Label
        | WireFormat::ByServer => return None,
    })
}

/// From the order of the stored bytes to that of the wire.
fn reversed<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes.reverse();
    bytes
}
