//! A second, slow reading of SQL text by the rules of PostgreSQL's lexer (scan.l), with which the quick one is compared.
//!
//! Each rule is a function that returns the length of the token at the beginning of a text. The first rule that applies is used.

/// A part of SQL text that matters for its meaning.
#[derive(PartialEq, Eq, Debug)]
pub enum Token {
    /// White space or comments between other tokens: `+ -` is not `+-`.
    Gap,
    /// Bytes outside quotes, in lower case.
    Code(Vec<u8>),
    /// What stands in quotes, with its quotes and its prefix; also a quote or comment that does not end.
    Quoted(Vec<u8>),
    /// A newline between two parts of one string.
    Joint,
}

/// Strings by what they begin with, in lower case: are marks doubled, and are backslashes escapes (`None`: the setting decides)?
const STRINGS: &[(&[u8], bool, Option<bool>)] = &[
    (b"u&'", true, Some(false)),
    (b"e'", true, Some(true)),
    (b"n'", true, None),
    (b"b'", false, Some(false)),
    (b"x'", false, Some(false)),
    (b"'", true, None),
];

/// The tokens of `sql`, without gaps at the ends and without semicolons at the end.
pub fn tokens(sql: &[u8], plain_backslashes: bool) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = sql;
    while !rest.is_empty() {
        let length = [white_space(rest), line_comment(rest)].into_iter().flatten().next();
        let length = length.or_else(|| block_comment(rest).filter(|_| block_comment_ends(rest)));
        if let Some(length) = length {
            if !matches!(found.last(), None | Some(Token::Gap)) {
                found.push(Token::Gap);
            }
            rest = &rest[length..];
        } else if let Some((prefix, doubling, escapes)) = string(rest, plain_backslashes) {
            let mut start = prefix;
            loop {
                let length = start + quoted(&rest[start..], b'\'', doubling, escapes);
                let mut token = rest[..length].to_vec();
                token[..start].make_ascii_lowercase();
                found.push(Token::Quoted(token));
                rest = &rest[length..];
                let Some(gap) = joint(rest) else {
                    break;
                };
                found.push(Token::Joint);
                rest = &rest[gap..];
                start = 0;
            }
        } else if let Some(length) = identifier(rest).or_else(|| dollar_string(rest)).or_else(|| block_comment(rest)) {
            let mut token = rest[..length].to_vec();
            if token.starts_with(b"U") {
                token[0] = b'u';
            }
            found.push(Token::Quoted(token));
            rest = &rest[length..];
        } else {
            let length = number(rest).or_else(|| word(rest)).or_else(|| parameter(rest)).unwrap_or(1);
            found.push(Token::Code(rest[..length].to_ascii_lowercase()));
            rest = &rest[length..];
        }
    }
    while found.last().is_some_and(|last| *last == Token::Gap || *last == Token::Code(b";".to_vec())) {
        found.pop();
    }
    found
}

/// Length of the longest beginning that has only bytes of a kind; none if it has none.
fn run(text: &[u8], kind: impl Fn(u8) -> bool) -> Option<usize> {
    let length = text.iter().take_while(|&&byte| kind(byte)).count();
    (length > 0).then_some(length)
}

fn starts_word(byte: u8) -> bool {
    byte == b'_' || byte > 0x7f || byte.is_ascii_alphabetic()
}

fn continues_word(byte: u8) -> bool {
    starts_word(byte) || byte == b'$' || byte.is_ascii_digit()
}

fn white_space(text: &[u8]) -> Option<usize> {
    run(text, |byte| b" \t\n\r\x0b\x0c".contains(&byte))
}

fn line_comment(text: &[u8]) -> Option<usize> {
    text.starts_with(b"--").then(|| run(text, |byte| byte != b'\n' && byte != b'\r').unwrap_or(0))
}

/// Length of a comment with all nested ones, or of the rest of the text if it does not end.
fn block_comment(text: &[u8]) -> Option<usize> {
    if !text.starts_with(b"/*") {
        return None;
    }
    let (mut depth, mut at) = (1, 2);
    while depth > 0 && at < text.len() {
        let step = match &text[at..] {
            [b'/', b'*', ..] => 1,
            [b'*', b'/', ..] => -1,
            _ => 0,
        };
        depth += step;
        at += if step == 0 { 1 } else { 2 };
    }
    Some(at)
}

/// Does the comment that the text begins with end?
fn block_comment_ends(text: &[u8]) -> bool {
    // A further closing mark belongs to the comment only if it was still open.
    block_comment(text) == block_comment(&[text, b"*/"].concat())
}

/// Does a string begin here? Where its opening mark is, and how it ends.
fn string(text: &[u8], plain_backslashes: bool) -> Option<(usize, bool, bool)> {
    let begins = |with: &[u8]| text.len() >= with.len() && text[..with.len()].eq_ignore_ascii_case(with);
    let (with, doubling, escapes) = STRINGS.iter().find(|(with, ..)| begins(with))?;
    Some((with.len() - 1, *doubling, escapes.unwrap_or(!plain_backslashes)))
}

/// Length from a mark to the next one, or to the end of the text.
fn quoted(text: &[u8], mark: u8, doubling: bool, escapes: bool) -> usize {
    let mut at = 1;
    while at < text.len() {
        at += match &text[at..] {
            [b'\\', _, ..] if escapes => 2,
            [first, second, ..] if *first == mark && *second == mark && doubling => 2,
            [first, ..] if *first == mark => return at + 1,
            _ => 1,
        };
    }
    text.len()
}

/// Length of the gap after a string, if there is a newline in it and the string continues behind it.
fn joint(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(length) = white_space(&text[at..]).or_else(|| line_comment(&text[at..])) {
        at += length;
    }
    let newline = text[..at].iter().any(|byte| b"\n\r".contains(byte));
    (newline && text.get(at) == Some(&b'\'')).then_some(at)
}

fn identifier(text: &[u8]) -> Option<usize> {
    let prefix = match text {
        [b'"', ..] => 0,
        [b'u' | b'U', b'&', b'"', ..] => 2,
        _ => return None,
    };
    Some(prefix + quoted(&text[prefix..], b'"', true, false))
}

fn dollar_string(text: &[u8]) -> Option<usize> {
    let inside = text.strip_prefix(b"$")?;
    let tag = run(inside, |byte| byte != b'$' && continues_word(byte)).unwrap_or(0);
    let tagged = inside.get(tag) == Some(&b'$') && !inside[0].is_ascii_digit();
    if !tagged {
        return None;
    }
    let delimiter = &text[..tag + 2];
    let ends = (delimiter.len()..text.len()).find(|&at| text[at..].starts_with(delimiter));
    Some(ends.map_or(text.len(), |at| at + delimiter.len()))
}

/// Digits, with the letters that follow them directly.
fn number(text: &[u8]) -> Option<usize> {
    let digits = run(text, |byte| byte.is_ascii_digit())?;
    Some(digits + word(&text[digits..]).unwrap_or(0))
}

fn word(text: &[u8]) -> Option<usize> {
    if starts_word(*text.first()?) { run(text, continues_word) } else { None }
}

fn parameter(text: &[u8]) -> Option<usize> {
    Some(1 + run(text.strip_prefix(b"$")?, |byte| byte.is_ascii_digit()).unwrap_or(0))
}
