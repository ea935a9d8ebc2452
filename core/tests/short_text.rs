//! Texts of intervals, addresses and ranges, against what the server is known to print and against simple reference implementations. `tests/clients` compares them with the
//! server itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arrow_cache_core::formats::short_text::range::Bounds;
use arrow_cache_core::formats::short_text::{ShortText, interval, network, range};
use proptest::prelude::*;

const HOUR: i64 = 3_600_000_000;

/// A text that was written behind another.
fn shown(write: impl FnOnce(&mut ShortText) -> Option<&[u8]>) -> Option<String> {
    let mut room = ShortText::new();
    interval::text(1, 1, 1, &mut room).unwrap();
    write(&mut room).map(|text| String::from_utf8(text.to_vec()).unwrap())
}

fn of_interval(months: i32, days: i32, micros: i64) -> Option<String> {
    shown(|room| interval::text(months, days, micros, room))
}

fn of_address(body: &[u8], is_cidr: bool) -> Option<String> {
    shown(|room| network::text(body, is_cidr, room))
}

#[test]
fn intervals() {
    for (months, days, micros, text) in [
        (0, 0, 0, "00:00:00"),
        (1, 1, 0, "1 mon 1 day"),
        (14, -2, 3 * HOUR, "1 year 2 mons -2 days +03:00:00"),
        (-14, 2, -3 * HOUR, "-1 years -2 mons +2 days -03:00:00"),
        (-12, 0, 1, "-1 years +00:00:00.000001"),
        (12, 0, 0, "1 year"),
        (0, -1, 0, "-1 days"),
        (0, 0, -1, "-00:00:00.000001"),
        (0, 0, 61_500_000, "00:01:01.5"),
        (0, 0, 100 * HOUR, "100:00:00"),
        (i32::MIN, i32::MIN, i64::MAX, "-178956970 years -8 mons -2147483648 days +2562047788:00:54.775807"),
        (i32::MAX, i32::MAX, i64::MIN, "178956970 years 7 mons 2147483647 days -2562047788:00:54.775808"),
    ] {
        assert_eq!(of_interval(months, days, micros).as_deref(), Some(text));
    }
    assert!(of_interval(i32::MAX, i32::MAX, i64::MAX).is_none());
    assert!(of_interval(i32::MIN, i32::MIN, i64::MIN).is_none());
}

fn body(family: u8, bits: u8, address: &[u8]) -> Vec<u8> {
    [&[family, bits], address].concat()
}

fn of_version_6(words: [u16; 8], bits: u8) -> Vec<u8> {
    body(3, bits, &words.map(u16::to_be_bytes).concat())
}

#[test]
fn addresses() {
    let four = |bits, is_cidr| of_address(&body(2, bits, &[10, 0, 200, 7]), is_cidr);
    assert_eq!(four(32, false).as_deref(), Some("10.0.200.7"));
    assert_eq!(four(32, true).as_deref(), Some("10.0.200.7/32"));
    assert_eq!(four(8, false).as_deref(), Some("10.0.200.7/8"));
    for (words, text) in [
        ([0, 0, 0, 0, 0, 0, 0, 0], "::"),
        ([0, 0, 0, 0, 0, 0, 0, 1], "::1"),
        ([0, 0, 0, 0, 0, 0, 0, 2], "::2"),
        ([0, 0, 0, 0, 0, 0, 0x102, 0x304], "::1.2.3.4"),
        ([0, 0, 0, 0, 0, 0xFFFF, 0x102, 0x304], "::ffff:1.2.3.4"),
        ([0, 0, 0, 0, 0, 0xFFFE, 0x102, 0x304], "::fffe:102:304"),
        ([0x2001, 0xDB8, 0, 0, 1, 0, 0, 1], "2001:db8::1:0:0:1"),
        ([0x2001, 0, 0, 1, 0, 0, 0, 1], "2001:0:0:1::1"),
        ([1, 0, 2, 0, 3, 0, 4, 0], "1:0:2:0:3:0:4:0"),
        ([1, 2, 3, 4, 5, 6, 0, 0], "1:2:3:4:5:6::"),
    ] {
        assert_eq!(of_address(&of_version_6(words, 128), false).as_deref(), Some(text));
        assert_eq!(of_address(&of_version_6(words, 64), true), Some(format!("{text}/64")));
    }
    for (family, length) in [(2, 3), (2, 5), (3, 15), (3, 17), (1, 4), (4, 16)] {
        assert!(of_address(&body(family, 8, &vec![0; length]), false).is_none());
    }
    assert!(of_address(&[2], false).is_none());
}

/// OID, bounds, flags.
fn of_range(bounds: &[&[u8]], flags: u8) -> Vec<u8> {
    [[0; 4].as_slice(), &bounds.concat(), &[flags]].concat()
}

