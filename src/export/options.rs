//! The options of an export as users write them: in the parentheses of COPY, or as `jsonb`. Which options there are,
//! and with which values, is decided in `core`.

use std::ffi::CStr;

use arrow_cache_core::{ExportOptions, OptionValue};
use pgrx::pg_sys::{self, NodeTag};

use crate::error::{CacheError, or_raise};
use crate::pg::allocator::headroom;
use crate::pg::encoding;
use crate::pg::tree::{Tree, child, child_text};

/// Bytes that short options take.
const OPTIONS: usize = 16 * 1024;
/// Bytes that a byte of longer ones takes at most. A list of lists, `[],[],…`, has a value of 32 bytes for every three
/// bytes of text, in a vector that doubles as it grows; a member of an object takes less, since no two have the same
/// name. What is found in them is copied twice.
const PER_BYTE: usize = 40;

/// The options in the text of a JSON object. Raises what is wrong with them.
pub fn from_json(options: Option<String>) -> ExportOptions {
    let Some(text) = options else { return ExportOptions::default() };
    let _headroom = or_raise(headroom(OPTIONS + PER_BYTE * text.len()));
    let Ok(serde_json::Value::Object(members)) = serde_json::from_str(&text) else {
        CacheError::options_not_an_object().raise();
    };
    let given: Vec<_> = members
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name, json_value(value)))
        .collect();
    checked(&given)
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

/// The options in the DefElem nodes of a statement, except those that `skip` names. Raises what is wrong with them.
pub fn from_words<'t>(options: impl Iterator<Item = Tree<'t, pg_sys::DefElem>> + Clone, skip: &str) -> ExportOptions {
    let bytes = options.clone().map(|option| child!(option.arg).map_or(0, bytes_of)).sum::<usize>();
    let _headroom = or_raise(headroom(OPTIONS + bytes));
    let given: Vec<_> = options
        .map(|option| (name_of(option), child!(option.arg).map_or(OptionValue::Missing, word_value)))
        .filter(|(name, _)| name != skip)
        .collect();
    checked(&given)
}

fn name_of(option: Tree<'_, pg_sys::DefElem>) -> String {
    child_text!(option.defname).map(encoding::to_string).unwrap_or_default()
}

/// What the value of an option takes at most: its texts are copied three times and shown in an error, in lists that
/// double as they grow.
fn bytes_of(value: Tree<'_, pg_sys::Node>) -> usize {
    match value.tag() {
        NodeTag::T_String => 8 * characters(value).map_or(0, CStr::count_bytes) + 256,
        NodeTag::T_List => items(value).map(bytes_of).sum(),
        _ => 256,
    }
}

/// A value in COPY's grammar.
fn word_value(value: Tree<'_, pg_sys::Node>) -> OptionValue {
    if let Some(number) = value.as_a::<pg_sys::Integer>() {
        return OptionValue::Number(number.ival.to_string());
    }
    if let Some(number) = value.as_a::<pg_sys::Float>() {
        return OptionValue::Number(child_text!(number.fval).map(encoding::to_string).unwrap_or_default());
    }
    match value.tag() {
        NodeTag::T_String => OptionValue::Text(text(value)),
        NodeTag::T_List => OptionValue::List(items(value).map(text).collect()),
        NodeTag::T_A_Star => OptionValue::Other("*".into()),
        _ => OptionValue::Other("an expression".into()),
    }
}

/// The items of a list among the values.
fn items<'t>(list: Tree<'t, pg_sys::Node>) -> impl Iterator<Item = Tree<'t, pg_sys::Node>> {
    // SAFETY: the tag tells that it is a list; the grammar puts nodes into lists of values.
    unsafe { list.list_below(list.as_ptr().cast()) }
}

/// The characters of a String node.
fn characters<'t>(value: Tree<'t, pg_sys::Node>) -> Option<&'t CStr> {
    value.as_a::<pg_sys::String>().and_then(|string| child_text!(string.sval))
}

/// The text of a String node; other nodes, which the grammar does not put here, have none.
fn text(value: Tree<'_, pg_sys::Node>) -> String {
    characters(value).map(encoding::to_string).unwrap_or_default()
}

fn checked(given: &[(String, OptionValue)]) -> ExportOptions {
    ExportOptions::parse(given).unwrap_or_else(|error| CacheError::bad_option(error).raise())
}
