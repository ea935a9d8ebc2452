//! Dates and timestamps in Arrow's count: every value keeps a code of its own, and the codes that Arrow understands are
//! known.

use arrow_cache_core::formats::epoch::{
    date_from_arrow, date_to_arrow, is_representable, timestamp_from_arrow, timestamp_to_arrow,
};
use proptest::prelude::*;

/// Days and microseconds from 1970-01-01 to 2000-01-01.
const DAYS: i32 = 10_957;
const MICROS: i64 = DAYS as i64 * 86_400_000_000;
/// The last timestamp that has Arrow's number, in PostgreSQL's count: 294247-01-10 04:00:54.775806.
const LAST: i64 = i64::MAX - MICROS - 1;
/// The oldest legal timestamp, 4714-11-24 BC, and the first that is too late, 294277-01-01.
const OLDEST: i64 = -211_813_488_000_000_000;
const END: i64 = 9_223_371_331_200_000_000;

#[test]
fn moments_that_both_count() {
    assert_eq!(timestamp_to_arrow(0), MICROS);
    assert_eq!(timestamp_to_arrow(-MICROS), 0);
    assert_eq!(timestamp_to_arrow(LAST), i64::MAX - 1);
    assert_eq!(timestamp_to_arrow(OLDEST), OLDEST + MICROS);
    for micros in [0, -MICROS, LAST, OLDEST] {
        assert!(is_representable(timestamp_to_arrow(micros)), "{micros}");
    }
    assert_eq!(date_to_arrow(0), Some(DAYS));
    assert_eq!(date_to_arrow(-DAYS), Some(0));
}

#[test]
fn infinities() {
    assert_eq!(timestamp_to_arrow(i64::MAX), i64::MAX);
    assert_eq!(timestamp_to_arrow(i64::MIN), -i64::MAX);
    assert!(is_representable(i64::MAX) && is_representable(-i64::MAX));
    assert_eq!(date_to_arrow(i32::MAX), Some(i32::MAX));
    assert_eq!(date_to_arrow(i32::MIN), Some(-i32::MAX));
}

#[test]
fn beyond_the_range_of_arrow() {
    for micros in [LAST + 1, LAST + 2, LAST + 3, LAST + 4, END - 1, i64::MAX - 1] {
        let code = timestamp_to_arrow(micros);
        assert!(!is_representable(code), "{micros}");
        assert!(code < OLDEST && code != -i64::MAX, "{micros}");
        assert_eq!(timestamp_from_arrow(code), micros);
    }
}

/// Values around those where the mapping changes.
const BENDS: [i64; 6] = [0, i64::MAX, i64::MIN, LAST, i64::MIN + MICROS, OLDEST];

fn assert_one_to_one(number: i64) {
    assert_eq!(timestamp_from_arrow(timestamp_to_arrow(number)), number);
    assert_eq!(timestamp_to_arrow(timestamp_from_arrow(number)), number);
}

fn assert_representable_where_the_sum_fits(micros: i64) {
    let infinite = micros == i64::MAX || micros == i64::MIN;
    let sum = micros.checked_add(MICROS).filter(|sum| *sum < i64::MAX);
    let code = timestamp_to_arrow(micros);
    assert_eq!(is_representable(code), infinite || sum.is_some(), "{micros}");
    if let Some(sum) = sum.filter(|_| !infinite) {
        assert_eq!(code, sum);
    }
}

#[test]
fn around_the_bends() {
    for bend in BENDS {
        for step in -5..=5 {
            assert_one_to_one(bend.wrapping_add(step));
            assert_representable_where_the_sum_fits(bend.wrapping_add(step));
        }
    }
}

proptest! {
    #[test]
    fn timestamps_and_codes_are_one_to_one(number: i64) {
        assert_one_to_one(number);
    }

    #[test]
    fn representable_is_what_the_sum_fits(micros: i64) {
        assert_representable_where_the_sum_fits(micros);
    }

    #[test]
    fn dates_come_back(days: i32) {
        match date_to_arrow(days) {
            Some(arrow) => prop_assert_eq!(date_from_arrow(arrow), days),
            None => prop_assert!(days > i32::MAX - 2 * DAYS && days != i32::MAX),
        }
    }
}
