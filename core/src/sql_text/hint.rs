//! Hints: what a comment before a statement asks of the cache. Pure functions: nothing here is shared.
//!
//! The syntax is that of pg_hint_plan, so hints for both can stand in one comment: words, each with a parenthesis or without one. Words that
//! are not ours are passed over. A hint that does not parse has no effect: a hint can make a statement quicker or slower, but never fail.

use crate::sql_text::lexer::{
    comment_end, end_of, is_ident_part, is_ident_start, is_space, line_end, quoted_identifier_end,
};

/// What a statement's author asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hint {
    /// `no_arrow_cache`: neither serve it nor store it.
    Never,
    /// `arrow_cache`: store it, however quick it is.
    Always {
        /// `(ttl=…)`, in seconds, 0 for no limit: used instead of the session's.
        ttl: Option<u32>,
        /// Not `(fragments=off)`: it may be computed from stored fragments.
        fragments: bool,
        /// `(max_stale=…)`, in milliseconds, 0 for never: used instead of the session's.
        max_stale: Option<u32>,
    },
}

impl Hint {
    /// `arrow_cache` without options.
    const PLAIN: Self = Self::Always { ttl: None, fragments: true, max_stale: None };
}

/// The word of `Hint::Never`.
const NEVER: &[u8] = b"no_arrow_cache";
/// The word of `Hint::Always`.
const ALWAYS: &[u8] = b"arrow_cache";
/// Longest `ttl`, in seconds: that of the setting.
const LONGEST_TTL: u32 = i32::MAX as u32;
/// Largest `max_stale`, in milliseconds: that of the setting.
const LARGEST_MAX_STALE: u32 = i32::MAX as u32;

/// Finds the first hint for us in the comments before the first word of the query in `statement`, also when EXPLAIN, PREPARE, DECLARE or
/// the parenthesis of COPY stands before the query.
#[must_use]
pub fn hint(statement: &[u8]) -> Option<Hint> {
    let mut at = 0;
    let mut wrapped = false;
    let mut copied = false;
    loop {
        match *statement.get(at)? {
            byte if is_space(byte) => at += 1,
            b'-' if statement.get(at + 1) == Some(&b'-') => at = line_end(statement, at),
            b'/' if statement.get(at + 1) == Some(&b'*') => {
                let end = comment_end(statement, at)?;
                let found = in_comment(&statement[at..end]);
                if found.is_some() {
                    return found;
                }
                at = end;
            }
            byte if is_ident_start(byte) => {
                let word = word_at(statement, at);
                if !wrapped {
                    copied = is_one_of(word, &[b"copy"]);
                    wrapped = copied || is_one_of(word, &[b"explain", b"prepare", b"declare"]);
                    if !wrapped {
                        return None;
                    }
                } else if is_one_of(word, &[b"select", b"with", b"values", b"table"]) {
                    return None;
                }
                at += word.len();
            }
            b'"' if wrapped => at = quoted_identifier_end(statement, at),
            b'(' if copied => at += 1,
            b'(' if wrapped => at = group_end(statement, at)?,
            _ => return None,
        }
    }
}

/// The first hint for us in a comment, if everything before it has the syntax of hints.
fn in_comment(comment: &[u8]) -> Option<Hint> {
    let body = comment.strip_prefix(b"/*+")?.strip_suffix(b"*/")?;
    let mut at = 0;
    loop {
        at = skip_space(body, at);
        let word = word_at(body, at);
        if !is_ident_start(*word.first()?) {
            return None;
        }
        at = skip_space(body, at + word.len());
        let mut options = None;
        if body.get(at) == Some(&b'(') {
            let end = group_end(body, at)?;
            options = Some(&body[at + 1..end - 1]);
            at = end;
        }
        if is_one_of(word, &[NEVER, ALWAYS]) {
            return of_word(word, options);
        }
    }
}

/// The hint that a word of ours is, with the options behind it.
fn of_word(word: &[u8], options: Option<&[u8]>) -> Option<Hint> {
    if is_one_of(word, &[NEVER]) {
        options.is_none().then_some(Hint::Never)
    } else {
        options.map_or(Some(Hint::PLAIN), with_options)
    }
}

/// `arrow_cache` with options: `name = value`, separated by commas, each at most once.
fn with_options(options: &[u8]) -> Option<Hint> {
    let (mut ttl, mut fragments, mut max_stale) = (None, true, None);
    for option in options.split(|&byte| byte == b',') {
        let (name, value) = name_and_value(option)?;
        if is_one_of(name, &[b"ttl"]) && ttl.is_none() {
            ttl = Some(seconds(value)?);
        } else if is_one_of(name, &[b"max_stale"]) && max_stale.is_none() {
            max_stale = Some(milliseconds(value)?);
        } else if is_one_of(name, &[b"fragments"]) && fragments && is_one_of(value, &[b"off"]) {
            fragments = false;
        } else {
            return None;
        }
    }
    Some(Hint::Always { ttl, fragments, max_stale })
}

/// The two sides of `name = value`.
fn name_and_value(option: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = skip_space(option, 0);
    let name = option.get(at).filter(|&&byte| is_ident_start(byte)).map(|_| word_at(option, at))?;
    let at = skip_space(option, at + name.len());
    Some((name, option[at..].strip_prefix(b"=")?.trim_ascii()))
}

/// The seconds of a `ttl`.
fn seconds(value: &[u8]) -> Option<u32> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = std::str::from_utf8(value).ok()?.parse::<u32>().ok()?;
    (seconds <= LONGEST_TTL).then_some(seconds)
}

/// The milliseconds of a `max_stale`: digits and a unit of time, as settings have them; milliseconds without one.
fn milliseconds(value: &[u8]) -> Option<u32> {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&value[..digits]).ok()?.parse::<u32>().ok()?;
    let unit = match value[digits..].trim_ascii_start() {
        b"" | b"ms" => 1,
        b"s" => 1000,
        b"min" => 60_000,
        b"h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(unit).filter(|milliseconds| *milliseconds <= LARGEST_MAX_STALE)
}

fn skip_space(text: &[u8], at: usize) -> usize {
    end_of(text, at, is_space)
}

/// The word that begins at `at`.
fn word_at(text: &[u8], at: usize) -> &[u8] {
    &text[at..end_of(text, at, is_ident_part)]
}

fn is_one_of(word: &[u8], wanted: &[&[u8]]) -> bool {
    wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted))
}

/// End of the parenthesis that begins at `at`, quoted text inside passed over. A doubled quotation mark is the end of one quoted text and the
/// beginning of the next.
fn group_end(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        match *text.get(at)? {
            b'(' => depth += 1,
            b')' => depth -= 1,
            mark @ (b'"' | b'\'') => at += 1 + text[at + 1..].iter().position(|&byte| byte == mark)?,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}
