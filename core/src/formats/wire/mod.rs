//! Rows as DataRow messages, text or binary, or as those of COPY, byte for byte as the server's output functions give
//! them: rows of stored columns, and those that are about to be stored. Pure functions over their bytes; nothing here
//! is shared.
//!
//! A [`WireFormat`] says how the values of one column become bytes. A column without a format here has
//! [`WireFormat::ByServer`]: the server makes its bytes. Values that no function of the server makes (a date beyond all
//! dates) are refused; the caller then sends the row in another way.
//!
//! | file | what it holds |
//! |---|---|
//! | `encoder` | a row as a message |
//! | `copied_row` | what COPY makes of a row |
//! | `fixed` | which function writes a value of fixed length |
//! | `binary`, `float`, `moment`, `text` | those functions |
//! | `zone` | offsets of a time zone |
//! | `stored_value` | what is read of a value |
//! | `server` | what the server does for the encoder |
//! | `format` | the formats |

mod binary;
mod copied_row;
mod encoder;
mod fixed;
mod float;
mod format;
mod moment;
mod server;
mod stored_value;
mod text;
mod zone;

pub use copied_row::RowShape;
pub use encoder::{Encoder, MessageBuffer, Outcome, count_messages};
pub use format::{LONGEST, WireFormat};
pub use server::Server;
pub use stored_value::StoredValue;
pub use zone::{Span, Zone, stretch};
