//! Documents, with the image that jsonb_util.c would build of them and the text that jsonb.c would print.

use arrow_cache_core::formats::jsonb::{Refusal, to_text};
use arrow_cache_core::formats::numeric;
use std::fmt::Write;

#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    /// As numeric_out prints it.
    Number(String),
    String(String),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

use Value::{Array, Bool, Null, Number, Object};

pub fn string(characters: &str) -> Value {
    Value::String(characters.to_string())
}

pub fn number(text: &str) -> Value {
    Number(text.to_string())
}

pub fn object(pairs: &[(&str, Value)]) -> Value {
    Object(pairs.iter().map(|(key, value)| ((*key).to_string(), value.clone())).collect())
}

pub fn nested(levels: usize, inside: Value) -> Value {
    (0..levels).fold(inside, |value, _| Array(vec![value]))
}

/// What the server would build, varlena header included until the very end.
pub fn image(value: &Value) -> Vec<u8> {
    let mut buffer = vec![0; 4];
    match value {
        Array(_) | Object(_) => {
            convert(&mut buffer, value);
        }
        scalar => {
            let at = container(&mut buffer, 0x5000_0001, 1);
            let entry = convert(&mut buffer, scalar);
            store(&mut buffer, at, entry | 0x8000_0000);
        }
    }
    buffer.split_off(4)
}

fn container(buffer: &mut Vec<u8>, header: u32, entries: usize) -> usize {
    buffer.extend_from_slice(&header.to_le_bytes());
    let at = buffer.len();
    buffer.resize(at + entries * 4, 0xEE);
    at
}

pub fn store(buffer: &mut [u8], at: usize, entry: u32) {
    buffer[at..at + 4].copy_from_slice(&entry.to_le_bytes());
}

/// Appends the data of a value and returns its entry, with a length.
fn convert(buffer: &mut Vec<u8>, value: &Value) -> u32 {
    let start = buffer.len();
    let pad = |buffer: &mut Vec<u8>| buffer.resize(buffer.len().next_multiple_of(4), 0);
    let kind = match value {
        Null => 4,
        Bool(truth) => 2 + u32::from(*truth),
        Value::String(characters) => {
            buffer.extend_from_slice(characters.as_bytes());
            0
        }
        Number(text) => {
            pad(buffer);
            let mut body = Vec::new();
            assert!(numeric::from_text(text.as_bytes(), &mut body), "{text}");
            buffer.extend_from_slice(&((body.len() as u32 + 4) * 4).to_le_bytes());
            buffer.extend_from_slice(&body);
            1
        }
        Array(elements) => {
            pad(buffer);
            let at = container(buffer, 0x4000_0000 | elements.len() as u32, elements.len());
            members(buffer, at, elements);
            5
        }
        Object(pairs) => {
            pad(buffer);
            let at = container(buffer, 0x2000_0000 | pairs.len() as u32, pairs.len() * 2);
            let mut all: Vec<Value> = pairs.iter().map(|(key, _)| Value::String(key.clone())).collect();
            all.extend(pairs.iter().map(|(_, value)| value.clone()));
            members(buffer, at, &all);
            5
        }
    };
    kind << 28 | (buffer.len() - start) as u32
}

fn members(buffer: &mut Vec<u8>, at: usize, all: &[Value]) {
    let mut total = 0;
    for (index, member) in all.iter().enumerate() {
        let mut entry = convert(buffer, member);
        total += entry & 0x0FFF_FFFF;
        if index % 32 == 0 {
            entry = entry & 0x7000_0000 | total | 0x8000_0000;
        }
        store(buffer, at + index * 4, entry);
    }
}

/// What the server would print.
pub fn text(value: &Value) -> String {
    match value {
        Null => "null".to_string(),
        Bool(truth) => truth.to_string(),
        Number(text) => text.clone(),
        Value::String(characters) => quoted(characters),
        Array(elements) => format!("[{}]", elements.iter().map(text).collect::<Vec<_>>().join(", ")),
        Object(pairs) => {
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| format!("{}: {}", quoted(key), text(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

fn quoted(characters: &str) -> String {
    let mut out = String::from("\"");
    for character in characters.chars() {
        match character {
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => write!(out, "\\u{:04x}", control as u32).unwrap(),
            plain => out.push(plain),
        }
    }
    out.push('"');
    out
}

pub fn printed(image: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut out = b"kept".to_vec();
    let result = to_text(image, usize::MAX, &mut out);
    let rest = out.strip_prefix(b"kept").expect("what was there stays");
    assert!(result.is_ok() || rest.is_empty());
    result.map(|()| rest.to_vec())
}

pub fn assert_printed(value: &Value) {
    let printed = printed(&image(value)).map(|out| String::from_utf8(out).unwrap());
    assert_eq!(printed, Ok(text(value)));
}
