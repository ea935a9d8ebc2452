//! The options of an export as they are written: in COPY's parenthesis, or as `jsonb`. What they may be is settled in `core`.

use std::ffi::CStr;

use arrow_cache_core::{ExportOptions, OptionValue};
use pgrx::pg_sys::{self, NodeTag};

use crate::error::{CacheError, or_raise};
use crate::pg::allocator::headroom;
use crate::pg::encoding;
use crate::pg::lists::nodes;

/// What short options take.
const OPTIONS: usize = 16 * 1024;
/// What a byte of longer ones takes at most. A list of lists, `[],[],…`, has a value of 32 bytes for every three bytes of text,
/// in a vector that doubles as it grows; a member of an object takes less, since no two have the same name. What is found in them is
/// copied twice.
const PER_BYTE: usize = 40;

/// The options in the text of a JSON object. Raises what is wrong with them.
pub fn from_json(options: Option<String>) -> ExportOptions {
    let Some(text) = options else { return ExportOptions::default() };
    let _headroom = or_raise(headroom(OPTIONS + PER_BYTE * text.len()));
    let Ok(serde_json::Value::Object(members)) = serde_json::from_str(&text) else {
        CacheError::OptionsNotAnObject.raise();
    };
    let given: Vec<_> = members
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name, json_value(value)))
        .collect();
    // Only COPY's grammar cannot tell a quoted name from a string.
    ExportOptions { column_text: None, ..checked(&given) }
}

fn json_value(value: serde_json::Value) -> OptionValue {
    use serde_json::Value;
    match value {
        Value::Null => OptionValue::Missing,
        Value::String(text) => OptionValue::Text(text),
        Value::Number(number) => OptionValue::Number(number.to_string()),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            OptionValue::List(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        other => OptionValue::Other(other.to_string()),
    }
}

/// The options in a list of DefElem nodes, but those that `skip` names. Raises what is wrong with them.
///
/// # Safety
/// The list must be valid and hold such nodes only.
pub unsafe fn from_words(list: *mut pg_sys::List, skip: &str) -> ExportOptions {
    // SAFETY: as the caller promises.
    let bytes = unsafe { nodes::<pg_sys::DefElem>(list).map(|option| bytes_of((*option).arg)).sum::<usize>() };
    let _headroom = or_raise(headroom(OPTIONS + bytes));
    // SAFETY: as the caller promises; names are C strings.
    let given: Vec<_> = unsafe {
        nodes::<pg_sys::DefElem>(list)
            .map(|option| (text((*option).defname), word_value((*option).arg)))
            .filter(|(name, _)| name != skip)
            .collect()
    };
    checked(&given)
}

/// What the value of an option takes at most: its texts are copied three times and shown in an error, in lists that double as they grow.
///
/// # Safety
/// As `word_value`.
unsafe fn bytes_of(value: *mut pg_sys::Node) -> usize {
    if value.is_null() {
        return 0;
    }
    // SAFETY: each cast follows the node's tag.
    unsafe {
        match (*value).type_ {
            NodeTag::T_String => 8 * CStr::from_ptr(string(value)).count_bytes() + 256,
            NodeTag::T_List => nodes::<pg_sys::Node>(value.cast()).map(|item| bytes_of(item)).sum(),
            _ => 256,
        }
    }
}

/// # Safety
/// `value` must be null or a valid node of what COPY's grammar takes for an option's value.
unsafe fn word_value(value: *mut pg_sys::Node) -> OptionValue {
    if value.is_null() {
        return OptionValue::Missing;
    }
    // SAFETY: each cast follows the node's tag.
    unsafe {
        match (*value).type_ {
            NodeTag::T_String => OptionValue::Text(text(string(value))),
            NodeTag::T_Integer => OptionValue::Number((*value.cast::<pg_sys::Integer>()).ival.to_string()),
            NodeTag::T_Float => OptionValue::Number(text((*value.cast::<pg_sys::Float>()).fval)),
            NodeTag::T_List => {
                let items = nodes::<pg_sys::Node>(value.cast());
                OptionValue::List(items.map(|item| text(string(item))).collect())
            }
            NodeTag::T_A_Star => OptionValue::Other("*".into()),
            _ => OptionValue::Other("an expression".into()),
        }
    }
}

/// # Safety
/// `node` must be a String node.
unsafe fn string(node: *mut pg_sys::Node) -> *mut std::ffi::c_char {
    // SAFETY: as the caller promises.
    unsafe { (*node.cast::<pg_sys::String>()).sval }
}

/// # Safety
/// `text` must be a C string.
unsafe fn text(text: *const std::ffi::c_char) -> String {
    // SAFETY: as the caller promises.
    unsafe { encoding::to_string(CStr::from_ptr(text)) }
}

fn checked(given: &[(String, OptionValue)]) -> ExportOptions {
    ExportOptions::parse(given).unwrap_or_else(|error| CacheError::BadOption { error }.raise())
}
