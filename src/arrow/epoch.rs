//! PostgreSQL counts days and microseconds from 2000-01-01, Arrow from 1970-01-01. Infinities are
//! kept at the ends of Arrow's range, which no finite value reaches.

/// Days from 1970-01-01 to 2000-01-01.
const DAYS: i32 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
const MICROS: i64 = 946_684_800_000_000;

/// A PostgreSQL date as Arrow days. `None` for a day that no PostgreSQL function makes.
pub fn date_to_arrow(days: i32) -> Option<i32> {
    match days {
        i32::MAX => Some(i32::MAX),
        i32::MIN => Some(-i32::MAX),
        finite => finite.checked_add(DAYS).filter(|d| d.unsigned_abs() != i32::MAX as u32),
    }
}

/// The inverse of `date_to_arrow`.
pub fn date_from_arrow(days: i32) -> i32 {
    match days {
        i32::MAX => i32::MAX,
        d if d == -i32::MAX => i32::MIN,
        finite => finite.wrapping_sub(DAYS),
    }
}

/// A PostgreSQL timestamp as Arrow microseconds. `None` from 294247-01-10 on, where 64 bits end.
pub fn timestamp_to_arrow(micros: i64) -> Option<i64> {
    match micros {
        i64::MAX => Some(i64::MAX),
        i64::MIN => Some(-i64::MAX),
        finite => finite.checked_add(MICROS).filter(|m| m.unsigned_abs() != i64::MAX as u64),
    }
}

/// The inverse of `timestamp_to_arrow`.
pub fn timestamp_from_arrow(micros: i64) -> i64 {
    match micros {
        i64::MAX => i64::MAX,
        m if m == -i64::MAX => i64::MIN,
        finite => finite.wrapping_sub(MICROS),
    }
}
