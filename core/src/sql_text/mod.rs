//! The texts of statements, as far as they can be read without a parser. Pure functions.
//!
//! | file | what it holds |
//! |---|---|
//! | `hint` | hints for the cache in comments |
//! | `statement_start` | where a statement begins, with the comments before it |
//! | `fingerprint` | a hash of the text without numbers and strings |
//! | `clock_words` | words for the present time |
//! | `lexer` | white space, comments, identifiers and quotes |

mod clock_words;
mod fingerprint;
pub mod hint;
mod lexer;
pub mod statement_start;

pub use clock_words::has_clock_word;
pub use fingerprint::text_fingerprint;
