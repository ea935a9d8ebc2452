//! The types of anonymous records. A session numbers them as it meets them, and the number stands in each value, so it means nothing to
//! others. A stored value carries a description of its type instead: for each attribute type, modifier, collation and name. Whoever reads
//! it asks the server for the number that this type has in its own session. Kept per column of one query; no lock.
//!
//! A stored value is the body of the varlena, then the description, then the length of the description in four bytes.

use std::ffi::CStr;
use std::mem::offset_of;

use arrow_cache_core::{OutOfMemory, Reason, Room, RoomyVec};
use pgrx::pg_sys;

use crate::pg::record_type::{self, Attribute};
use crate::pg::varlena;

/// Bytes of a length, or of a number.
const WORD: usize = size_of::<u32>();
/// Bytes of an attribute's description in front of its name, which ends with a NUL.
const ATTRIBUTE: usize = 3 * WORD;
/// Where the type's number stands in the body, and behind it the OID of the type (HeapTupleHeaderData, `t_datum`).
const NUMBER: usize = 0;
const TYPE: usize = WORD;
/// Bytes that the header of a row takes in the body.
const ROW_HEADER: usize = offset_of!(pg_sys::HeapTupleHeaderData, t_bits) - varlena::HEADER;

/// Describes the types of values that are being stored.
#[derive(Default)]
pub struct Described {
    /// The number of the type that was described last.
    number: Option<i32>,
    description: Vec<u8>,
}

impl Described {
    /// The description of the type of a value with this body, and its length, as they follow the body.
    ///
    /// # Errors
    /// `RecordType` for a record whose type has no description: one with records in it. `UnsupportedType` for a body that is none of a
    /// record, `OutOfMemory`.
    pub fn of(&mut self, body: &[u8]) -> Result<&[u8], Reason> {
        if body.len() < ROW_HEADER || word(body, TYPE) != Some(pg_sys::RECORDOID.to_u32()) {
            return Err(Reason::UnsupportedType);
        }
        let number = word(body, NUMBER).map(u32::cast_signed).ok_or(Reason::UnsupportedType)?;
        if self.number != Some(number) {
            self.number = None;
            self.description.clear();
            let description = &mut self.description;
            record_type::attributes(number, |attribute| add(description, attribute))
                .ok_or(Reason::UnsupportedType)??;
            let length = self.description.len() as u32;
            self.description.add_all(&length.to_le_bytes())?;
            self.number = Some(number);
        }
        Ok(&self.description)
    }
}

fn add(description: &mut Vec<u8>, attribute: Attribute<'_>) -> Result<(), Reason> {
    let Attribute { type_oid, typmod, collation, name, is_dropped } = attribute;
    if is_dropped || matches!(type_oid, pg_sys::RECORDOID | pg_sys::RECORDARRAYOID) {
        return Err(Reason::RecordType);
    }
    for part in [type_oid.to_u32(), typmod.cast_unsigned(), collation.to_u32()] {
        description.add_all(&part.to_le_bytes())?;
    }
    Ok(description.add_all(name.to_bytes_with_nul())?)
}

/// Finds the numbers of the types of stored values.
#[derive(Default)]
pub struct Numbered {
    /// The description that was met last, and the number of its type in this session.
    description: Vec<u8>,
    number: Option<i32>,
}

impl Numbered {
    /// Finds the number for a stored value. Raises as the server does when it has no memory for the type, or one of an attribute is gone.
    ///
    /// # Errors
    /// There is no memory for the description.
    pub fn find(&mut self, stored: &[u8]) -> Result<(), OutOfMemory> {
        let (_, description) = parts(stored);
        if self.number.is_none() || self.description != description {
            self.number = None;
            self.description.clear();
            self.description.make_room(description.len())?;
            self.description.extend_from_slice(description);
            self.number = Some(record_type::number(attributes(description)));
        }
        Ok(())
    }

    /// The number that was found last.
    pub fn number(&self) -> i32 {
        // `find` comes before.
        self.number.unwrap_or(-1)
    }
}

/// The body of a stored value, which lacks the number of this session.
pub fn body(stored: &[u8]) -> &[u8] {
    parts(stored).0
}

/// Body and description of a stored value, which `Described` has put together.
fn parts(stored: &[u8]) -> (&[u8], &[u8]) {
    let (rest, length) = stored.split_at(stored.len() - WORD);
    let length = word(length, 0).unwrap_or(0) as usize;
    rest.split_at(rest.len() - length)
}

fn attributes(mut description: &[u8]) -> impl Iterator<Item = Attribute<'_>> + Clone {
    std::iter::from_fn(move || {
        let name = CStr::from_bytes_until_nul(description.get(ATTRIBUTE..)?).ok()?;
        let attribute = Attribute {
            type_oid: pg_sys::Oid::from(word(description, 0)?),
            typmod: word(description, WORD)?.cast_signed(),
            collation: pg_sys::Oid::from(word(description, 2 * WORD)?),
            name,
            is_dropped: false,
        };
        description = &description[ATTRIBUTE + name.to_bytes_with_nul().len()..];
        Some(attribute)
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
