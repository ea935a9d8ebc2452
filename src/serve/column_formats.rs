//! How each column of a hit becomes bytes on the wire: in a wire format of the core, if there is one for the type under
//! the reader's settings, else by the type's own output or send function. Reads settings of the backend; keeps nothing.

use arrow_cache_core::formats::wire::WireFormat;
use pgrx::pg_sys;

use crate::arrow::column::{Column, Kind};
use crate::pg::{backend, server};

/// The settings of the session that decide how values are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OutputSettings {
    /// Text has to be converted, or checked, for the client.
    converts: bool,
    /// Floats are printed in their shortest exact form.
    shortest_floats: bool,
    /// Dates are printed in ISO form.
    iso_dates: bool,
    /// bytea is printed in hexadecimal.
    hex_bytea: bool,
    /// What output functions of the server read besides the time zone, as it is set.
    set: [i32; 6],
}

/// Returns true if the present client gets text as it is stored.
pub fn keeps_text() -> bool {
    OutputSettings::current().keeps_text()
}

impl OutputSettings {
    /// As the session is set.
    pub fn current() -> Self {
        // SAFETY: plain globals of the backend.
        unsafe {
            let client = server::pg_get_client_encoding();
            Self {
                converts: client != backend::database_encoding() && client != pg_sys::pg_enc::PG_SQL_ASCII as i32,
                shortest_floats: pg_sys::extra_float_digits > 0,
                iso_dates: pg_sys::DateStyle == pg_sys::USE_ISO_DATES as i32,
                hex_bytea: server::bytea_output == BYTEA_OUTPUT_HEX,
                set: [
                    client,
                    pg_sys::DateStyle,
                    pg_sys::DateOrder,
                    pg_sys::IntervalStyle,
                    pg_sys::extra_float_digits,
                    server::bytea_output,
                ],
            }
        }
    }

    /// Returns true if text is sent as it is stored.
    pub fn keeps_text(&self) -> bool {
        !self.converts
    }

    /// The settings that the output functions of listed types read (`rendition`), but for the time zone.
    pub fn set(&self) -> [i32; 6] {
        self.set
    }

    /// The wire format of a column, binary or text.
    pub fn wire_format(self, column: &Column, binary: bool) -> WireFormat {
        let format = if binary { self.binary(column) } else { self.text(column) };
        format.unwrap_or(WireFormat::ByServer)
    }

    fn text(self, column: &Column) -> Option<WireFormat> {
        match column.kind {
            Kind::Bool => Some(WireFormat::BoolText),
            Kind::Int16 => Some(WireFormat::Int16Text),
            Kind::Int32 => Some(WireFormat::Int32Text),
            // money is printed by the locale.
            Kind::Int64 => (column.base_type == pg_sys::INT8OID).then_some(WireFormat::Int64Text),
            // The others are printed as names.
            Kind::UInt32 => matches!(column.base_type, pg_sys::OIDOID | pg_sys::XIDOID | pg_sys::CIDOID)
                .then_some(WireFormat::UInt32Text),
            Kind::UInt64 => (column.base_type == pg_sys::XID8OID).then_some(WireFormat::UInt64Text),
            Kind::Float32 => self.shortest_floats.then_some(WireFormat::Float32Text),
            Kind::Float64 => self.shortest_floats.then_some(WireFormat::Float64Text),
            Kind::Date => self.iso_dates.then_some(WireFormat::DateText),
            Kind::Time => Some(WireFormat::TimeText),
            Kind::Timestamp => self.iso_dates.then_some(WireFormat::TimestampText),
            Kind::TimestampTz => self.iso_dates.then_some(WireFormat::TimestampTzText),
            Kind::Uuid => Some(WireFormat::UuidText),
            Kind::Numeric => Some(WireFormat::Bytes),
            Kind::Bytea => self.hex_bytea.then_some(WireFormat::ByteaText),
            _ => self.characters(column),
        }
    }

    fn binary(self, column: &Column) -> Option<WireFormat> {
        match column.kind {
            Kind::Bool => Some(WireFormat::BoolBinary),
            Kind::Int16 => Some(WireFormat::Word2),
            Kind::Int32 | Kind::UInt32 | Kind::Float32 => Some(WireFormat::Word4),
            Kind::Int64 | Kind::UInt64 | Kind::Float64 | Kind::Time => Some(WireFormat::Word8),
            Kind::Date => Some(WireFormat::DateBinary),
            Kind::Timestamp | Kind::TimestampTz => Some(WireFormat::TimestampBinary),
            Kind::Uuid => Some(WireFormat::Bytes16),
            Kind::Numeric => Some(WireFormat::NumericBinary),
            Kind::Bytea => Some(WireFormat::Bytes),
            _ => self.characters(column),
        }
    }

    /// Types whose text and binary formats are the same: their characters.
    fn characters(self, column: &Column) -> Option<WireFormat> {
        let is_text = matches!(column.kind, Kind::Text | Kind::Name) || column.is_other_text();
        (is_text && !self.converts).then_some(WireFormat::Bytes)
    }
}

/// `bytea_output` as hexadecimal digits (utils/bytea.h).
const BYTEA_OUTPUT_HEX: i32 = 1;
