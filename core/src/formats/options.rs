//! What a client may ask of an export, checked before anything runs. Pure functions: nothing here is shared.
//!
//! The same options come from COPY's parenthesis and from the `jsonb` argument of `arrow_cache.fetch` and similar
//! functions. Both are given as names with an [`OptionValue`].

use crate::formats::decimal::MAX_PRECISION;
use crate::formats::profile::{ExtensionTypes, IntervalAs, NumericAs, OnUnrepresentable, Profile, SpecialTimes};
use crate::shown::{shown, shown_list};

/// Bytes of a chunk by default: large enough that more would not be quicker, small enough that the first chunk comes
/// soon.
const DEFAULT_CHUNK_BYTES: usize = 256 * 1024;
const LEAST_CHUNK_BYTES: u64 = 1024;
const MOST_CHUNK_BYTES: u64 = 64 * 1024 * 1024;
/// Most columns of a result (MaxTupleAttributeNumber, access/htup_details.h).
const MOST_COLUMNS: usize = 1664;

/// How the buffers of batches are compressed on their way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// Everything that can be asked of an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportOptions {
    /// Names of the columns that are wanted, in the order they are wanted; all if `None`.
    pub columns: Option<Vec<String>>,
    /// Most rows that are delivered.
    pub limit: Option<u64>,
    /// Most rows in one batch.
    pub batch_rows: Option<usize>,
    /// Most bytes in one chunk of the stream.
    pub chunk_bytes: usize,
    /// Of the buffers of batches.
    pub compression: Compression,
    /// How values are delivered.
    pub profile: Profile,
}

impl Default for ExportOptions {
    fn default() -> Self {
        Self {
            columns: None,
            limit: None,
            batch_rows: None,
            chunk_bytes: DEFAULT_CHUNK_BYTES,
            compression: Compression::None,
            profile: Profile::default(),
        }
    }
}

/// A value as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionValue {
    /// Nothing was written, or JSON's null.
    Missing,
    /// A word or a string.
    Text(String),
    /// A number, as its text.
    Number(String),
    /// Several words or strings.
    List(Vec<String>),
    /// What no option takes (`*`, true, an object), as its text.
    Other(String),
}

impl OptionValue {
    /// As it is shown in an error, cut if it is long.
    fn shown(&self) -> String {
        match self {
            OptionValue::Missing => String::new(),
            OptionValue::Text(text) | OptionValue::Number(text) | OptionValue::Other(text) => shown(text.as_bytes()),
            OptionValue::List(items) => shown_list(items.iter().map(String::as_str)),
        }
    }
}

/// Why options were refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionError {
    /// There is no such option.
    Unknown {
        /// As it was written, cut if it is long.
        option: String,
    },
    /// An option was given twice.
    Repeated {
        /// Which one.
        option: String,
    },
    /// An option cannot have that value.
    Invalid {
        /// Which one.
        option: String,
        /// As it was written, cut if it is long; empty when nothing was.
        value: String,
        /// What the option takes.
        expected: &'static str,
    },
}

/// The names of all options.
pub const OPTION_NAMES: [&str; 10] = [
    "columns",
    "limit",
    "batch_rows",
    "chunk_bytes",
    "compression",
    "numeric",
    "interval",
    "extension_types",
    "on_unrepresentable",
    "special_times",
];

impl ExportOptions {
    /// Checks options, given by name. An option that is not given has its default.
    ///
    /// # Errors
    /// The first that is unknown, given twice, or has a value that it cannot have.
    pub fn parse(given: &[(String, OptionValue)]) -> Result<Self, OptionError> {
        let mut options = Self::default();
        for (number, (name, value)) in given.iter().enumerate() {
            if !OPTION_NAMES.contains(&name.as_str()) {
                return Err(OptionError::Unknown { option: shown(name.as_bytes()) });
            }
            if given[..number].iter().any(|(earlier, _)| earlier == name) {
                return Err(OptionError::Repeated { option: name.clone() });
            }
            options.set(name, value).map_err(|expected| OptionError::Invalid {
                option: name.clone(),
                value: value.shown(),
                expected,
            })?;
        }
        Ok(options)
    }

