//! Rows as COPY sends them: in binary with the body of a DataRow, as a line of text or of CSV, both with the delimiter,
//! the quotes and the word for NULL that COPY has without options. Pure functions over bytes.

use crate::room::{OutOfMemory, RoomyVec};

/// What a row becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowShape {
    /// A DataRow message.
    DataRow,
    /// A CopyData message with a row in COPY's binary format.
    CopyBinary,
    /// A CopyData message with a line in COPY's text format.
    CopyText,
    /// A CopyData message with a line of CSV.
    CopyCsv,
}

impl RowShape {
    /// The type of the message.
    #[must_use]
    pub const fn message_type(self) -> u8 {
        if matches!(self, Self::DataRow) { b'D' } else { b'd' }
    }

    /// Returns true if it is a line, made of values in text.
    #[must_use]
    pub const fn is_line(self) -> bool {
        matches!(self, Self::CopyText | Self::CopyCsv)
    }

    /// Bytes that a line takes at most, for values with so many bytes in all, with their lengths.
    pub(super) const fn longest(self, values: usize) -> usize {
        // Each byte may need another one before it. A length has more bytes than a delimiter, two quotes or `\N`.
        if self.is_line() { 2 * values + 1 } else { values }
    }

    /// Appends the line of a row, of which `values` is what a DataRow has behind the number of its columns.
    pub(super) fn append_line(self, columns: usize, mut values: &[u8], line: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        let (delimiter, null): (u8, &[u8]) = if self == Self::CopyCsv { (b',', b"") } else { (b'\t', b"\\N") };
        for column in 0..columns {
            if column > 0 {
                line.add(delimiter)?;
            }
            let Some((length, rest)) = values.split_first_chunk() else { break };
            let length = i32::from_be_bytes(*length);
            let Ok(length) = usize::try_from(length) else {
                line.add_all(null)?;
                values = rest;
                continue;
            };
            let (value, rest) = rest.split_at(length.min(rest.len()));
            values = rest;
            match self {
                Self::CopyCsv if is_quoted(value, columns == 1) => add_quoted(value, line)?,
                Self::CopyCsv => line.add_all(value)?,
                _ => add_escaped(value, line)?,
            }
        }
        line.add(b'\n')
    }
}

/// Returns true if CSV has quotes around a value: it may be taken for NULL, for the end of the data, or for more.
fn is_quoted(value: &[u8], is_alone: bool) -> bool {
    value.is_empty()
        || (is_alone && value == b"\\.")
        || value.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r'))
}

fn add_quoted(value: &[u8], line: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    add_replacing(value, line, |byte| (byte == b'"').then_some([b'"', b'"']), Some(b'"'))
}

fn add_escaped(value: &[u8], line: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    let escaped = |byte| {
        let letter = match byte {
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\t' => b't',
            b'\r' => b'r',
            0x08 => b'b',
            0x0c => b'f',
            0x0b => b'v',
            _ => return None,
        };
        Some([b'\\', letter])
    };
    add_replacing(value, line, escaped, None)
}

/// Adds a value between quotes, if there are some, with two bytes in the place of some of its bytes.
fn add_replacing(
    value: &[u8],
    line: &mut Vec<u8>,
    replaced: impl Fn(u8) -> Option<[u8; 2]>,
    quote: Option<u8>,
) -> Result<(), OutOfMemory> {
    line.add_all(quote.as_slice())?;
    let mut rest = value;
    while let Some((at, other)) = rest.iter().enumerate().find_map(|(at, byte)| Some((at, replaced(*byte)?))) {
        line.add_all(&rest[..at])?;
        line.add_all(&other)?;
        rest = &rest[at + 1..];
    }
    line.add_all(rest)?;
    line.add_all(quote.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(shape: RowShape, values: &[Option<&[u8]>]) -> String {
        let mut body = Vec::new();
        for value in values {
            body.extend_from_slice(&value.map_or(-1, |value| value.len() as i32).to_be_bytes());
            body.extend_from_slice(value.unwrap_or_default());
        }
        let mut line = Vec::new();
        shape.append_line(values.len(), &body, &mut line).unwrap();
        assert!(line.len() <= shape.longest(body.len()), "{values:?}");
        String::from_utf8(line).unwrap()
    }

    /// The expected lines are those of the server's documentation of COPY, File Formats.
    #[test]
    fn text_escapes_control_characters_and_backslashes() {
        let text = |values: &[Option<&[u8]>]| line(RowShape::CopyText, values);
        assert_eq!(text(&[Some(b"a"), None, Some(b"")]), "a\t\\N\t\n");
        assert_eq!(text(&[Some(b"\x08\x0c\n\r\t\x0b\\")]), "\\b\\f\\n\\r\\t\\v\\\\\n");
        assert_eq!(text(&[Some(b"\x01\x1f,\"")]), "\x01\x1f,\"\n");
        assert_eq!(text(&[]), "\n");
    }

    #[test]
    fn csv_quotes_what_could_be_taken_for_something_else() {
        let csv = |values: &[Option<&[u8]>]| line(RowShape::CopyCsv, values);
        assert_eq!(csv(&[Some(b"a"), None, Some(b"")]), "a,,\"\"\n");
        assert_eq!(
            csv(&[Some(b"a,b"), Some(b"say \"so\""), Some(b"a\nb"), Some(b"a\rb")]),
            "\"a,b\",\"say \"\"so\"\"\",\"a\nb\",\"a\rb\"\n"
        );
        assert_eq!(csv(&[Some(b"\\.")]), "\"\\.\"\n");
        assert_eq!(csv(&[Some(b"\\."), Some(b"\t\\'")]), "\\.,\t\\'\n");
        assert_eq!(csv(&[None]), "\n");
    }

    #[test]
    fn lines_are_no_longer_than_was_said() {
        for shape in [RowShape::CopyText, RowShape::CopyCsv] {
            for value in [&b"\\\\\\\\"[..], b"\"\"\"\"", b"\n\n", b"", b"a"] {
                line(shape, &[Some(value)]);
                line(shape, &[Some(value), Some(value), None]);
            }
        }
    }
}
