//! The text of inet and cidr (network.c, `network_out`; inet_net_ntop.c).
//!
//! A body is what follows the varlena header (utils/inet.h, `inet_struct`): the family, the bits of the netmask, and the address.

use super::ShortText;

const FAMILY_4: u8 = 2;
const FAMILY_6: u8 = 3;

/// The text of an address. A cidr always shows its netmask, an inet only one that is shorter than the address. `None` if this is no body.
#[must_use]
pub fn text<'r>(body: &[u8], is_cidr: bool, room: &'r mut ShortText) -> Option<&'r [u8]> {
    let text = room.begin();
    let (&[family, bits], address) = body.split_first_chunk::<2>()?;
    match family {
        FAMILY_4 => octets(*address.first_chunk::<4>()?, text),
        FAMILY_6 => words(address.first_chunk::<16>()?, text),
        _ => return None,
    }
    if is_cidr || usize::from(bits) != address.len() * 8 {
        text.add(b"/");
        text.integer(bits);
    }
    matches!((family, address.len()), (FAMILY_4, 4) | (FAMILY_6, 16)).then(|| text.end())
}

/// Four octets, decimal.
fn octets(octets: [u8; 4], text: &mut ShortText) {
    for (number, octet) in octets.into_iter().enumerate() {
        text.add(if number == 0 { b"" } else { b"." });
        text.integer(octet);
    }
}

/// Eight words, hexadecimal. The first of the longest runs of zeros is left out. The last two words are octets if the others say that this is an address of version 4.
fn words(address: &[u8; 16], text: &mut ShortText) {
    let (pairs, _) = address.as_chunks::<2>();
    let words: [u16; 8] = std::array::from_fn(|number| u16::from_be_bytes(pairs[number]));
    let (start, length) = longest_run(&words);
    let is_version_4 =
        start == 0 && (length == 6 || (length == 7 && words[7] != 1) || (length == 5 && words[5] == 0xFFFF));
    let mut number = 0;
    while number < 8 {
        if length > 0 && number == start {
            text.add(b":");
            number += length;
            continue;
        }
        text.add(if number == 0 { b"" } else { b":" });
        if number == 6 && is_version_4 {
            let [.., a, b, c, d] = *address;
            return octets([a, b, c, d], text);
        }
        hexadecimal(words[number], text);
        number += 1;
    }
    text.add(if length > 0 && start + length == 8 { b":" } else { b"" });
}

/// Start and length of the first of the longest runs of at least two zeros; length 0 if there is none.
fn longest_run(words: &[u16; 8]) -> (usize, usize) {
    let mut longest = (0, 0);
    let mut start = 0;
    for (number, word) in words.iter().enumerate() {
        let length = number + 1 - start;
        if *word != 0 {
            start = number + 1;
        } else if length >= 2 && length > longest.1 {
            longest = (start, length);
        }
    }
    longest
}

/// A word in lower-case hexadecimal digits, as few as it takes.
fn hexadecimal(word: u16, text: &mut ShortText) {
    let digits = (4 - word.leading_zeros() as usize / 4).max(1);
    for place in (0..digits).rev() {
        text.add(&[b"0123456789abcdef"[usize::from(word >> (4 * place) & 15)]]);
    }
}
