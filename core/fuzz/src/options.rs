//! Options of an export.

use arrow_cache_core::formats::options::{ExportOptions, OPTION_NAMES, OptionError, OptionValue};

/// Bytes that a chunk of a stream may have.
const CHUNK_BYTES: std::ops::RangeInclusive<usize> = 1024..=64 << 20;

/// Reads any bytes as options, one to a line: a digit for one of their names, or the name and `=`; a letter for the
/// kind of value; and the value.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let given: Vec<(String, OptionValue)> = text.lines().map(option).collect();
    let times = |name: &String| given.iter().filter(|(other, _)| other == name).count();
    match ExportOptions::parse(&given) {
        Ok(options) => {
            check_options(&options);
            let reversed: Vec<_> = given.iter().rev().cloned().collect();
            assert_eq!(ExportOptions::parse(&reversed).as_ref(), Ok(&options), "the order does not matter");
        }
        Err(OptionError::Unknown { option }) => {
            assert!(!OPTION_NAMES.contains(&option.as_str()));
            assert!(times(&option) > 0);
        }
        Err(OptionError::Repeated { option }) => assert!(times(&option) > 1),
        Err(error @ OptionError::Invalid { .. }) => {
            let alone = |each: &(String, OptionValue)| ExportOptions::parse(std::slice::from_ref(each));
            assert!(given.iter().any(|each| alone(each).as_ref() == Err(&error)), "{error:?} is of one option");
        }
    }
}

fn option(line: &str) -> (String, OptionValue) {
    let (name, value) = match line.as_bytes().first() {
        Some(digit @ b'0'..=b'8') => (OPTION_NAMES[usize::from(digit - b'0')], &line[1..]),
        _ => line.split_once('=').unwrap_or((line, "")),
    };
    let value = match value.chars().next() {
        Some('t') => OptionValue::Text(value[1..].to_owned()),
        Some('n') => OptionValue::Number(value[1..].to_owned()),
        Some('l') => OptionValue::List(value[1..].split(',').map(str::to_owned).collect()),
        Some('o') => OptionValue::Other(value[1..].to_owned()),
        _ => OptionValue::Missing,
    };
    (name.to_owned(), value)
}

fn check_options(options: &ExportOptions) {
    assert!(CHUNK_BYTES.contains(&options.chunk_bytes));
    assert!(options.batch_rows != Some(0));
    let Some(columns) = &options.columns else {
        return;
    };
    assert!(!columns.is_empty());
    assert!(columns.iter().enumerate().all(|(number, name)| !columns[..number].contains(name)), "each column once");
}
