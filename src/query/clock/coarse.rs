//! Which units, strides and patterns change by the minute at most. A wrong answer would make a statement useless to
//! cache, or cache it needlessly; never would it give a wrong answer, since the value itself is in the key.

use pgrx::pg_sys::{self, Datum};

use super::functions::Coarse;

/// Beginnings of the words for units below a minute, as `date_trunc` and `extract` know them (utils/adt/datetime.c).
const FINE_UNITS: [&[u8]; 7] = [b"s", b"ms", b"millis", b"us", b"micro", b"epoch", b"j"];

/// Fields of `to_char` below a minute, or beginnings of these (utils/adt/formatting.c).
const FINE_FIELDS: [&[u8]; 4] = [b"ss", b"ms", b"us", b"ff"];

/// The shortest stride that counts, in microseconds.
const SHORTEST_STRIDE: i64 = 60_000_000;

/// Returns true if the result of a function changes by the minute at most, as the argument tells that decides on it.
///
/// # Safety
/// A value that is not NULL, of the type that such functions take in this place.
pub unsafe fn is_told(coarse: Coarse, value: Datum) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        match coarse {
            Coarse::Stride => is_stride(&*value.cast_mut_ptr::<pg_sys::Interval>()),
            Coarse::Unit => words_of(value).is_some_and(|word| !FINE_UNITS.iter().any(|fine| begins_with(word, fine))),
            Coarse::Pattern => {
                words_of(value).is_some_and(|words| !FINE_FIELDS.iter().any(|fine| contains(words, fine)))
            }
            Coarse::Never | Coarse::Always | Coarse::Rounds => false,
        }
    }
}

/// Returns true if this is a minute or more.
fn is_stride(interval: &pg_sys::Interval) -> bool {
    let days = i64::from(interval.day).saturating_mul(86_400_000_000);
    interval.time.saturating_add(days) >= SHORTEST_STRIDE
}

/// Returns true if the word `now` is in a text. What is read from that moves all the time.
///
/// # Safety
/// A text that is not NULL.
pub unsafe fn names_present(text: Datum) -> bool {
    // SAFETY: the caller's promise.
    unsafe { words_of(text) }.is_some_and(|words| contains(words, b"now"))
}

/// The bytes of a text; `None` if they are not there as they are.
///
/// # Safety
/// A text that is not NULL, and outlives what is returned.
unsafe fn words_of<'v>(text: Datum) -> Option<&'v [u8]> {
    // SAFETY: the caller's promise.
    unsafe {
        let text: *const pg_sys::varlena = text.cast_mut_ptr();
        let is_short = pgrx::varatt_is_1b(text) && !pgrx::varatt_is_1b_e(text);
        (is_short || pgrx::varatt_is_4b_u(text)).then(|| pgrx::varlena_to_byte_slice(text))
    }
}

fn begins_with(word: &[u8], beginning: &[u8]) -> bool {
    word.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
}

fn contains(words: &[u8], part: &[u8]) -> bool {
    words.windows(part.len()).any(|one| one.eq_ignore_ascii_case(part))
}
