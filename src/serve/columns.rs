//! How each column of a hit becomes bytes on the wire: by a form of ours where the type and the reader's settings have
//! one, else by the type's own output or send function. Reads settings of the backend; keeps nothing.

use arrow_cache_core::formats::wire::Form;
use pgrx::pg_sys;

use crate::arrow::column::{Column, Kind};
use crate::pg::{backend, server};

/// What of the session decides how values look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Text has to be converted, or checked, for the client.
    converts: bool,
    /// Floats are printed in their shortest exact form.
    shortest_floats: bool,
    /// Dates are printed in ISO form.
    iso_dates: bool,
    /// bytea is printed in hexadecimal.
    hex_bytea: bool,
}

impl Look {
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
            }
        }
    }

    /// The form of a column, binary or text.
    pub fn form(self, column: &Column, binary: bool) -> Form {
        let form = if binary { self.binary(column) } else { self.text(column) };
        form.unwrap_or(Form::Piece)
    }

    fn text(self, column: &Column) -> Option<Form> {
        match column.kind {
            Kind::Bool => Some(Form::BoolText),
            Kind::Int16 => Some(Form::Int16Text),
            Kind::Int32 => Some(Form::Int32Text),
            // money is printed by the locale.
            Kind::Int64 => (column.base_type == pg_sys::INT8OID).then_some(Form::Int64Text),
            // The others are printed as names.
            Kind::UInt32 => {
                matches!(column.base_type, pg_sys::OIDOID | pg_sys::XIDOID | pg_sys::CIDOID).then_some(Form::UInt32Text)
            }
            Kind::UInt64 if column.base_type == pg_sys::PG_LSNOID => Some(Form::LsnText),
            Kind::UInt64 => Some(Form::UInt64Text),
            Kind::Float32 => self.shortest_floats.then_some(Form::Float32Text),
            Kind::Float64 => self.shortest_floats.then_some(Form::Float64Text),
            Kind::Date => self.iso_dates.then_some(Form::DateText),
            Kind::Time => Some(Form::TimeText),
            Kind::Timestamp => self.iso_dates.then_some(Form::TimestampText),
            Kind::TimestampTz => self.iso_dates.then_some(Form::TimestampTzText),
            Kind::Uuid => Some(Form::UuidText),
            Kind::Numeric => Some(Form::Bytes),
            Kind::Bytea => self.hex_bytea.then_some(Form::ByteaText),
            _ => self.characters(column),
        }
    }

    fn binary(self, column: &Column) -> Option<Form> {
        match column.kind {
            Kind::Bool => Some(Form::BoolBinary),
            Kind::Int16 => Some(Form::Word2),
            Kind::Int32 | Kind::UInt32 | Kind::Float32 => Some(Form::Word4),
            Kind::Int64 | Kind::UInt64 | Kind::Float64 | Kind::Time => Some(Form::Word8),
            Kind::Date => Some(Form::DateBinary),
            Kind::Timestamp | Kind::TimestampTz => Some(Form::TimestampBinary),
            Kind::Uuid => Some(Form::Bytes16),
            Kind::Numeric => Some(Form::NumericBinary),
            Kind::Jsonb => (!self.converts).then_some(Form::JsonbBinary),
            Kind::Bytea => Some(Form::Bytes),
            _ => self.characters(column),
        }
    }

    /// The same for text and binary: the characters.
    fn characters(self, column: &Column) -> Option<Form> {
        let is_text = match column.kind {
            Kind::Text | Kind::Name | Kind::Jsonb => true,
            // Text of a database that is not in UTF-8.
            Kind::FlatVarlena => {
                matches!(column.base_type, pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID | pg_sys::JSONOID)
            }
            _ => false,
        };
        (is_text && !self.converts).then_some(Form::Bytes)
    }
}

/// `bytea_output` as hexadecimal digits (utils/bytea.h).
const BYTEA_OUTPUT_HEX: i32 = 1;
