//! The text of ranges (rangetypes.c, `range_out`).
//!
//! A body is what follows the varlena header (utils/rangetypes.h, `RangeType`): the OID of the type, the bounds that there are, and a byte of flags. Bounds of these types have one
//! length, so that none is padded.

use super::ShortText;
use crate::formats::wire::{LONGEST, Span, Zone, moment};

const EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
/// There is no lower bound: it is infinite, or NULL, which no range has any more.
const NO_LOWER: u8 = 0x08 | 0x20;
const NO_UPPER: u8 = 0x10 | 0x40;

/// What a range is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bounds {
    /// int4
    Int32,
    /// int8
    Int64,
    /// date
    Date,
    /// timestamp
    Timestamp,
    /// timestamptz, in UTC
    TimestampTz,
}

/// The text of a range. `None` if this is no body, or a bound has no text.
#[must_use]
pub fn text<'r>(body: &[u8], bounds: Bounds, room: &'r mut ShortText) -> Option<&'r [u8]> {
    let text = room.begin();
    let (&flags, rest) = body.split_last()?;
    if flags & EMPTY != 0 {
        text.add(b"empty");
        return Some(text.end());
    }
    let mut values = rest.get(size_of::<u32>()..)?;
    text.add(if flags & LOWER_INCLUSIVE != 0 { b"[" } else { b"(" });
    if flags & NO_LOWER == 0 {
        values = bound(values, bounds, text)?;
    }
    text.add(b",");
    if flags & NO_UPPER == 0 {
        values = bound(values, bounds, text)?;
    }
    text.add(if flags & UPPER_INCLUSIVE != 0 { b"]" } else { b")" });
    values.is_empty().then(|| text.end())
}

/// Writes the first of some values; the others are left.
fn bound<'b>(values: &'b [u8], bounds: Bounds, text: &mut ShortText) -> Option<&'b [u8]> {
    const UTC: fn(usize, i64) -> Span = |_, _| Span { start: i64::MIN, end: i64::MAX, offset: 0 };
    let mut out = [0; LONGEST];
    let (length, rest) = match bounds {
        Bounds::Int32 | Bounds::Date => {
            let (value, rest) = values.split_first_chunk()?;
            let value = i32::from_ne_bytes(*value);
            if bounds == Bounds::Int32 {
                text.integer(value);
                return Some(rest);
            }
            (moment::date(value, &mut out)?, rest)
        }
        Bounds::Int64 | Bounds::Timestamp | Bounds::TimestampTz => {
            let (value, rest) = values.split_first_chunk()?;
            let value = i64::from_ne_bytes(*value);
            match bounds {
                Bounds::Timestamp => (moment::timestamp(value, &mut out)?, rest),
                Bounds::TimestampTz => (moment::timestamptz(value, &mut Zone::new(UTC, 0), &mut out)?, rest),
                _ => {
                    text.integer(value);
                    return Some(rest);
                }
            }
        }
    };
    let value = &out[..length];
    // Of all that has to be quoted, these values may have spaces alone.
    let quote: &[u8] = if value.contains(&b' ') { b"\"" } else { b"" };
    text.add(quote);
    text.add(value);
    text.add(quote);
    Some(rest)
}
