//! PostgreSQL counts days and microseconds from 2000-01-01, Arrow from 1970-01-01. Pure functions: nothing here is
//! shared.
//!
//! Infinities are kept at the ends of Arrow's range. Timestamps from 294247-01-10 on are beyond that range; they wrap
//! around to its bottom, far below the oldest legal timestamp. So every timestamp has a code of its own, and a reader
//! can tell the codes that Arrow reads as the same moment from those that only this module understands.

/// Days from 1970-01-01 to 2000-01-01.
const DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
const MICROS: i64 = 946_684_800_000_000;

/// Code of the timestamp `infinity`.
const INFINITY: i64 = i64::MAX;
/// Code of the timestamp `-infinity`.
const MINUS_INFINITY: i64 = -i64::MAX;
/// The codes that the infinities would have as plain numbers. They stand for the two finite timestamps whose own codes
/// the infinities take.
const FREED_BY_INFINITY: i64 = i64::MAX.wrapping_add(MICROS);
const FREED_BY_MINUS_INFINITY: i64 = i64::MIN.wrapping_add(MICROS);

/// A PostgreSQL date as Arrow days. `None` for a day that no PostgreSQL function makes.
pub fn date_to_arrow(days: i32) -> Option<i32> {
    match days {
        i32::MAX => Some(i32::MAX),
        i32::MIN => Some(-i32::MAX),
        finite => finite.checked_add(DAYS).filter(|days| !is_infinite_date(*days)),
    }
}

/// The inverse of [`date_to_arrow`].
pub fn date_from_arrow(days: i32) -> i32 {
    match days {
        i32::MAX => i32::MAX,
        d if d == -i32::MAX => i32::MIN,
        finite => finite.wrapping_sub(DAYS),
    }
}

/// The time 24:00, in microseconds.
pub const END_OF_DAY: i64 = 86_400_000_000;

/// Returns true if these Arrow days stand for an infinite date.
pub fn is_infinite_date(days: i32) -> bool {
    days.unsigned_abs() == i32::MAX as u32
}

/// Returns true if this code stands for an infinite timestamp.
pub fn is_infinite_timestamp(code: i64) -> bool {
    code == INFINITY || code == MINUS_INFINITY
}

/// The code of a PostgreSQL timestamp: microseconds as Arrow counts them, if [`is_representable`]. No two timestamps
/// share one.
pub fn timestamp_to_arrow(micros: i64) -> i64 {
    match micros {
        i64::MAX => INFINITY,
        i64::MIN => MINUS_INFINITY,
        finite => match finite.wrapping_add(MICROS) {
            INFINITY => FREED_BY_INFINITY,
            MINUS_INFINITY => FREED_BY_MINUS_INFINITY,
            code => code,
        },
    }
}

/// The inverse of [`timestamp_to_arrow`].
pub fn timestamp_from_arrow(code: i64) -> i64 {
    match code {
        INFINITY => i64::MAX,
        MINUS_INFINITY => i64::MIN,
        FREED_BY_INFINITY => INFINITY.wrapping_sub(MICROS),
        FREED_BY_MINUS_INFINITY => MINUS_INFINITY.wrapping_sub(MICROS),
        code => code.wrapping_sub(MICROS),
    }
}

/// Returns true if Arrow reads this code of a timestamp as the same moment, or the same infinity.
pub fn is_representable(code: i64) -> bool {
    // All codes up to this one have wrapped around, except the one that an infinity has taken.
    code > FREED_BY_MINUS_INFINITY || code == MINUS_INFINITY
}
