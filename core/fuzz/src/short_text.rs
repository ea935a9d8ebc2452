//! Addresses and ranges as the server lays them out, into text.

use std::net::IpAddr;

use arrow_cache_core::formats::short_text::range::Bounds;
use arrow_cache_core::formats::short_text::{ShortText, network, range};

const BOUNDS: [Bounds; 5] = [Bounds::Int32, Bounds::Int64, Bounds::Date, Bounds::Timestamp, Bounds::TimestampTz];

/// Reads any bytes as the body of an inet, a cidr, and a range of each kind.
///
/// # Panics
/// When a promise is broken.
pub fn check(body: &[u8]) {
    let mut room = ShortText::new();
    for is_cidr in [false, true] {
        let Some(text) = network::text(body, is_cidr, &mut room) else { continue };
        let text = std::str::from_utf8(text).expect("a text is ASCII");
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let octets = match address.parse().expect("every text that is made can be read") {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        assert_eq!(octets, body[2..], "the address is the same");
        let bits = if bits.is_empty() { octets.len() * 8 } else { bits.parse().expect("a netmask is a number") };
        assert_eq!(bits, usize::from(body[1]), "so is its netmask");
    }
    for bounds in BOUNDS {
        let Some(text) = range::text(body, bounds, &mut room) else { continue };
        assert!(text.is_ascii());
        let is_whole =
            text == b"empty" || (matches!(text[0], b'[' | b'(') && matches!(text[text.len() - 1], b']' | b')'));
        assert!(is_whole, "a range has both ends");
    }
}
