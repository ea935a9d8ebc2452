//! Values that are stored with a fixed length: which function writes which format. Pure functions.

use super::format::{LONGEST, WireFormat};
use super::server::Server;
use super::stored_value::StoredValue;
use super::zone::Zone;
use super::{float, moment, text};

/// Writes a value that is stored with a fixed length, and returns the bytes of it; `None` if it is refused.
#[inline]
pub fn write_fixed(
    format: WireFormat,
    value: &impl StoredValue,
    zone: &mut Zone,
    server: &impl Server,
    out: &mut [u8; LONGEST],
) -> Option<usize> {
    Some(match format {
        WireFormat::BoolText => text::word(if value.truth() { b"t" } else { b"f" }, out),
        WireFormat::Int16Text => text::integer(i16::from_le_bytes(value.fixed()), out),
        WireFormat::Int32Text => text::integer(i32::from_le_bytes(value.fixed()), out),
        WireFormat::Int64Text => text::integer(i64::from_le_bytes(value.fixed()), out),
        WireFormat::UInt32Text => text::integer(u32::from_le_bytes(value.fixed()), out),
        WireFormat::UInt64Text => text::integer(u64::from_le_bytes(value.fixed()), out),
        WireFormat::Float32Text => float::float4(f32::from_le_bytes(value.fixed()), server, out),
        WireFormat::Float64Text => float::float8(f64::from_le_bytes(value.fixed()), server, out),
        WireFormat::DateText => return moment::date(value.days(), out),
        WireFormat::TimeText => return moment::time(i64::from_le_bytes(value.fixed()), out),
        WireFormat::TimestampText => return moment::timestamp(value.micros(), out),
        WireFormat::TimestampTzText => return moment::timestamptz(value.micros(), zone, out),
        WireFormat::UuidText => text::uuid(value.fixed(), out),
        WireFormat::BoolBinary => text::word(&[u8::from(value.truth())], out),
        WireFormat::Word2 => text::word(&reversed::<2>(value.fixed()), out),
        WireFormat::Word4 => text::word(&reversed::<4>(value.fixed()), out),
        WireFormat::Word8 => text::word(&reversed::<8>(value.fixed()), out),
        WireFormat::DateBinary => text::word(&value.days().to_be_bytes(), out),
        WireFormat::TimestampBinary => text::word(&value.micros().to_be_bytes(), out),
        WireFormat::Bytes16 => text::word(&value.fixed::<16>(), out),
        WireFormat::Bytes | WireFormat::ByteaText | WireFormat::NumericBinary | WireFormat::ByServer => return None,
    })
}

/// From the order of the stored bytes to that of the wire.
fn reversed<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes.reverse();
    bytes
}
