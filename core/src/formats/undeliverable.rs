//! Values that cannot be delivered as Arrow, and the option that helps. Pure values: nothing here is shared.

use std::fmt;

use crate::formats::decimal::Misfit;
use crate::room::OutOfMemory;

/// Characters of a value that an error shows.
const SHOWN: usize = 60;

/// A value that its column's Arrow type cannot hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unrepresentable {
    /// What is wrong with it.
    pub why: Why,
    /// Its text, or for an array its bounds; cut short if it is long.
    pub value: String,
}

/// What is wrong with a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// An array with several dimensions, or with a lower bound other than 1.
    ArrayBounds,
    /// A numeric that the type asked for cannot hold.
    Number(Misfit),
    /// A date, time or interval beyond the range of its Arrow type.
    Time,
    /// An infinite date or timestamp, or 24:00, of which an error was asked for.
    SpecialTime,
    /// The values of the batch take more than 2 GB.
    TooLarge,
    /// Nothing is wrong: there is no memory for it.
    OutOfMemory,
}

impl From<OutOfMemory> for Unrepresentable {
    fn from(_: OutOfMemory) -> Self {
        Self { why: Why::OutOfMemory, value: String::new() }
    }
}

impl Unrepresentable {
    /// A value, given as its text.
    #[must_use]
    pub fn new(why: Why, value: &[u8]) -> Self {
        // No character takes more than four bytes.
        let (start, rest) = value.split_at(value.len().min(SHOWN * 4));
        let mut value = String::from_utf8_lossy(start).into_owned();
        let end = value.char_indices().nth(SHOWN).map(|(end, _)| end);
        if end.is_some() || !rest.is_empty() {
            value.truncate(end.unwrap_or(value.len()));
            value.push_str("...");
        }
        Self { why, value }
    }

    /// Name and value of the option that helps, if there is one.
    #[must_use]
    pub const fn remedy(&self) -> Option<(&'static str, &'static str)> {
        match self.why {
            Why::ArrayBounds | Why::Time => Some(("on_unrepresentable", "text")),
            Why::Number(Misfit::NotExact) => Some(("numeric", "float64_nearest")),
            Why::Number(_) => Some(("numeric", "text")),
            Why::SpecialTime => Some(("special_times", "null")),
            Why::TooLarge | Why::OutOfMemory => None,
        }
    }
}

impl fmt::Display for Unrepresentable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = &self.value;
        match self.why {
            Why::ArrayBounds => write!(f, "an array with the bounds {value} is no Arrow list"),
            Why::Number(Misfit::NotFinite) => write!(f, "{value} is no decimal"),
            Why::Number(Misfit::OutOfRange) | Why::Time => write!(f, "{value} is out of range"),
            Why::Number(Misfit::NotExact) => write!(f, "{value} has more digits than can be kept"),
            Why::SpecialTime => write!(f, "{value} is no moment that all readers of Arrow know"),
            Why::TooLarge => write!(f, "the values of one batch take more than 2 GB"),
            Why::OutOfMemory => write!(f, "out of memory"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_between_characters() {
        for (character, bytes) in [("7", 1), ("\u{e4}", 2), ("\u{1f600}", 4)] {
            let fits = character.repeat(SHOWN);
            assert_eq!(fits.len(), SHOWN * bytes);
            assert_eq!(Unrepresentable::new(Why::Time, fits.as_bytes()).value, fits);
            for longer in [SHOWN + 1, SHOWN * 10] {
                let value = Unrepresentable::new(Why::Time, character.repeat(longer).as_bytes()).value;
                assert_eq!(value, format!("{fits}..."));
            }
        }
    }
}