    /// Sets one option. The error is what it expects.
    fn set(&mut self, name: &str, value: &OptionValue) -> Result<(), &'static str> {
        match name {
            "columns" => self.columns = Some(columns(value)?),
            "limit" => self.limit = Some(integer(value).ok_or("a number of rows, 0 or more")?),
            "batch_rows" => {
                let rows = integer(value).filter(|rows| (1..=u64::from(u32::MAX)).contains(rows));
                self.batch_rows = Some(rows.ok_or("a number of rows, 1 or more")? as usize);
            }
            "chunk_bytes" => {
                let bytes = integer(value).filter(|bytes| (LEAST_CHUNK_BYTES..=MOST_CHUNK_BYTES).contains(bytes));
                self.chunk_bytes = bytes.ok_or("a number of bytes between 1024 and 67108864")? as usize;
            }
            "compression" => {
                let words = [("none", Compression::None), ("lz4", Compression::Lz4), ("zstd", Compression::Zstd)];
                self.compression = word(value, &words).ok_or("\"none\", \"lz4\" or \"zstd\"")?;
            }
            "numeric" => {
                let words = [
                    ("text", NumericAs::Text),
                    ("decimal128", NumericAs::Decimal128),
                    ("float64", NumericAs::Float64),
                    ("float64_nearest", NumericAs::NearestFloat64),
                ];
                self.profile.numeric = word(value, &words).or_else(|| rounded(value)).ok_or(
                    "\"text\", \"decimal128\", \"decimal128(precision,scale)\", \"float64\" or \"float64_nearest\"",
                )?;
            }
            "interval" => {
                let words = [("text", IntervalAs::Text), ("month_day_nano", IntervalAs::MonthDayNano)];
                self.profile.interval = word(value, &words).ok_or("\"text\" or \"month_day_nano\"")?;
            }
            "extension_types" => {
                let words = [("none", ExtensionTypes::None), ("canonical", ExtensionTypes::Canonical)];
                self.profile.extension_types = word(value, &words).ok_or("\"none\" or \"canonical\"")?;
            }
            "special_times" => {
                let words =
                    [("keep", SpecialTimes::Keep), ("null", SpecialTimes::Null), ("error", SpecialTimes::Error)];
                self.profile.special_times = word(value, &words).ok_or("\"keep\", \"null\" or \"error\"")?;
            }
            _ => {
                let words = [("error", OnUnrepresentable::Error), ("text", OnUnrepresentable::Text)];
                self.profile.on_unrepresentable = word(value, &words).ok_or("\"error\" or \"text\"")?;
            }
        }
        Ok(())
    }
}

/// A whole number that is not negative.
fn integer(value: &OptionValue) -> Option<u64> {
    match value {
        OptionValue::Number(text) | OptionValue::Text(text) if text.bytes().all(|b| b.is_ascii_digit()) => {
            text.parse().ok()
        }
        _ => None,
    }
}

/// One of the words, in any case.
fn word<T: Copy>(value: &OptionValue, words: &[(&str, T)]) -> Option<T> {
    let OptionValue::Text(text) = value else { return None };
    words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, meaning)| *meaning)
}

/// Decimals of a precision and a scale, as a cast to numeric writes these.
fn rounded(value: &OptionValue) -> Option<NumericAs> {
    let OptionValue::Text(text) = value else { return None };
    let lower = text.to_ascii_lowercase();
    let (precision, scale) = lower.strip_prefix("decimal128(")?.strip_suffix(')')?.split_once(',')?;
    let (precision, scale): (u8, u8) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    let is_possible = (1..=MAX_PRECISION).contains(&precision) && scale <= precision;
    is_possible.then_some(NumericAs::RoundedDecimal128 { precision, scale })
}

