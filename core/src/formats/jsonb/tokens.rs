//! Text as tokens: every key and value in the order of the text, with the number of members and the end of each container.

use super::{
    DEPTH_MAX, IS_CONTAINER, IS_FALSE, IS_NULL, IS_NUMERIC, IS_STRING, IS_TRUE, LENGTH_MASK, STEP, first_special,
    plain_length,
};

use crate::room::RoomyVec;

/// What a token stands for, in its upper four bits: a kind as in an entry, or one of these two.
pub const IS_OBJECT: u32 = 0x6000_0000;
/// A string with escapes.
pub const IS_ESCAPED: u32 = 0x7000_0000;

/// A key or value of the text. The lower 28 bits of the first word and the second word say
///
/// * of an array or object, number of the token behind its last one (of the token it is in, as long as it is open), and members;
/// * of all else, bytes of its text without the quotes, and where they begin.
#[derive(Clone, Copy)]
pub struct Token(u32, u32);

impl Token {
    fn new(kind: u32, first: usize, second: usize) -> Self {
        // Both are at most TEXT_MAX.
        Self(kind | first as u32, second as u32)
    }

    pub fn kind(self) -> u32 {
        self.0 & !LENGTH_MASK
    }

    pub fn first(self) -> usize {
        (self.0 & LENGTH_MASK) as usize
    }

    pub fn second(self) -> usize {
        self.1 as usize
    }

    pub fn is_container(self) -> bool {
        matches!(self.kind(), IS_CONTAINER | IS_OBJECT)
    }
}

/// Cuts a text into tokens. What is between quotes, and what a number looks like, is left to the writer.
pub struct Scanner<'a> {
    text: &'a [u8],
    tokens: &'a mut Vec<Token>,
    /// There was no memory for a token.
    pub short: bool,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8], tokens: &'a mut Vec<Token>) -> Self {
        Self { text, tokens, short: false }
    }

    #[inline]
    fn add(&mut self, token: Token) -> Option<()> {
        self.short = self.tokens.add(token).is_err();
        (!self.short).then_some(())
    }

    /// Takes the whole text, or nothing.
    pub fn scan(&mut self) -> Option<()> {
        let mut at = 0;
        let mut depth = 0;
        // The innermost container that is open, if depth is not 0, and its members so far. Those of the ones around it are in their tokens.
        let (mut open, mut kind, mut members) = (0, IS_NULL, 0);
        loop {
            at = match *self.text.get(at)? {
                b'"' => self.string(at)?,
                first @ (b'[' | b'{') => {
                    if depth == DEPTH_MAX {
                        return None;
                    }
                    let token = self.tokens.len();
                    let inner = if first == b'[' { IS_CONTAINER } else { IS_OBJECT };
                    if *self.text.get(at + 1)? == closing(inner) {
                        self.add(Token::new(inner, token + 1, 0))?;
                        at + 2
                    } else {
                        if let Some(outer) = self.tokens.get_mut(open) {
                            *outer = Token::new(kind, outer.first(), members);
                        }
                        self.add(Token::new(inner, open, 0))?;
                        (open, kind, members) = (token, inner, 0);
                        depth += 1;
                        at += 1;
                        if kind == IS_OBJECT {
                            at = self.key(at)?;
                        }
                        continue;
                    }
                }
                b'-' | b'0'..=b'9' => self.number(at)?,
                b't' => self.word(at, IS_TRUE, b"true")?,
                b'f' => self.word(at, IS_FALSE, b"false")?,
                b'n' => self.word(at, IS_NULL, b"null")?,
                _ => return None,
            };
            // A value has ended, and with it perhaps some of those that it is in.
            loop {
                if depth == 0 {
                    return (at == self.text.len()).then_some(());
                }
                members += 1;
                let next = *self.text.get(at)?;
                at += 1;
                if next == b',' {
                    break;
                }
                if next != closing(kind) {
                    return None;
                }
                let outer = self.tokens[open].first();
                self.tokens[open] = Token::new(kind, self.tokens.len(), members);
                depth -= 1;
                open = outer;
                (kind, members) = (self.tokens[open].kind(), self.tokens[open].second());
            }
            at = self.expect(at, b' ')?;
            if kind == IS_OBJECT {
                at = self.key(at)?;
            }
        }
    }

    // Each of these takes what begins at `at`, and returns what comes next.

    fn expect(&self, at: usize, byte: u8) -> Option<usize> {
        (self.text.get(at) == Some(&byte)).then_some(at + 1)
    }

    #[inline(always)]
    fn key(&mut self, at: usize) -> Option<usize> {
        if self.text.get(at) != Some(&b'"') {
            return None;
        }
        let end = self.string(at)?;
        let end = self.expect(end, b':')?;
        self.expect(end, b' ')
    }

    /// Here the first quote has been seen.
    #[inline(always)]
    fn string(&mut self, at: usize) -> Option<usize> {
        let start = at + 1;
        // Most strings are short.
        if let Some(characters) = self.text[start..].first_chunk::<STEP>()
            && let Some(length) = first_special(*characters)
            && characters[length] == b'"'
        {
            self.add(Token::new(IS_STRING, length, start))?;
            return Some(start + length + 1);
        }
        self.long_string(start)
    }

    #[inline(never)]
    fn long_string(&mut self, start: usize) -> Option<usize> {
        let mut end = start;
        let mut kind = IS_STRING;
        loop {
            end += plain_length(self.text.get(end..)?);
            match *self.text.get(end)? {
                b'"' => break,
                b'\\' => {
                    kind = IS_ESCAPED;
                    end += 2;
                }
                _ => return None,
            }
        }
        self.add(Token::new(kind, end - start, start))?;
        Some(end + 1)
    }

    fn number(&mut self, at: usize) -> Option<usize> {
        let length = self.text[at..].iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-')).count();
        self.add(Token::new(IS_NUMERIC, length, at))?;
        Some(at + length)
    }

    fn word(&mut self, at: usize, kind: u32, word: &[u8]) -> Option<usize> {
        if !self.text[at..].starts_with(word) {
            return None;
        }
        self.add(Token::new(kind, word.len(), at))?;
        Some(at + word.len())
    }
}

fn closing(kind: u32) -> u8 {
    if kind == IS_OBJECT { b'}' } else { b']' }
}
