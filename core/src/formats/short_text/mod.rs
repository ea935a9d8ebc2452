//! Values whose text is short, as the server's output functions write it under the settings of exports (DateStyle ISO, IntervalStyle postgres, TimeZone UTC). Pure functions over
//! the server's own image of a value; nothing here is shared. What is not known here has no text here: the server is asked then.
//!
//! | file | what it holds |
//! |---|---|
//! | `interval` | interval |
//! | `network` | inet and cidr |
//! | `range` | ranges of integers, dates and timestamps |

pub mod interval;
pub mod network;
pub mod range;

use crate::formats::digit_pairs::digit_pair;

/// None of these texts is longer than a range of two quoted timestamps before Christ: 71 bytes.
const ROOM: usize = 128;

/// Room for a short text, used again for each one.
#[derive(Debug)]
pub struct ShortText {
    bytes: [u8; ROOM],
    length: usize,
}

impl ShortText {
    /// Room without a text.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; ROOM], length: 0 }
    }

    fn begin(&mut self) -> &mut Self {
        self.length = 0;
        self
    }

    fn end(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    #[inline]
    fn add(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    #[inline]
    fn integer(&mut self, value: impl itoa::Integer) {
        self.add(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Both digits of a number below 100.
    #[inline]
    fn pair(&mut self, value: u64) {
        self.add(&digit_pair(value as usize));
    }
}

impl Default for ShortText {
    fn default() -> Self {
        Self::new()
    }
}
