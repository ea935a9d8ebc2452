//! The text of an interval under IntervalStyle postgres (datetime.c, `EncodeInterval`).

use super::ShortText;

const SECOND: u64 = 1_000_000;

/// The text of an interval of so many months, days and microseconds. `None` for one that is infinite, which the server has known since version 17.
#[must_use]
pub fn text(months: i32, days: i32, micros: i64, room: &mut ShortText) -> Option<&[u8]> {
    if [(i32::MIN, i32::MIN, i64::MIN), (i32::MAX, i32::MAX, i64::MAX)].contains(&(months, days, micros)) {
        return None;
    }
    let text = room.begin();
    // A part behind a negative one shows its sign.
    let mut after_negative = false;
    for (value, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if value == 0 {
            continue;
        }
        text.add(if text.length == 0 { b"" } else { b" " });
        text.add(if after_negative && value > 0 { b"+" } else { b"" });
        text.integer(value);
        text.add(b" ");
        text.add(unit.as_bytes());
        text.add(if value == 1 { b"" } else { b"s" });
        after_negative = value < 0;
    }
    if micros != 0 || text.length == 0 {
        text.add(if text.length == 0 { b"" } else { b" " });
        text.add(match micros {
            ..0 => b"-",
            _ if after_negative => b"+",
            _ => b"",
        });
        clock(micros.unsigned_abs(), text);
    }
    Some(text.end())
}

/// Hours, of which there may be many, minutes, seconds, and decimals without zeros at their end.
fn clock(micros: u64, text: &mut ShortText) {
    let (seconds, fraction) = (micros / SECOND, micros % SECOND);
    let hours = seconds / 3600;
    if hours < 100 {
        text.pair(hours)
    } else {
        text.integer(hours)
    }
    text.add(b":");
    text.pair(seconds / 60 % 60);
    text.add(b":");
    text.pair(seconds % 60);
    if fraction != 0 {
        text.add(b".");
        text.pair(fraction / 10_000);
        text.pair(fraction / 100 % 100);
        text.pair(fraction % 100);
        while text.end().ends_with(b"0") {
            text.length -= 1;
        }
    }
}
