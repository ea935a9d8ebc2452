//! Text as tokens: each key and value in the order of the text, with the number of members and the end of each container. Pure functions.

use super::image::{
    DEPTH_MAX, IS_CONTAINER, IS_FALSE, IS_NULL, IS_NUMERIC, IS_STRING, IS_TRUE, LENGTH_MASK, STEP, first_special,
    plain_length,
};

use crate::room::RoomyVec;

/// What a token stands for, in its upper four bits: a kind as in an entry, or one of these two.
pub const IS_OBJECT: u32 = 0x6000_0000;
/// A string with escapes.
pub const IS_ESCAPED: u32 = 0x7000_0000;

/// A key or value of the text. The lower 28 bits of the first word and the second word hold
///
/// * for an array or object: the number of the token behind its last one (while it is open: of the token it is in), and its members;
/// * for any other value: the bytes of its text without the quotes, and where they begin.
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

/// The innermost container that is open. Those around it have their members so far in their tokens.
struct Open {
    /// Number of containers that are open.
    depth: usize,
    /// Number of its token, if `depth` is not 0.
    token: usize,
    kind: u32,
    /// Its members so far.
    members: usize,
}

/// What comes behind a value.
enum Next {
    /// Another value, which begins here.
    Member(usize),
    /// The end of the text.
    End,
}

/// Cuts a text into tokens. The writer checks what stands between quotes, and numbers.
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
        let mut open = Open { depth: 0, token: 0, kind: IS_NULL, members: 0 };
        loop {
            at = match *self.text.get(at)? {
                b'"' => self.string(at)?,
                first @ (b'[' | b'{') => {
                    let kind = if first == b'[' { IS_CONTAINER } else { IS_OBJECT };
                    if open.depth == DEPTH_MAX {
                        return None;
                    }
                    if *self.text.get(at + 1)? != closing(kind) {
                        self.enter(kind, &mut open)?;
                        at += 1;
                        if kind == IS_OBJECT {
                            at = self.key(at)?;
                        }
                        continue;
                    }
                    self.add(Token::new(kind, self.tokens.len() + 1, 0))?;
                    at + 2
                }
                b'-' | b'0'..=b'9' => self.number(at)?,
                b't' => self.word(at, IS_TRUE, b"true")?,
                b'f' => self.word(at, IS_FALSE, b"false")?,
                b'n' => self.word(at, IS_NULL, b"null")?,
                _ => return None,
            };
            match self.leave(at, &mut open)? {
                Next::Member(next) => at = next,
                Next::End => return Some(()),
            }
        }
    }

    /// Opens a container that is not empty.
    #[inline(always)]
    fn enter(&mut self, kind: u32, open: &mut Open) -> Option<()> {
        let token = self.tokens.len();
        if let Some(outer) = self.tokens.get_mut(open.token) {
            *outer = Token::new(open.kind, outer.first(), open.members);
        }
        self.add(Token::new(kind, open.token, 0))?;
        *open = Open { depth: open.depth + 1, token, kind, members: 0 };
        Some(())
    }

    /// Takes what stands behind a value that ends before `at`: the ends of containers that end with it, and what stands before the next
    /// value.
    #[inline(always)]
    fn leave(&mut self, mut at: usize, open: &mut Open) -> Option<Next> {
        loop {
            if open.depth == 0 {
                return (at == self.text.len()).then_some(Next::End);
            }
            open.members += 1;
            let next = *self.text.get(at)?;
            at += 1;
            if next == b',' {
                break;
            }
            if next != closing(open.kind) {
                return None;
            }
            let outer = self.tokens[open.token].first();
            self.tokens[open.token] = Token::new(open.kind, self.tokens.len(), open.members);
            let token = self.tokens[outer];
            *open = Open { depth: open.depth - 1, token: outer, kind: token.kind(), members: token.second() };
        }
        at = self.expect(at, b' ')?;
        if open.kind == IS_OBJECT {
            at = self.key(at)?;
        }
        Some(Next::Member(at))
    }

    // Each of the following takes what begins at `at`, and returns where it ends.

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

    /// The caller has seen the first quote.
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
