//! PostgreSQL's `jsonb` to its text and back, without PostgreSQL. Pure functions: nothing here is shared.
//!
//! An image is what follows the varlena header of a jsonb (jsonb.h): a container, which is
//!
//! * a word with the number of its members and its kind: an array, an object, or the array of one that stands for a bare scalar;
//! * an entry of one word per element, or per key and then per value: the kind, and where the data of the member ends;
//! * the data of all members in order: characters as they are, a numeric with a varlena header, a container; nothing for true, false and
//!   null.
//!
//! Numerics and containers begin at multiples of four bytes; zeroes fill the gap. The server counts from the varlena header, which has four
//! bytes itself, so counting from the beginning of the image gives the same places. Words are little-endian.
//!
//! The text is the one that jsonb_out prints, and no other: keys in the order of the image, one space after commas and colons, each
//! character written in one way. So the same image can be built again from it.
//!
//! | file | what it holds |
//! |---|---|
//! | `print` | an image as text |
//! | `parse` | text as an image |
//! | `tokens` | the first step of parsing: text as tokens |
//! | `image` | the parts of an image |

mod image;
mod parse;
mod print;
mod tokens;

pub use image::{DEPTH_MAX, TEXT_MAX};
pub use parse::{Parser, from_text};
pub use print::{Refusal, to_text};
