//! The columns of a batch that does not go out as it is stored. A column that needs no change lies on the stored bytes, any other in
//! memory of its own.

use std::borrow::Cow;

use arrow_cache_core::{OutOfMemory, RoomyVec};

use super::bitmap;
use crate::arrow::ipc_message::Body;

/// The values of a column, of the elements of its arrays, or of an attribute of its rows.
pub struct Array<'a> {
    /// Which of them are not NULL, one bit each; empty if none is NULL.
    pub validity: Cow<'a, [u8]>,
    /// What they are.
    pub values: Values<'a>,
}

/// Values in one of Arrow's layouts.
pub enum Values<'a> {
    /// One bit each.
    Bits(Cow<'a, [u8]>),
    /// That many bytes each.
    Fixed(usize, Cow<'a, [u8]>),
    /// Any number of bytes each: the ends of the values, behind a zero, in words of four bytes; then the bytes of all.
    Variable(Cow<'a, [u8]>, Cow<'a, [u8]>),
    /// Lists: ends in the same way, and the elements of all.
    List(Vec<u8>, Box<Array<'a>>),
    /// Rows: their attributes.
    Struct(Vec<Array<'a>>),
}

/// Bytes of an end of a value.
const END: usize = size_of::<i32>();

impl Array<'_> {
    /// The same in memory of its own.
    ///
    /// # Errors
    /// There is no memory.
    pub fn into_owned(self) -> Result<Array<'static>, OutOfMemory> {
        let values = match self.values {
            Values::Bits(bits) => Values::Bits(owned(bits)?),
            Values::Fixed(width, bytes) => Values::Fixed(width, owned(bytes)?),
            Values::Variable(ends, bytes) => Values::Variable(owned(ends)?, owned(bytes)?),
            Values::List(ends, elements) => Values::List(ends, Box::new(elements.into_owned()?)),
            Values::Struct(attributes) => {
                let mut all = Vec::with_room(attributes.len())?;
                attributes.into_iter().try_for_each(|attribute| all.add(attribute.into_owned()?))?;
                Values::Struct(all)
            }
        };
        Ok(Array { validity: owned(self.validity)?, values })
    }

    /// Adds some of the values to the body of a message.
    ///
    /// # Errors
    /// There is no memory for what has to be copied.
    pub fn add_to<'b>(&'b self, body: &mut Body<'b>, start: usize, rows: usize) -> Result<(), OutOfMemory> {
        let nulls = if self.validity.is_empty() { 0 } else { bitmap::zeroes(&self.validity, start, rows) };
        let validity = if nulls == 0 { Cow::Borrowed(&[][..]) } else { bitmap::part(&self.validity, start, rows)? };
        body.node(rows, nulls, validity)?;
        match &self.values {
            Values::Bits(bits) => body.buffer(bitmap::part(bits, start, rows)?),
            Values::Fixed(width, bytes) => body.buffer(Cow::Borrowed(&bytes[start * width..(start + rows) * width])),
            Values::Variable(ends, bytes) => {
                let (ends, first, last) = part_of_ends(ends, start, rows)?;
                body.buffer(ends)?;
                body.buffer(Cow::Borrowed(&bytes[first..last]))
            }
            Values::List(ends, elements) => {
                let (ends, first, last) = part_of_ends(ends, start, rows)?;
                body.buffer(ends)?;
                elements.add_to(body, first, last - first)
            }
            Values::Struct(attributes) => {
                attributes.iter().try_for_each(|attribute| attribute.add_to(body, start, rows))
            }
        }
    }

    /// Nodes that `add_to` adds, the parts of values included.
    pub fn nodes(&self) -> usize {
        1 + match &self.values {
            Values::List(_, elements) => elements.nodes(),
            Values::Struct(attributes) => attributes.iter().map(Array::nodes).sum(),
            _ => 0,
        }
    }
}

/// The ends of some values, counted from where the first of them begins. Returns also where the first begins and where the last ends.
fn part_of_ends(ends: &[u8], start: usize, rows: usize) -> Result<(Cow<'_, [u8]>, usize, usize), OutOfMemory> {
    let ends = &ends[start * END..(start + rows + 1) * END];
    let (words, _) = ends.as_chunks::<END>();
    let word = |index: usize| i32::from_le_bytes(words[index]);
    let (first, last) = (word(0), word(rows));
    let counted = if first == 0 {
        Cow::Borrowed(ends)
    } else {
        let mut moved = Vec::with_room(ends.len())?;
        for index in 0..=rows {
            moved.add_all(&(word(index) - first).to_le_bytes())?;
        }
        Cow::Owned(moved)
    };
    Ok((counted, first as usize, last as usize))
}

fn owned(bytes: Cow<'_, [u8]>) -> Result<Cow<'static, [u8]>, OutOfMemory> {
    Ok(Cow::Owned(match bytes {
        Cow::Borrowed(bytes) => Vec::copy_of(bytes)?,
        Cow::Owned(bytes) => bytes,
    }))
}
