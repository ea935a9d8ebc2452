//! The table of types: how the values of each PostgreSQL type are stored.
//!
//! Where Arrow has no exact type, a column keeps the flat image of each value: the
//! bytes of a value of fixed length, the detoasted body of a varlena. Those bytes mean the same in
//! every session of the database until DDL changes the type, which makes the entry outdated.
//! numeric is kept as the text that its output function gives under any settings, and from which the same value can be
//! built again. A domain is stored as the type it rests on.

use arrow_cache_core::Reason;
use arrow_schema::{DataType, TimeUnit};
use pgrx::pg_sys;
use std::sync::OnceLock;

use crate::pg::backend;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::row_type::RowType;

/// How the values of a column are stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// bool
    Bool,
    /// int2
    Int16,
    /// int4
    Int32,
    /// int8, money
    Int64,
    /// oid, xid, cid, the reg* types
    UInt32,
    /// xid8, pg_lsn
    UInt64,
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Column {
    /// Its PostgreSQL type.
    pub type_oid: pg_sys::Oid,
    /// Its type modifier.
    pub typmod: i32,
    /// The type itself, or below a domain the type that it rests on.
    pub base_type: pg_sys::Oid,
    /// The modifier of that type.
    pub base_typmod: i32,
    /// Length of its values (pg_type.typlen).
    pub length: i16,
    /// True if its values are passed by value.
    pub by_value: bool,
    /// How they are stored.
    pub kind: Kind,
}

impl Column {
    /// A column of values of this type, which have this length and are passed by value or by reference. To be called in
    /// a transaction, as it asks the catalog.
    pub fn new(type_oid: pg_sys::Oid, typmod: i32, length: i16, by_value: bool) -> Self {
        let (base_type, base_typmod) = base_of(type_oid, typmod);
        let kind = kind_of(base_type, length);
        Self { type_oid, typmod, base_type, base_typmod, length, by_value, kind }
    }

    /// The column that an attribute of a row type is. As `new`.
    pub fn of_attribute(attribute: &pg_sys::FormData_pg_attribute) -> Self {
        Self::new(attribute.atttypid, attribute.atttypmod, attribute.attlen, attribute.attbyval)
    }

