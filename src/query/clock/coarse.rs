//! Which units, strides and patterns change by the minute at most. A wrong answer would make a statement useless to cache, or cache it
//! needlessly; never would it give a wrong answer, since the value itself is in the key.

use pgrx::pg_sys;

use super::functions::Coarse;

/// Words for units of a minute or more, as `date_trunc` and `extract` know them (utils/adt/datetime.c). Lower case, ascending.
const UNITS: &[&[u8]] = &[
    b"c",
    b"cent",
    b"centuries",
    b"century",
    b"d",
    b"day",
    b"days",
    b"dec",
    b"decade",
    b"decades",
    b"decs",
    b"dow",
    b"doy",
    b"h",
    b"hour",
    b"hours",
    b"hr",
    b"hrs",
    b"isodow",
    b"isoyear",
    b"m",
    b"mil",
    b"millennia",
    b"millennium",
    b"mils",
    b"min",
    b"mins",
    b"minute",
    b"minutes",
    b"mon",
    b"mons",
    b"month",
    b"months",
    b"qtr",
    b"quarter",
    b"timezone",
    b"timezone_hour",
    b"timezone_minute",
    b"w",
    b"week",
    b"weeks",
    b"y",
    b"year",
    b"years",
    b"yr",
    b"yrs",
];

/// Fields of `to_char` of a minute or more, and its modifiers (utils/adt/formatting.c). Lower case; longer ones before those that begin
/// them.
const FIELDS: &[&[u8]] = &[
    b"y,yyy", b"yyyy", b"yyy", b"yy", b"month", b"mon", b"mm", b"mi", b"day", b"ddd", b"dd", b"dy", b"d", b"hh24",
    b"hh12", b"hh", b"iyyy", b"iyy", b"iy", b"iddd", b"id", b"iw", b"ww", b"w", b"q", b"rm", b"cc", b"j", b"a.m.",
    b"p.m.", b"am", b"pm", b"a.d.", b"b.c.", b"ad", b"bc", b"tzh", b"tzm", b"tz", b"of", b"fm", b"fx", b"th", b"tm",
    b"i", b"y",
];

/// The shortest stride that counts, in microseconds.
const SHORTEST_STRIDE: i64 = 60_000_000;

/// Is this a minute or more?
pub fn is_stride(interval: &pg_sys::Interval) -> bool {
    let days = i64::from(interval.day).saturating_mul(86_400_000_000);
    interval.time.saturating_add(days) >= SHORTEST_STRIDE
}

/// Does this text tell of a function of this kind that its result changes by the minute at most?
pub fn is_told(coarse: Coarse, text: &[u8]) -> bool {
    match coarse {
        Coarse::Unit => is_unit(text),
        Coarse::Pattern => is_pattern(text),
        Coarse::Never | Coarse::Always | Coarse::Stride | Coarse::Rounds => false,
    }
}

/// Is this the word for a unit of a minute or more?
fn is_unit(word: &[u8]) -> bool {
    UNITS.iter().any(|unit| unit.eq_ignore_ascii_case(word))
}

/// Is this a pattern of `to_char` that shows nothing below a minute? One that is not understood is not.
fn is_pattern(pattern: &[u8]) -> bool {
    let mut rest = pattern;
    while let Some(first) = rest.first() {
        let field =
            FIELDS.iter().find(|field| rest.get(..field.len()).is_some_and(|start| start.eq_ignore_ascii_case(field)));
        let length = match field {
            Some(field) => field.len(),
            None if *first == b'"' => match rest[1..].iter().position(|byte| *byte == b'"') {
                Some(end) => end + 2,
                None => rest.len(),
            },
            None if first.is_ascii_alphabetic() || *first == b'\\' => return false,
            None => 1,
        };
        rest = &rest[length..];
    }
    true
}
