//! The wire formats of a column. Plain values: nothing here is shared.

/// How the values of a column become bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireFormat {
    /// bool: `t` or `f`
    BoolText,
    /// int2
    Int16Text,
    /// int4
    Int32Text,
    /// int8
    Int64Text,
    /// oid, xid and cid
    UInt32Text,
    /// xid8
    UInt64Text,
    /// float4: the shortest text that reads back as the same value
    Float32Text,
    /// float8: the shortest text that reads back as the same value
    Float64Text,
    /// date, ISO
    DateText,
    /// time
    TimeText,
    /// timestamp, ISO
    TimestampText,
    /// timestamptz, ISO, at the offset of the session's zone
    TimestampTzText,
    /// uuid, with hyphens
    UuidText,
    /// bytea as `\x` and hexadecimal digits
    ByteaText,
    /// The stored bytes, which vary in length
    Bytes,
    /// bool as a byte
    BoolBinary,
    /// Two bytes, most significant first
    Word2,
    /// Four bytes, most significant first
    Word4,
    /// Eight bytes, most significant first
    Word8,
    /// date as days since 2000
    DateBinary,
    /// timestamp as microseconds since 2000
    TimestampBinary,
    /// The sixteen stored bytes
    Bytes16,
    /// numeric: header and digits of base 10000
    NumericBinary,
    /// Bytes that the server makes of the value, by the output or send function of its type
    ByServer,
}

/// No text or binary format of a value that is stored with a fixed length takes more bytes.
pub const LONGEST: usize = 64;

impl WireFormat {
    /// Bytes of the longest value. For values that vary in length: the bytes that come in addition to their own.
    pub(super) fn room(self) -> usize {
        match self {
            Self::Bytes | Self::ByServer => 0,
            Self::BoolText | Self::BoolBinary => 1,
            Self::Word2 | Self::ByteaText => 2,
            Self::Word4 | Self::DateBinary => 4,
            Self::Int16Text => 6,
            Self::Word8 | Self::TimestampBinary => 8,
            Self::Int32Text | Self::UInt32Text => 11,
            Self::Float32Text | Self::TimeText | Self::DateText | Self::Bytes16 | Self::NumericBinary => 16,
            Self::Int64Text | Self::UInt64Text => 20,
            Self::Float64Text => 24,
            Self::UuidText | Self::TimestampText => 36,
            Self::TimestampTzText => 48,
        }
    }
}
