//! Dates and times of day in ISO form (datetime.c, `EncodeDateOnly`, `EncodeTimeOnly`, `EncodeDateTime`). Pure
//! functions, except that the zone keeps its offsets.

use super::format::LONGEST;
use super::text::{integer, word};
use super::zone::Zone;
use crate::formats::digit_pairs::digit_pair;

/// Days from 1970-01-01 to 2000-01-01.
const EPOCH_DAYS: i64 = 10_957;
const DAY: i64 = crate::formats::epoch::END_OF_DAY;
const SECOND: i64 = 1_000_000;
/// The least offset, in seconds, whose hours take three digits. A zone that is a rule of the user's own may have it.
const LARGE_OFFSET: u32 = 100 * 3600;
/// The first and the last legal day, since 2000 (IS_VALID_DATE).
const FIRST_DATE: i32 = -2_451_545;
const LAST_DATE: i32 = 2_145_031_948;
/// The first and the last legal timestamp (IS_VALID_TIMESTAMP).
const FIRST_TIMESTAMP: i64 = -211_813_488_000_000_000;
const LAST_TIMESTAMP: i64 = 9_223_371_331_199_999_999;

/// Days of an era of 400 years, and eras before the year 0 that legal days reach into.
const ERA: i64 = 146_097;
const ERAS_BEFORE: i64 = 13;

/// Writes a date, given as days since 2000. `None` if it is none.
#[inline]
pub fn date(days: i32, out: &mut [u8; LONGEST]) -> Option<usize> {
    match days {
        FIRST_DATE..=LAST_DATE => {
            let (end, before_christ) = day(i64::from(days), out);
            Some(if before_christ { bc(out, end) } else { end })
        }
        i32::MAX => Some(word(b"infinity", out)),
        i32::MIN => Some(word(b"-infinity", out)),
        _ => None,
    }
}

/// Writes a time of day, given in microseconds, up to and including 24:00:00. `None` if it is none.
#[inline]
pub fn time(micros: i64, out: &mut [u8; LONGEST]) -> Option<usize> {
    (0..=DAY).contains(&micros).then(|| clock(micros, out, 0))
}

/// Writes a timestamp, given as microseconds since 2000. `None` if it is none.
#[inline]
pub fn timestamp(micros: i64, out: &mut [u8; LONGEST]) -> Option<usize> {
    if !(FIRST_TIMESTAMP..=LAST_TIMESTAMP).contains(&micros) {
        return infinity(micros, out);
    }
    let (end, before_christ) = moment(micros, out);
    Some(if before_christ { bc(out, end) } else { end })
}

/// Writes a timestamp, given as microseconds since 2000 UTC, with the offset of a zone. `None` if it is none, or if the
/// hours of the offset take more than two digits.
#[inline]
pub fn timestamptz(micros: i64, zone: &mut Zone, out: &mut [u8; LONGEST]) -> Option<usize> {
    if !(FIRST_TIMESTAMP..=LAST_TIMESTAMP).contains(&micros) {
        return infinity(micros, out);
    }
    let offset = zone.offset(micros.div_euclid(SECOND) + EPOCH_DAYS * (DAY / SECOND));
    if offset.unsigned_abs() >= LARGE_OFFSET {
        return None;
    }
    // Adding an offset cannot overflow: legal timestamps end ten days before the range of 64 bits does.
    let (end, before_christ) = moment(micros + i64::from(offset) * SECOND, out);
    let end = tail(offset, out, end);
    Some(if before_christ { bc(out, end) } else { end })
}

fn infinity(micros: i64, out: &mut [u8; LONGEST]) -> Option<usize> {
    match micros {
        i64::MAX => Some(word(b"infinity", out)),
        i64::MIN => Some(word(b"-infinity", out)),
        _ => None,
    }
}

#[inline]
fn moment(micros: i64, out: &mut [u8; LONGEST]) -> (usize, bool) {
    let (end, before_christ) = day(micros.div_euclid(DAY), out);
    out[end] = b' ';
    (clock(micros.rem_euclid(DAY), out, end + 1), before_christ)
}

#[inline]
fn pair(number: u32, out: &mut [u8; LONGEST], at: usize) -> usize {
    out[at..at + 2].copy_from_slice(&digit_pair(number as usize));
    at + 2
}

/// Writes year, month and day. Also says whether the year is before Christ.
#[inline]
fn day(days: i64, out: &mut [u8; LONGEST]) -> (usize, bool) {
    let (year, month, day) = civil(days + EPOCH_DAYS);
    let shown = if year > 0 { year } else { 1 - year }.unsigned_abs();
    let mut end = if shown < 10_000 {
        pair(shown / 100, out, 0);
        pair(shown % 100, out, 2)
    } else {
        integer(shown, out)
    };
    out[end] = b'-';
    end = pair(month, out, end + 1);
    out[end] = b'-';
    (pair(day, out, end + 1), year <= 0)
}

/// Year, month and day of a day since 1970, in the Gregorian calendar at all times.
#[inline]
fn civil(days: i64) -> (i32, u32, u32) {
    // Years begin in March here, so that the leap day is their last. Eras are of 400 years; some are added so that all
    // legal days are numbers from zero up, in 32 bits.
    let shifted = (days + 719_468 + ERAS_BEFORE * ERA) as u32;
    let (era, day_of_era) = (shifted / ERA as u32, shifted % ERA as u32);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = (era * 400 + year_of_era) as i32 - ERAS_BEFORE as i32 * 400;
    (year + i32::from(month <= 2), month, day)
}

/// Writes a time of day, without zeros at the end of its decimals.
#[inline]
fn clock(micros: i64, out: &mut [u8; LONGEST], at: usize) -> usize {
    let seconds = (micros / SECOND) as u32;
    let fraction = (micros % SECOND) as u32;
    let mut end = pair(seconds / 3600, out, at);
    out[end] = b':';
    end = pair(seconds / 60 % 60, out, end + 1);
    out[end] = b':';
    end = pair(seconds % 60, out, end + 1);
    if fraction == 0 {
        return end;
    }
    out[end] = b'.';
    pair(fraction / 10_000, out, end + 1);
    pair(fraction / 100 % 100, out, end + 3);
    end = pair(fraction % 100, out, end + 5);
    while out[end - 1] == b'0' {
        end -= 1;
    }
    end
}

/// Writes an offset of less than 100 hours: hours, and minutes and seconds if there are any.
#[inline]
fn tail(offset: i32, out: &mut [u8; LONGEST], at: usize) -> usize {
    let size = offset.unsigned_abs();
    out[at] = if offset < 0 { b'-' } else { b'+' };
    let mut end = pair(size / 3600, out, at + 1);
    if !size.is_multiple_of(3600) {
        out[end] = b':';
        end = pair(size / 60 % 60, out, end + 1);
    }
    if !size.is_multiple_of(60) {
        out[end] = b':';
        end = pair(size % 60, out, end + 1);
    }
    end
}

fn bc(out: &mut [u8; LONGEST], at: usize) -> usize {
    out[at..at + 3].copy_from_slice(b" BC");
    at + 3
}
