//! Hints: what a comment before a statement asks of the cache. Pure functions: nothing here is shared.
//!
//! The syntax is that of pg_hint_plan, so hints for both can stand in one comment: words, each with a parenthesis or
//! without one. Words that are not ours are passed over. A hint that does not parse has no effect: a hint can make a
//! statement quicker or slower, but never fail.

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

/// The word of `Hint::Never`, the longest of ours.
const NEVER: &[u8] = b"no_arrow_cache";
/// The word of `Hint::Always`.
const ALWAYS: &[u8] = b"arrow_cache";
/// A word that differs from one of ours in so many letters is a slip.
const FEW_TYPOS: usize = 2;
/// Longest `ttl`, in seconds: that of the setting.
const LONGEST_TTL: u32 = i32::MAX as u32;
/// Largest `max_stale`, in milliseconds: that of the setting.
const LARGEST_MAX_STALE: u32 = i32::MAX as u32;

/// Finds the first hint for us in the comments before the first word of the query in `statement`, also when EXPLAIN,
/// PREPARE, DECLARE or the parenthesis of COPY stands before the query.
#[must_use]
pub fn hint(statement: &[u8]) -> Option<Hint> {
    find_in_comments(statement, |comment| read(comment).hint)
}

/// The first comment where `hint` looks that seems to be meant for us, and is not understood, or only a part of it.
#[must_use]
pub fn unclear_hint(statement: &[u8]) -> Option<&[u8]> {
    find_in_comments(statement, |comment| read(comment).is_unclear.then_some(comment))
}

/// The first that `find` finds in a comment before the first word of the query in a statement.
fn find_in_comments<'s, T>(statement: &'s [u8], find: impl Fn(&'s [u8]) -> Option<T>) -> Option<T> {
    let mut at = 0;
    let mut wrapped = false;
    let mut copied = false;
    loop {
        match *statement.get(at)? {
            byte if is_space(byte) => at += 1,
            b'-' if statement.get(at + 1) == Some(&b'-') => at = line_end(statement, at),
            b'/' if statement.get(at + 1) == Some(&b'*') => {
                let end = comment_end(statement, at)?;
                if let Some(found) = find(&statement[at..end]) {
                    return Some(found);
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

/// What a comment says to us.
#[derive(Default)]
struct Said {
    /// The first hint for us, if everything before it has the syntax of hints.
    hint: Option<Hint>,
    /// There is more that seems to be meant for us.
    is_unclear: bool,
}

/// Reads a comment.
fn read(comment: &[u8]) -> Said {
    let body = comment.strip_prefix(b"/*+").and_then(|body| body.strip_suffix(b"*/")).unwrap_or_default();
    let mut said = Said::default();
    // What stands behind other text, or behind a hint that does not parse, is no hint any more.
    let mut is_over = false;
    let mut at = 0;
    while let Some(&byte) = body.get(at) {
        if is_space(byte) {
            at += 1;
            continue;
        }
        if !is_ident_start(byte) {
            is_over = true;
            // An option may have been meant.
            said.is_unclear |= said.hint.is_some();
            at += 1;
            continue;
        }
        let word = word_at(body, at);
        let is_ours = is_one_of(word, &[NEVER, ALWAYS]);
        let may_be_ours = is_ours || is_like_ours(dashed_word_at(body, at));
        at = skip_space(body, at + word.len());
        let options = if body.get(at) == Some(&b'(') {
            let start = at + 1;
            let Some(end) = group_end(body, at) else {
                said.is_unclear |= may_be_ours;
                return said;
            };
            at = end;
            Some(&body[start..end - 1])
        } else {
            None
        };
        let hint = if is_ours && !is_over { of_word(word, options) } else { None };
        if hint.is_some() && said.hint.is_none() {
            said.hint = hint;
        } else {
            said.is_unclear |= may_be_ours;
            is_over |= is_ours;
        }
    }
    said
}

/// The hint that a word of ours is, with the options behind it.
fn of_word(word: &[u8], options: Option<&[u8]>) -> Option<Hint> {
    if is_one_of(word, &[NEVER]) {
        options.is_none().then_some(Hint::Never)
    } else {
        options.map_or(Some(Hint::PLAIN), with_options)
    }
}

/// Returns true if this is a word of ours, or close to one. No hint of pg_hint_plan is.
fn is_like_ours(word: &[u8]) -> bool {
    [NEVER, ALWAYS].iter().any(|ours| distance(word, ours) <= FEW_TYPOS)
}

/// How many letters have to be put in, left out or replaced to make one word of the other; more than `FEW_TYPOS` if
/// their lengths differ by more.
fn distance(word: &[u8], ours: &[u8]) -> usize {
    if word.len().abs_diff(ours.len()) > FEW_TYPOS {
        return usize::MAX;
    }
    // Of the letters so far to each beginning of ours.
    let mut row: [usize; NEVER.len() + 1] = std::array::from_fn(|length| length);
    for letter in word {
        let mut diagonal = row[0];
        row[0] += 1;
        for (place, other) in ours.iter().enumerate() {
            let replaced = diagonal + usize::from(!letter.eq_ignore_ascii_case(other));
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[ours.len()]
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

/// As `word_at`, with dashes as parts of the word.
fn dashed_word_at(text: &[u8], at: usize) -> &[u8] {
    &text[at..end_of(text, at, |byte| is_ident_part(byte) || byte == b'-')]
}

fn is_one_of(word: &[u8], wanted: &[&[u8]]) -> bool {
    wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted))
}

/// End of the parenthesis that begins at `at`, quoted text inside passed over. A doubled quotation mark is the end of
/// one quoted text and the beginning of the next.
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