/// Column names, each once: a list, or the only one. The error is what is expected.
fn columns(value: &OptionValue) -> Result<Vec<String>, &'static str> {
    const EXPECTED: &str = "a list of different column names";
    let names = match value {
        OptionValue::List(names) if names.len() > MOST_COLUMNS => return Err("a list of at most 1664 column names"),
        OptionValue::List(names) => names.clone(),
        OptionValue::Text(name) => vec![name.clone()],
        _ => return Err(EXPECTED),
    };
    let mut sorted: Vec<_> = names.iter().collect();
    sorted.sort_unstable();
    let repeated = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    if names.is_empty() || repeated { Err(EXPECTED) } else { Ok(names) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> OptionValue {
        OptionValue::Text(value.into())
    }

    fn one(name: &str, value: OptionValue) -> Result<ExportOptions, OptionError> {
        ExportOptions::parse(&[(name.into(), value)])
    }

    #[test]
    fn nothing_given_is_the_default() {
        assert_eq!(ExportOptions::parse(&[]), Ok(ExportOptions::default()));
        assert_eq!(ExportOptions::default().chunk_bytes, 262_144);
    }

    #[test]
    fn each_option_is_known_and_set() {
        let parsed = ExportOptions::parse(&[
            ("columns".into(), OptionValue::List(vec!["b".into(), "A".into()])),
            ("limit".into(), OptionValue::Number("0".into())),
            ("batch_rows".into(), text("100")),
            ("chunk_bytes".into(), OptionValue::Number("1024".into())),
            ("compression".into(), text("ZSTD")),
            ("numeric".into(), text("decimal128")),
            ("interval".into(), text("month_day_nano")),
            ("extension_types".into(), text("canonical")),
            ("on_unrepresentable".into(), text("text")),
            ("special_times".into(), text("null")),
        ]);
        let expected = ExportOptions {
            columns: Some(vec!["b".into(), "A".into()]),
            limit: Some(0),
            batch_rows: Some(100),
            chunk_bytes: 1024,
            compression: Compression::Zstd,
            profile: Profile {
                numeric: NumericAs::Decimal128,
                interval: IntervalAs::MonthDayNano,
                extension_types: ExtensionTypes::Canonical,
                on_unrepresentable: OnUnrepresentable::Text,
                special_times: SpecialTimes::Null,
            },
        };
        assert_eq!(parsed, Ok(expected));
    }

    #[test]
    fn decimals_may_have_a_precision_and_a_scale() {
        for written in ["decimal128(12,2)", "DECIMAL128( 12 , 2 )"] {
            let parsed = one("numeric", text(written)).map(|options| options.profile.numeric);
            assert_eq!(parsed, Ok(NumericAs::RoundedDecimal128 { precision: 12, scale: 2 }), "{written}");
        }
    }

    #[test]
    fn wrong_values_name_the_option_and_the_value() {
        for (option, value) in [
            ("limit", text("-1")),
            ("limit", text("")),
            ("limit", OptionValue::Number("1.5".into())),
            ("limit", OptionValue::Number("99999999999999999999".into())),
            ("limit", OptionValue::Missing),
            ("batch_rows", OptionValue::Number("0".into())),
            ("chunk_bytes", OptionValue::Number("1023".into())),
            ("chunk_bytes", OptionValue::Number("67108865".into())),
            ("compression", text("gzip")),
            ("numeric", OptionValue::Number("128".into())),
            ("numeric", text("decimal128(39,2)")),
            ("numeric", text("decimal128(2,3)")),
            ("numeric", text("decimal128(0,0)")),
            ("numeric", text("decimal128(38)")),
            ("numeric", text("decimal128(38,-1)")),
            ("special_times", text("infinity")),
            ("interval", text("")),
            ("extension_types", OptionValue::Other("true".into())),
            ("on_unrepresentable", OptionValue::List(vec!["text".into()])),
            ("columns", OptionValue::List(vec![])),
            ("columns", OptionValue::List(vec!["a".into(), "a".into()])),
            ("columns", OptionValue::Other("*".into())),
        ] {
            match one(option, value.clone()) {
                Err(OptionError::Invalid { option: named, value: shown, .. }) => {
                    assert_eq!((named.as_str(), shown), (option, value.shown()));
                }
                other => panic!("{option} = {value:?} gave {other:?}"),
            }
        }
    }

    #[test]
    fn unknown_and_repeated_options_are_refused() {
        assert_eq!(one("colums", text("a")), Err(OptionError::Unknown { option: "colums".into() }));
        assert_eq!(one("LIMIT", text("1")), Err(OptionError::Unknown { option: "LIMIT".into() }));
        let twice = [("limit".to_owned(), text("1")), ("limit".to_owned(), text("1"))];
        assert_eq!(ExportOptions::parse(&twice), Err(OptionError::Repeated { option: "limit".into() }));
    }

    #[test]
    fn errors_show_the_beginning_of_long_texts() {
        let long = "x".repeat(1_000_000);
        let Err(OptionError::Unknown { option }) = one(&long, text("a")) else { panic!("it is none") };
        assert_eq!(option.len(), 4096);
        for value in
            [text(&long), OptionValue::List(vec![long.clone(), long.clone()]), OptionValue::Other(long.clone())]
        {
            let Err(OptionError::Invalid { value, .. }) = one("limit", value) else { panic!("it is no number") };
            assert!((4096..=2 * 4096 + 2).contains(&value.len()), "{}", value.len());
        }
    }

    #[test]
    fn no_more_columns_than_a_result_has() {
        let names = |count| (0..count).map(|number| format!("c{number}")).collect::<Vec<_>>();
        for count in [1664, 1665, 300_000] {
            match one("columns", OptionValue::List(names(count))) {
                Ok(options) => assert_eq!(options.columns, Some(names(1664))),
                Err(OptionError::Invalid { expected, .. }) => {
                    assert!(count > 1664 && expected == "a list of at most 1664 column names");
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        let mut twice = names(1664);
        twice[1663] = "c0".into();
        assert!(one("columns", OptionValue::List(twice)).is_err());
    }

    #[test]
    fn a_text_is_the_name_of_one_column() {
        assert_eq!(one("columns", text("A, \"b\"")).unwrap().columns.unwrap(), ["A, \"b\""]);
    }
}
