//! The texts of statements, as far as they can be read without a parser: their one form for the key, hints, the statement inside a
//! statement. Pure functions.

pub mod hint;
pub mod normalize;
mod shape;
mod statement;

pub use shape::text_shape;