#[test]
fn ranges() {
    let (one, five) = (1i32.to_ne_bytes(), (-5i32).to_ne_bytes());
    let of = |bounds: &[&[u8]], flags, kind| shown(|room| range::text(&of_range(bounds, flags), kind, room));
    assert_eq!(of(&[], 0x01, Bounds::Int32).as_deref(), Some("empty"));
    assert_eq!(of(&[&five, &one], 0x02, Bounds::Int32).as_deref(), Some("[-5,1)"));
    assert_eq!(of(&[&one], 0x10 | 0x02, Bounds::Int32).as_deref(), Some("[1,)"));
    assert_eq!(of(&[&one], 0x08 | 0x04, Bounds::Int32).as_deref(), Some("(,1]"));
    assert_eq!(of(&[], 0x08 | 0x10, Bounds::Int64).as_deref(), Some("(,)"));
    let most = i64::MAX.to_ne_bytes();
    assert_eq!(of(&[&most, &most], 0x06, Bounds::Int64), Some(format!("[{0},{0}]", i64::MAX)));
    let (day, old) = (1i32.to_ne_bytes(), (-2_451_545i32).to_ne_bytes());
    assert_eq!(of(&[&old, &day], 0x02, Bounds::Date).as_deref(), Some("[\"4714-11-24 BC\",2000-01-02)"));
    let (moment, late) = (0i64.to_ne_bytes(), i64::MAX.to_ne_bytes());
    assert_eq!(of(&[&moment, &late], 0, Bounds::Timestamp).as_deref(), Some("(\"2000-01-01 00:00:00\",infinity)"));
    assert_eq!(of(&[&moment], 0x10, Bounds::TimestampTz).as_deref(), Some("(\"2000-01-01 00:00:00+00\",)"));
    // A date that is none, a bound too few, and one too many.
    assert_eq!(of(&[&i32::MAX.wrapping_sub(1).to_ne_bytes()], 0x10, Bounds::Date), None);
    assert_eq!(of(&[&one], 0, Bounds::Int32), None);
    assert_eq!(of(&[&one, &five], 0x10, Bounds::Int32), None);
    assert_eq!(shown(|room| range::text(&[], Bounds::Int32, room)), None);
    assert_eq!(shown(|room| range::text(&[0, 0, 0, 0], Bounds::Int32, room)), None);
}

proptest! {
    #[test]
    fn any_body_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
        for kind in [Bounds::Int32, Bounds::Int64, Bounds::Date, Bounds::Timestamp, Bounds::TimestampTz] {
            let _ = range::text(&bytes, kind, &mut ShortText::new());
        }
        let _ = (of_address(&bytes, false), of_address(&bytes, true));
    }

    #[test]
    fn any_interval_has_its_parts(months: i32, days: i32, micros: i64) {
        let text = of_interval(months, days, micros).unwrap();
        let mut found = [0i64; 3];
        let mut words = text.split(' ').peekable();
        while let Some(word) = words.next() {
            let Some(unit) = words.next_if(|_| !word.contains(':')) else {
                let (sign, clock) = match word.strip_prefix('-') {
                    Some(rest) => (-1, rest),
                    None => (1, word.trim_start_matches('+')),
                };
                let parts: Vec<&str> = clock.split([':', '.']).collect();
                let decimals = format!("{:0<6}", parts.get(3).unwrap_or(&"0"));
                let number = |text: &str| text.parse::<i128>().unwrap();
                let seconds = (number(parts[0]) * 60 + number(parts[1])) * 60 + number(parts[2]);
                found[2] = i64::try_from(sign * (seconds * 1_000_000 + number(&decimals))).unwrap();
                continue;
            };
            let value: i64 = word.parse().unwrap();
            prop_assert_eq!(unit.ends_with('s'), value != 1);
            match unit.trim_end_matches('s') {
                "year" => found[0] += 12 * value,
                "mon" => found[0] += value,
                "day" => found[1] = value,
                other => panic!("{other}"),
            }
        }
        prop_assert_eq!(found, [i64::from(months), i64::from(days), micros]);
    }

    #[test]
    fn any_address_reads_back(words in proptest::array::uniform8(prop_oneof![Just(0u16), Just(0xFFFF), any::<u16>()])) {
        let text = of_address(&of_version_6(words, 128), false).unwrap();
        prop_assert_eq!(text.parse::<Ipv6Addr>().unwrap(), Ipv6Addr::from(words));
        let octets = words[0].to_be_bytes().into_iter().chain(words[1].to_be_bytes()).collect::<Vec<_>>();
        let text = of_address(&body(2, 32, &octets), false).unwrap();
        prop_assert_eq!(text.parse::<IpAddr>().unwrap(), IpAddr::V4(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3])));
    }
}
