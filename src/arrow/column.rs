//! How the values of each PostgreSQL type are stored: the one table of types.
//!
//! A column of a type without an Arrow form of its own keeps the flat image of each value: the
//! bytes of a fixed-length one, the detoasted body of a varlena. Those bytes mean the same in
//! every session of the database until DDL changes the type, which invalidates the entry.
//! jsonb is kept so as well: its text would have to be parsed again on every hit, which costs more
//! and may raise where the stored value does not.

use arrow_cache_core::Reason;
use arrow_schema::{DataType, TimeUnit};
use pgrx::pg_sys;

use crate::compat::tuple_attribute;

/// Storage form of one column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// bool
    Bool,
    /// int2
    Int16,
    /// int4
    Int32,
    /// int8
    Int64,
    /// float4, bit for bit
    Float32,
    /// float8, bit for bit
    Float64,
    /// date, as days since 1970
    Date,
    /// time, as microseconds; 24:00:00 included
    Time,
    /// timestamp, as microseconds since 1970
    Timestamp,
    /// timestamptz, as microseconds since 1970 UTC
    TimestampTz,
    /// uuid, 16 bytes
    Uuid,
    /// numeric, as the text that numeric_out gives
    Numeric,
    /// text, varchar, bpchar (padded), json: the characters
    Text,
    /// name: the characters up to the first NUL
    Name,
    /// bytea
    Bytea,
    /// any other varlena: its flat body
    FlatVarlena,
    /// any other type of fixed length
    FlatFixed,
    /// cstring: the characters without the final NUL
    FlatCString,
}

/// One column of a stored result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its PostgreSQL type.
    pub type_oid: pg_sys::Oid,
    /// Its type modifier.
    pub typmod: i32,
    /// Length of its values (pg_type.typlen).
    pub length: i16,
    /// Are its values passed by value?
    pub by_value: bool,
    /// How they are stored.
    pub kind: Kind,
}

impl Column {
    /// The Arrow type of the stored column.
    pub fn storage_type(&self) -> DataType {
        match self.kind {
            Kind::Bool => DataType::Boolean,
            Kind::Int16 => DataType::Int16,
            Kind::Int32 => DataType::Int32,
            Kind::Int64 => DataType::Int64,
            Kind::Float32 => DataType::Float32,
            Kind::Float64 => DataType::Float64,
            Kind::Date => DataType::Date32,
            Kind::Time => DataType::Time64(TimeUnit::Microsecond),
            Kind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Kind::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Kind::Uuid => DataType::FixedSizeBinary(16),
            Kind::Numeric | Kind::Text | Kind::Name => DataType::Utf8,
            Kind::Bytea | Kind::FlatVarlena | Kind::FlatCString => DataType::Binary,
            Kind::FlatFixed => DataType::FixedSizeBinary(i32::from(self.length)),
        }
    }

    /// Bytes that describe the column in a stored entry.
    fn describe(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.type_oid.to_u32().to_le_bytes());
        out.extend_from_slice(&self.typmod.to_le_bytes());
        out.push(self.kind as u8);
    }
}

/// May anonymous records be among the columns?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Records {
    /// No: only the session that made a record type knows its shape.
    Refused,
    /// Yes: the values do not leave this session.
    Local,
}

/// The columns of a row type, in order.
///
/// # Errors
/// `RecordType` when a column is an anonymous record and those are refused; `UnsupportedType` for a
/// pseudo-type.
///
/// # Safety
/// `descriptor` must be valid.
pub unsafe fn columns_of(descriptor: pg_sys::TupleDesc, records: Records) -> Result<Vec<Column>, Reason> {
    // SAFETY: as the caller promises.
    unsafe {
        let utf8 = pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as i32;
        (0..(*descriptor).natts as usize)
            .map(|index| {
                let attribute = &*tuple_attribute(descriptor, index);
                let kind = kind_of(attribute, utf8, records)?;
                Ok(Column {
                    type_oid: attribute.atttypid,
                    typmod: attribute.atttypmod,
                    length: attribute.attlen,
                    by_value: attribute.attbyval,
                    kind,
                })
            })
            .collect()
    }
}

/// The description that is stored with an entry and compared on a hit.
pub fn describe(columns: &[Column]) -> Vec<u8> {
    let mut out = Vec::with_capacity(columns.len() * 9);
    for column in columns {
        column.describe(&mut out);
    }
    out
}

fn kind_of(attribute: &pg_sys::FormData_pg_attribute, utf8: bool, records: Records) -> Result<Kind, Reason> {
    // Arrow text is UTF-8 by definition; in another encoding the bytes are kept as they are.
    let text = if utf8 { Kind::Text } else { Kind::FlatVarlena };
    Ok(match attribute.atttypid {
        pg_sys::BOOLOID => Kind::Bool,
        pg_sys::INT2OID => Kind::Int16,
        pg_sys::INT4OID => Kind::Int32,
        pg_sys::INT8OID => Kind::Int64,
        pg_sys::FLOAT4OID => Kind::Float32,
        pg_sys::FLOAT8OID => Kind::Float64,
        pg_sys::DATEOID => Kind::Date,
        pg_sys::TIMEOID => Kind::Time,
        pg_sys::TIMESTAMPOID => Kind::Timestamp,
        pg_sys::TIMESTAMPTZOID => Kind::TimestampTz,
        pg_sys::UUIDOID => Kind::Uuid,
        pg_sys::NUMERICOID => Kind::Numeric,
        pg_sys::BYTEAOID => Kind::Bytea,
        pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID | pg_sys::JSONOID => text,
        pg_sys::NAMEOID if utf8 => Kind::Name,
        pg_sys::RECORDOID | pg_sys::RECORDARRAYOID if records == Records::Refused => {
            return Err(Reason::RecordType);
        }
        pg_sys::VOIDOID | pg_sys::INTERNALOID => return Err(Reason::UnsupportedType),
        _ => match attribute.attlen {
            -1 => Kind::FlatVarlena,
            -2 => Kind::FlatCString,
            length if length > 0 => Kind::FlatFixed,
            _ => return Err(Reason::UnsupportedType),
        },
    })
}
