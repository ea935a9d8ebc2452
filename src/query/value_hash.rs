//! Hashes of column values, by which writers and answers name the rows that they concern. One function for both: equal
//! values must have the same hash, or an answer outlives a change of its rows. Values with the same hash only outdate
//! more. Keeps nothing.

use arrow_cache_core::Hash128;
use pgrx::pg_sys::{self, Datum};

use crate::pg::row::Value;
use crate::pg::varlena::Varlena;

/// Longest text that is hashed, in bytes.
const LONGEST_TEXT: usize = 1000;

/// How values of a type are hashed. Values that are equal have the same form, and the same bytes in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A number of two bytes.
    Int2,
    /// Of four.
    Int4,
    /// Of eight.
    Int8,
    /// A day.
    Date,
    /// A time without a zone.
    Timestamp,
    /// A time with a zone.
    Timestamptz,
    /// True or false.
    Bool,
    /// Sixteen bytes.
    Uuid,
    /// A text.
    Text,
    /// A label, by its OID.
    Enum,
}

/// The form of a type's values; `None` for one whose equal values may have different bytes, or that is not known here.
pub fn form_of(type_oid: pg_sys::Oid) -> Option<Form> {
    match type_oid {
        pg_sys::INT2OID => Some(Form::Int2),
        pg_sys::INT4OID => Some(Form::Int4),
        pg_sys::INT8OID => Some(Form::Int8),
        pg_sys::DATEOID => Some(Form::Date),
        pg_sys::TIMESTAMPOID => Some(Form::Timestamp),
        pg_sys::TIMESTAMPTZOID => Some(Form::Timestamptz),
        pg_sys::BOOLOID => Some(Form::Bool),
        pg_sys::UUIDOID => Some(Form::Uuid),
        pg_sys::TEXTOID | pg_sys::VARCHAROID => Some(Form::Text),
        // SAFETY: reads a catalog.
        other => (unsafe { kept!(pg_sys::get_typtype(other)) } as u8 == pg_sys::TYPTYPE_ENUM).then_some(Form::Enum),
    }
}

impl Form {
    /// Returns true if values of both forms may be compared with each other: whole numbers of all sizes, which have one
    /// hash.
    pub fn goes_with(self, other: Self) -> bool {
        let is_number = |form| matches!(form, Self::Int2 | Self::Int4 | Self::Int8);
        self == other || (is_number(self) && is_number(other))
    }

    /// The hash of a value; `None` for a text that is long, compressed or stored elsewhere. Neither raises nor
    /// allocates.
    ///
    /// # Safety
    /// The value must be one of a type of this form, and not NULL.
    #[inline]
    pub unsafe fn hash(self, value: Datum) -> Option<u64> {
        let word = value.value();
        Some(match self {
            Self::Int2 => i64::from(word as i16).cast_unsigned(),
            Self::Int4 | Self::Date => i64::from(word as i32).cast_unsigned(),
            Self::Int8 | Self::Timestamp | Self::Timestamptz => word as u64,
            Self::Bool => u64::from(word as u8 != 0),
            Self::Enum => u64::from(word as u32),
            // SAFETY: the caller's promise.
            Self::Uuid => unsafe { hash_of_uuid(value) },
            // SAFETY: the caller's promise.
            Self::Text => unsafe { hash_of_text(value) }?,
        })
    }
}

/// # Safety
/// The value must be a UUID.
#[inline(never)]
unsafe fn hash_of_uuid(value: Datum) -> u64 {
    // SAFETY: the caller's promise: it points to so many bytes.
    Hash128::of(unsafe { std::slice::from_raw_parts(value.cast_mut_ptr::<u8>(), 16) }).lo
}

/// `None` for a text that is long, compressed or stored elsewhere.
///
/// # Safety
/// The value must be a text.
#[inline(never)]
unsafe fn hash_of_text(value: Datum) -> Option<u64> {
    // SAFETY: the caller's promise: a value of variable length.
    let body = unsafe { Varlena::of(Value::of(value)) }.plain_body()?;
    (body.len() <= LONGEST_TEXT).then(|| Hash128::of(body).lo)
}
