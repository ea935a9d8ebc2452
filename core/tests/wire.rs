//! DataRow messages of stored columns, against simple reference implementations and against what the server is known to
//! print. `tests/clients` compares them with the server itself.

use arrow_cache_core::formats::column_buffers::ColumnBuffers;
use arrow_cache_core::formats::epoch::{date_to_arrow, timestamp_to_arrow};
use arrow_cache_core::formats::numeric;
use arrow_cache_core::formats::wire::{
    Encoder, LONGEST, MessageBuffer, Outcome, RowShape, Server, Span, WireFormat, Zone, count_messages, stretch,
};
use proptest::prelude::*;

/// Stands for the server: makes the same bytes of each value, and prints floats as Rust does.
struct Mock(&'static [u8]);

impl Server for Mock {
    fn value(&self, column: usize) -> &[u8] {
        assert_eq!(column, 1);
        self.0
    }

    fn float8(&self, value: f64, out: &mut [u8; LONGEST]) -> usize {
        write(&format!("{value:e}"), out)
    }

    fn float4(&self, value: f32, out: &mut [u8; LONGEST]) -> usize {
        write(&format!("{value:e}"), out)
    }
}

fn write(text: &str, out: &mut [u8; LONGEST]) -> usize {
    out[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

const SERVER: Mock = Mock(b"by server");

/// Half an hour east until the epoch, then seven and a quarter hours and five seconds west.
fn a_zone(_: usize, second: i64) -> Span {
    if second < 0 {
        Span { start: i64::MIN, end: 0, offset: 1800 }
    } else {
        Span { start: 0, end: i64::MAX, offset: -(7 * 3600 + 900 + 5) }
    }
}

fn encoder(formats: &[WireFormat]) -> Encoder {
    Encoder::new(formats.to_vec(), Zone::new(a_zone, 0))
}

/// The values of the only message of a buffer.
fn values(buffer: &MessageBuffer) -> Vec<Option<Vec<u8>>> {
    let message = buffer.messages();
    assert_eq!(message[0], b'D');
    let word = |at: usize| u32::from_be_bytes(message[at..at + 4].try_into().unwrap());
    assert_eq!(word(1) as usize + 1, message.len());
    let count = u16::from_be_bytes([message[5], message[6]]);
    let mut at = 7;
    let values = (0..count).map(|_| {
        let length = word(at);
        at += 4;
        if length == u32::MAX {
            return None;
        }
        at += length as usize;
        Some(message[at - length as usize..at].to_vec())
    });
    let values = values.collect();
    assert_eq!(at, message.len());
    values
}

/// What becomes of one value with these stored bytes.
fn encoded(format: WireFormat, stored: &[u8]) -> Option<Vec<u8>> {
    let varies = matches!(format, WireFormat::Bytes | WireFormat::ByteaText | WireFormat::NumericBinary);
    let ends: Vec<u8> = [0, stored.len() as u32].iter().flat_map(|end| end.to_le_bytes()).collect();
    let column = ColumnBuffers { validity: &[], offsets: if varies { &ends } else { &[] }, values: stored };
    let mut buffer = MessageBuffer::new(4096).unwrap();
    match encoder(&[format]).append(&[column], 0, &SERVER, &mut buffer) {
        Outcome::Appended => values(&buffer).remove(0),
        Outcome::Refused => None,
        Outcome::Full => panic!("a buffer too small for {format:?}"),
    }
}

fn shown(format: WireFormat, stored: &[u8]) -> String {
    String::from_utf8(encoded(format, stored).expect("a value that is printed")).unwrap()
}

fn float8(value: f64) -> String {
    shown(WireFormat::Float64Text, &value.to_le_bytes())
}

fn float4(value: f32) -> String {
    shown(WireFormat::Float32Text, &value.to_le_bytes())
}

/// The server prints all digits of their hours.
#[test]
fn offsets_of_a_hundred_hours_are_refused() {
    const EVER: Span = Span { start: i64::MIN, end: i64::MAX, offset: 0 };
    let moment = 0_i64.to_le_bytes();
    let column = ColumnBuffers { validity: &[], offsets: &[], values: &moment };
    let outcome = |zone| {
        let mut buffer = MessageBuffer::new(4096).unwrap();
        Encoder::new(vec![WireFormat::TimestampTzText], zone).append(&[column], 0, &SERVER, &mut buffer)
    };
    assert_eq!(outcome(Zone::new(|_, _| Span { offset: 359_999, ..EVER }, 0)), Outcome::Appended);
    assert_eq!(outcome(Zone::new(|_, _| Span { offset: -359_999, ..EVER }, 0)), Outcome::Appended);
    assert_eq!(outcome(Zone::new(|_, _| Span { offset: 360_000, ..EVER }, 0)), Outcome::Refused);
    assert_eq!(outcome(Zone::new(|_, _| Span { offset: -360_000, ..EVER }, 0)), Outcome::Refused);
}

/// Messages of another type have the same bytes behind it, and are counted.
#[test]
fn messages_of_another_type() {
    let values = [7_i32.to_le_bytes(), 8_i32.to_le_bytes()].concat();
    let column = ColumnBuffers { validity: &[], offsets: &[], values: &values };
    let messages = |shape| {
        let mut encoder = encoder(&[WireFormat::Int32Text]);
        encoder.set_shape(shape);
        let mut buffer = MessageBuffer::new(4096).unwrap();
        for row in 0..2 {
            assert_eq!(encoder.append(&[column], row, &SERVER, &mut buffer), Outcome::Appended);
        }
        buffer.messages().to_vec()
    };
    let (rows, mut copied) = (messages(RowShape::DataRow), messages(RowShape::CopyBinary));
    assert_eq!((count_messages(&rows), count_messages(&copied), count_messages(&[])), (2, 2, 0));
    let second = copied.len() / 2;
    assert_eq!((copied[0], copied[second]), (b'd', b'd'));
    (copied[0], copied[second]) = (b'D', b'D');
    assert_eq!(copied, rows);
}

#[test]
fn floats_with_decimals() {
    for (value, text) in [
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (0.0001, "0.0001"),
        (0.00012345, "0.00012345"),
        (123_456.789, "123456.789"),
        (999_999_999_999_999.9, "999999999999999.9"),
    ] {
        assert_eq!(float8(value), text);
    }
    for (value, text) in [(0.1, "0.1"), (0.0001, "0.0001"), (-123_456.7, "-123456.7"), (999_999.9, "999999.9")] {
        assert_eq!(float4(value), text);
    }
}

/// The mock prints with an exponent, so it shows which values it was given.
#[test]
fn other_floats_are_the_servers() {
    for value in
        [0.0, -0.0, 1.0, -99_999.0, 9.9e-5, 1e15, 1e23, 5e-324, f64::MAX, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]
    {
        assert_eq!(float8(value), format!("{value:e}"));
    }
    for value in [0.0, -0.0, 1.0, -99_999.0, 9.9e-5, 1e6, 33_554_448.0, f32::MAX, f32::NAN, f32::NEG_INFINITY] {
        assert_eq!(float4(value), format!("{value:e}"));
    }
}

#[test]
fn words_of_dates_and_times() {
    let date = |days: i32| shown(WireFormat::DateText, &date_to_arrow(days).unwrap().to_le_bytes());
    assert_eq!(date(0), "2000-01-01");
    assert_eq!(date(i32::MAX), "infinity");
    assert_eq!(date(i32::MIN), "-infinity");
    assert_eq!(date(-2_451_545), "4714-11-24 BC");
    assert_eq!(date(2_145_031_948), "5874897-12-31");
    assert_eq!(date(-730_120), "0001-12-31 BC");
    assert_eq!(date(-730_119), "0001-01-01");
    let time = |micros: i64| shown(WireFormat::TimeText, &micros.to_le_bytes());
    assert_eq!(time(0), "00:00:00");
    assert_eq!(time(86_400_000_000), "24:00:00");
    assert_eq!(time(3_723_000_100), "01:02:03.0001");
    let stamp = |micros: i64| shown(WireFormat::TimestampText, &timestamp_to_arrow(micros).to_le_bytes());
    assert_eq!(stamp(i64::MAX), "infinity");
    assert_eq!(stamp(i64::MIN), "-infinity");
    assert_eq!(stamp(-211_813_488_000_000_000), "4714-11-24 00:00:00 BC");
    assert_eq!(stamp(9_223_371_331_199_999_999), "294276-12-31 23:59:59.999999");
    assert_eq!(stamp(-1), "1999-12-31 23:59:59.999999");
    let here = |micros: i64| shown(WireFormat::TimestampTzText, &timestamp_to_arrow(micros).to_le_bytes());
    assert_eq!(here(0), "1999-12-31 16:44:55-07:15:05");
    assert_eq!(here(-946_684_800_000_000), "1969-12-31 16:44:55-07:15:05");
    assert_eq!(here(-946_684_800_000_001), "1970-01-01 00:29:59.999999+00:30");
}

#[test]
fn moments_that_are_none_are_refused() {
    for days in [-2_451_546, 2_145_031_949] {
        assert_eq!(encoded(WireFormat::DateText, &date_to_arrow(days).unwrap().to_le_bytes()), None);
    }
    for micros in [-211_813_488_000_000_001, 9_223_371_331_200_000_000] {
        let stored = timestamp_to_arrow(micros).to_le_bytes();
        assert_eq!(encoded(WireFormat::TimestampText, &stored), None);
        assert_eq!(encoded(WireFormat::TimestampTzText, &stored), None);
    }
    for micros in [-1_i64, 86_400_000_001] {
        assert_eq!(encoded(WireFormat::TimeText, &micros.to_le_bytes()), None);
    }
}

#[test]
fn other_words() {
    assert_eq!(shown(WireFormat::BoolText, &[1]), "t");
    assert_eq!(shown(WireFormat::BoolText, &[0]), "f");
    assert_eq!(encoded(WireFormat::BoolBinary, &[1]), Some(vec![1]));
    assert_eq!(shown(WireFormat::UuidText, &(0..16).collect::<Vec<u8>>()), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    assert_eq!(shown(WireFormat::ByteaText, b"\x00\xff a"), "\\x00ff2061");
    assert_eq!(shown(WireFormat::ByteaText, b""), "\\x");
    let words = |words: &[u16]| Some(words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>());
    assert_eq!(encoded(WireFormat::NumericBinary, b"-12345.60"), words(&[3, 1, 0x4000, 2, 1, 2345, 6000]));
    assert_eq!(encoded(WireFormat::NumericBinary, b"0.00"), words(&[0, 0, 0, 2]));
    assert_eq!(encoded(WireFormat::NumericBinary, b"NaN"), words(&[0, 0, 0xC000, 0]));
    assert_eq!(encoded(WireFormat::NumericBinary, b"Infinity"), words(&[0, 0, 0xD000, 32]));
    assert_eq!(encoded(WireFormat::NumericBinary, b"-Infinity"), words(&[0, 0, 0xF000, 32]));
    assert_eq!(encoded(WireFormat::NumericBinary, b"no number"), None);
}

/// Rows are appended whole or not at all, wherever the buffer ends.
#[test]
fn a_row_fits_or_leaves_no_trace() {
    let formats = [
        WireFormat::Int32Text,
        WireFormat::ByServer,
        WireFormat::Bytes,
        WireFormat::NumericBinary,
        WireFormat::Int16Text,
    ];
    let ends: Vec<u8> = [0_u32, 3].iter().flat_map(|end| end.to_le_bytes()).collect();
    let number = 123_456_i32.to_le_bytes();
    let small = (-1_i16).to_le_bytes();
    let fixed = |values| ColumnBuffers { validity: &[], offsets: &[], values };
    let varying = |values| ColumnBuffers { validity: &[], offsets: &ends, values };
    let columns = [fixed(&number), fixed(&[]), varying(b"abc"), varying(b"1.5"), fixed(&small)];
    let mut needed = None;
    for size in 0..400 {
        let mut buffer = MessageBuffer::new(size).unwrap();
        let outcome = encoder(&formats).append(&columns, 0, &SERVER, &mut buffer);
        match outcome {
            Outcome::Appended => {
                needed.get_or_insert(size);
                let got = values(&buffer);
                assert_eq!(got[0].as_deref(), Some(&b"123456"[..]));
                assert_eq!(got[1].as_deref(), Some(&b"by server"[..]));
                assert_eq!(got[2].as_deref(), Some(&b"abc"[..]));
                assert_eq!(got[4].as_deref(), Some(&b"-1"[..]));
            }
            Outcome::Full => assert!(needed.is_none() && buffer.messages().is_empty()),
            Outcome::Refused => panic!("nothing here is refused"),
        }
    }
    assert_eq!(needed, Some(encoder(&formats).size(&columns, 0, &SERVER)));
}

#[test]
fn nulls_and_no_columns() {
    let numbers: Vec<u8> = (0..9_i32).flat_map(i32::to_le_bytes).collect();
    let column = ColumnBuffers { validity: &[0b0101_0101, 1], offsets: &[], values: &numbers };
    for row in 0..9 {
        let mut buffer = MessageBuffer::new(1000).unwrap();
        assert_eq!(encoder(&[WireFormat::Word4]).append(&[column], row, &SERVER, &mut buffer), Outcome::Appended);
        let expected = row.is_multiple_of(2).then(|| (row as u32).to_be_bytes().to_vec());
        assert_eq!(values(&buffer), [expected]);
    }
    let mut buffer = MessageBuffer::new(1000).unwrap();
    assert_eq!(encoder(&[]).append(&[], 0, &SERVER, &mut buffer), Outcome::Appended);
    assert_eq!(buffer.messages(), b"D\0\0\0\x06\0\0");
}

/// A day counted from 2000, by steps of a year and a month.
fn counted(days: i32) -> String {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let eras = i64::from(days).div_euclid(146_097);
    let mut left = i64::from(days).rem_euclid(146_097);
    let mut year = 2000 + eras * 400;
    while left >= 365 + i64::from(leap(year)) {
        left -= 365 + i64::from(leap(year));
        year += 1;
    }
    let february = 28 + i64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    let (shown, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    format!("{shown:04}-{month:02}-{:02}{era}", left + 1)
}

proptest! {
    #[test]
    fn every_float8_reads_back(bits: u64, decimals in -1e15..1e15) {
        let value = f64::from_bits(bits);
        let read: f64 = float8(value).parse().unwrap();
        prop_assert!(read.to_bits() == bits || value.is_nan() && read.is_nan());
        prop_assert_eq!(float8(decimals).parse(), Ok(decimals));
    }

    #[test]
    fn floats_with_decimals_are_short(size in -4..15_i32, part in 1.0..10.0_f64) {
        let value = part * 10_f64.powi(size);
        prop_assume!(value.fract() != 0.0 && (1e-4..1e15).contains(&value));
        let digits = |text: &str| text.split('e').next().unwrap_or_default().replace('.', "").trim_matches('0').len();
        prop_assert_eq!(digits(&float8(value)), digits(&format!("{value:e}")));
        prop_assert!(!float8(value).contains('e'));
    }

    #[test]
    fn every_float4_reads_back(bits: u32, decimals in -1e6..1e6_f32) {
        let value = f32::from_bits(bits);
        let read: f32 = float4(value).parse().unwrap();
        prop_assert!(read.to_bits() == bits || value.is_nan() && read.is_nan());
        prop_assert_eq!(float4(decimals).parse(), Ok(decimals));
    }

    #[test]
    fn integers(value: i64) {
        prop_assert_eq!(shown(WireFormat::Int64Text, &value.to_le_bytes()), value.to_string());
        prop_assert_eq!(shown(WireFormat::UInt64Text, &value.to_le_bytes()), value.cast_unsigned().to_string());
        prop_assert_eq!(shown(WireFormat::Int32Text, &(value as i32).to_le_bytes()), (value as i32).to_string());
        prop_assert_eq!(shown(WireFormat::UInt32Text, &(value as u32).to_le_bytes()), (value as u32).to_string());
        prop_assert_eq!(shown(WireFormat::Int16Text, &(value as i16).to_le_bytes()), (value as i16).to_string());
        prop_assert_eq!(encoded(WireFormat::Word8, &value.to_le_bytes()), Some(value.to_be_bytes().to_vec()));
        prop_assert_eq!(encoded(WireFormat::Word2, &(value as i16).to_le_bytes()), Some((value as i16).to_be_bytes().to_vec()));
    }

    #[test]
    fn every_date(days in -2_451_545..=2_145_031_948) {
        let stored = date_to_arrow(days).unwrap().to_le_bytes();
        prop_assert_eq!(shown(WireFormat::DateText, &stored), counted(days));
        prop_assert_eq!(encoded(WireFormat::DateBinary, &stored), Some(days.to_be_bytes().to_vec()));
    }

    #[test]
    fn every_timestamp(micros in -211_813_488_000_000_000..9_223_371_331_200_000_000_i64) {
        let stored = timestamp_to_arrow(micros).to_le_bytes();
        let clock = micros.rem_euclid(86_400_000_000);
        let (seconds, fraction) = (clock / 1_000_000, clock % 1_000_000);
        let mut time = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        if fraction > 0 {
            time += format!(".{fraction:06}").trim_end_matches('0');
        }
        let day = counted(micros.div_euclid(86_400_000_000) as i32);
        let expected = match day.strip_suffix(" BC") {
            Some(day) => format!("{day} {time} BC"),
            None => format!("{day} {time}"),
        };
        prop_assert_eq!(shown(WireFormat::TimestampText, &stored), expected);
        prop_assert_eq!(encoded(WireFormat::TimestampBinary, &stored), Some(micros.to_be_bytes().to_vec()));
    }

    #[test]
    fn every_numeric_has_room(whole in "[1-9][0-9]{0,40}", fraction in "([0-9]{0,40}[1-9])?") {
        let text = if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") };
        let mut body = Vec::new();
        prop_assert!(numeric::from_text(text.as_bytes(), &mut body));
        let sent = encoded(WireFormat::NumericBinary, text.as_bytes()).unwrap();
        let count = usize::from(u16::from_be_bytes([sent[0], sent[1]]));
        prop_assert_eq!(sent.len(), 8 + 2 * count);
        prop_assert!(body.len() == 2 + 2 * count || body.len() == 4 + 2 * count);
    }

    #[test]
    fn text_goes_out_as_it_is(text: Vec<u8>) {
        prop_assert_eq!(encoded(WireFormat::Bytes, &text), Some(text));
    }

    #[test]
    fn spans_are_kept_apart(seconds in prop::collection::vec(-10_000_000_000..10_000_000_000_i64, 1..50)) {
        let mut zone = Zone::new(a_zone, 0);
        for second in seconds {
            prop_assert_eq!(zone.offset(second), a_zone(0, second).offset);
            prop_assert!(stretch(second) <= second);
        }
    }
}