    /// The Arrow type of the stored column.
    pub fn storage_type(&self) -> DataType {
        match self.kind {
            Kind::Bool => DataType::Boolean,
            Kind::Int16 => DataType::Int16,
            Kind::Int32 => DataType::Int32,
            Kind::Int64 => DataType::Int64,
            Kind::UInt32 => DataType::UInt32,
            Kind::UInt64 => DataType::UInt64,
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

    /// Text of a database that is not in UTF-8.
    pub fn is_other_text(&self) -> bool {
        self.kind == Kind::FlatVarlena
            && matches!(self.base_type, pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID | pg_sys::JSONOID)
    }

    /// Bytes that describe the column in a stored entry.
    fn description(&self) -> [u8; DESCRIPTION] {
        let mut bytes = [self.kind as u8; DESCRIPTION];
        bytes[..4].copy_from_slice(&self.type_oid.to_u32().to_le_bytes());
        bytes[4..8].copy_from_slice(&self.typmod.to_le_bytes());
        bytes
    }
}

/// True if the values of the columns leave this session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Records {
    /// Yes, into the store. Only the session that made the type of an anonymous record knows its attributes, so such
    /// records are refused.
    Stored,
    /// No: anonymous records may stay as they are.
    Local,
}

/// The columns of a row type, in order. To be called in a transaction.
///
/// # Errors
/// `RecordType` when a column has anonymous records that would be stored; `UnsupportedType` for another
/// pseudo-type.
pub fn columns_of(row_type: RowType<'_>, records: Records) -> Result<Vec<Column>, Reason> {
    row_type
        .attributes()
        .map(|attribute| {
            check(attribute, records)?;
            Ok(Column::of_attribute(attribute))
        })
        .collect()
}

/// Bytes of the description of a column.
const DESCRIPTION: usize = 9;

/// The description that is stored with an entry and compared on a hit.
pub fn describe(columns: &[Column]) -> Vec<u8> {
    columns.iter().flat_map(Column::description).collect()
}

/// Returns true if this is the description of these columns.
pub fn are_described(columns: &[Column], description: &[u8]) -> bool {
    description.len() == columns.len() * DESCRIPTION
        && columns.iter().zip(description.chunks_exact(DESCRIPTION)).all(|(column, own)| column.description() == *own)
}

/// Checks that values of this attribute can be in a stored result.
fn check(attribute: &pg_sys::FormData_pg_attribute, records: Records) -> Result<(), Reason> {
    match attribute.atttypid {
        pg_sys::RECORDOID | pg_sys::RECORDARRAYOID if records == Records::Stored => Err(Reason::RecordType),
        pg_sys::VOIDOID if records == Records::Stored => Err(Reason::UnsupportedType),
        pg_sys::INTERNALOID => Err(Reason::UnsupportedType),
        _ if attribute.attlen < -2 || attribute.attlen == 0 => Err(Reason::UnsupportedType),
        _ => Ok(()),
    }
}

/// The type that a domain rests on, with its modifier; any other type itself. A type that is gone is no domain.
fn base_of(type_oid: pg_sys::Oid, typmod: i32) -> (pg_sys::Oid, i32) {
    let mut found = (type_oid, typmod);
    while found.0.to_u32() >= FIRST_UNPINNED_OID {
        let row = CatalogRow::find(pg_sys::SysCacheIdentifier::TYPEOID, found.0);
        match row.as_ref().and_then(CatalogRow::data_type) {
            Some(row) if row.typtype as u8 == pg_sys::TYPTYPE_DOMAIN => found = (row.typbasetype, row.typtypmod),
            _ => break,
        }
    }
    found
}

fn kind_of(base_type: pg_sys::Oid, length: i16) -> Kind {
    match base_type {
        pg_sys::BOOLOID => Kind::Bool,
        pg_sys::INT2OID => Kind::Int16,
        pg_sys::INT4OID => Kind::Int32,
        pg_sys::INT8OID | pg_sys::MONEYOID => Kind::Int64,
        pg_sys::OIDOID
        | pg_sys::XIDOID
        | pg_sys::CIDOID
        | pg_sys::REGPROCOID
        | pg_sys::REGPROCEDUREOID
        | pg_sys::REGOPEROID
        | pg_sys::REGOPERATOROID
        | pg_sys::REGCLASSOID
        | pg_sys::REGTYPEOID
        | pg_sys::REGROLEOID
        | pg_sys::REGNAMESPACEOID
        | pg_sys::REGCONFIGOID
        | pg_sys::REGDICTIONARYOID
        | pg_sys::REGCOLLATIONOID => Kind::UInt32,
        pg_sys::XID8OID | pg_sys::PG_LSNOID => Kind::UInt64,
        pg_sys::FLOAT4OID => Kind::Float32,
        pg_sys::FLOAT8OID => Kind::Float64,
        pg_sys::DATEOID => Kind::Date,
        pg_sys::TIMEOID => Kind::Time,
        pg_sys::TIMESTAMPOID => Kind::Timestamp,
        pg_sys::TIMESTAMPTZOID => Kind::TimestampTz,
        pg_sys::UUIDOID => Kind::Uuid,
        pg_sys::NUMERICOID => Kind::Numeric,
        pg_sys::BYTEAOID => Kind::Bytea,
        // Arrow text is UTF-8 by definition; in another encoding the bytes are kept as they are.
        pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID | pg_sys::JSONOID if is_utf8() => Kind::Text,
        pg_sys::NAMEOID if is_utf8() => Kind::Name,
        _ => match length {
            -1 => Kind::FlatVarlena,
            -2 => Kind::FlatCString,
            _ => Kind::FlatFixed,
        },
    }
}

/// Returns true if the text of this database is UTF-8.
pub fn is_utf8() -> bool {
    static UTF8: OnceLock<bool> = OnceLock::new();
    *UTF8.get_or_init(|| backend::database_encoding() == pg_sys::pg_enc::PG_UTF8 as i32)
}

/// Returns true if each of these values is UTF-8. They begin, or end, at these places.
pub fn are_texts(values: &[u8], places: &[[u8; size_of::<u32>()]]) -> bool {
    values.is_ascii()
        || std::str::from_utf8(values)
            .is_ok_and(|text| places.iter().all(|place| text.is_char_boundary(u32::from_le_bytes(*place) as usize)))
}
