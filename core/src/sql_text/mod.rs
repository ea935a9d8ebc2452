//! The texts of statements, as far as they can be read without a parser. Pure functions.
//!
//! | file | what it holds |
//! |---|---|
//! | `hint` | hints for the cache in comments |
//! | `fingerprint` | a hash of the text without numbers and strings |
//! | `clock_words` | words for the present time |
//! | `lexer` | white space, comments and identifiers |

mod clock_words;
mod fingerprint;
pub mod hint;
mod lexer;

pub use clock_words::has_clock_word;
pub use fingerprint::text_fingerprint;
