//! Clock expressions as a list of words, which is carried inside a plan like the rest of the verdict (`plan_marker`), so that a kept plan
//! can have them computed at each start. It lies in server memory, because it crosses calls that an ERROR may jump over: nothing in it has
//! a destructor.
//!
//! The first word has the number of expressions, the number of words and flags. Then each part of an expression follows its arguments, as on the
//! paper of a stack machine, and `END` or `SPLIT` follows each expression. The lower byte of a part's word says what it is.

use std::ffi::CStr;

use arrow_cache_core::RoomyVec;
use pgrx::pg_sys;

use super::coarse;
use super::expression::{Arguments, ClockExpressions, DEEPEST, Leaf, Part, part};
use super::functions::{Coarse, FUNCTIONS, GATHERING, PLACE_OF_TEXTCAT};
use super::kinds::Kind;
use super::shifted::Shift;
use super::split::{Comparison, Fixed, MOST_FIXED, Split};
use crate::pg::tree::Tree;

// Kinds of parts.
/// Its modifier follows.
pub(super) const LEAF: u32 = 1;
/// Its length in bytes follows, then its bytes from an even place on. With `NULL`, nothing.
pub(super) const CONSTANT: u32 = 2;
/// Its number follows, then its type.
pub(super) const PARAMETER: u32 = 3;
/// The collation follows. With `COARSE`, its result changes by the minute at most, as a constant among its arguments tells.
pub(super) const CALL: u32 = 4;
/// The end of an expression.
pub(super) const END: u32 = 5;
/// An argument that is left out.
pub(super) const ZERO: u32 = 6;
/// A text is read as a value of the kind that the operand tells.
pub(super) const READING: u32 = 7;
/// If the value is not NULL, the words go on at the place that the operand tells; else the value is dropped.
pub(super) const CHOICE: u32 = 8;
/// A value is written as a text, whatever kind it is of.
pub(super) const WRITING: u32 = 9;
/// Of two values, the greater one stays, or the other NULL is not. The operand is the kind of both.
pub(super) const GREATER: u32 = 10;
/// As `GREATER`, for the smaller one.
pub(super) const SMALLER: u32 = 11;
/// The end of an expression that is compared with a column. The operand has the column, its type, and `BELOW`; the relation follows.
pub(super) const SPLIT: u32 = 12;
/// Several values become a text. The operand has the place of the function in `GATHERING`, and how many values there
/// are; the collation follows.
pub(super) const GATHER: u32 = 13;
/// Where in the operand of `GATHER` the number of values begins.
const GATHERED: u32 = 4;
/// Flag of the operand of `SPLIT`, above the number of the column.
const BELOW: u32 = 1 << 16;
/// As `BELOW`: there are fixed columns. Their numbers follow, two in each word, and their values stand before that of the expression.
pub(super) const HAS_FIXED: u32 = 1 << 17;
/// Where in the operand of `SPLIT` the type of the column begins, as its place in `COLUMN_KINDS`.
const COLUMN_KIND: u32 = 18;
/// Where in it the `Shift` begins. Unless that is none, the interval stands before all other values of the expression.
const SHIFT: u32 = 20;
/// The types that a column may have.
const COLUMN_KINDS: [Kind; 3] = [Kind::Date, Kind::Timestamp, Kind::TimestampTz];
/// How many words their numbers take.
pub(super) const FIXED_WORDS: usize = MOST_FIXED / 2;
/// Flag of a constant.
pub(super) const NULL: u32 = 1 << 31;
/// Flag of a call.
pub(super) const COARSE: u32 = 1 << 30;
/// Flag of the first word: an expression asks for the arrival of the message.
const ASKS_FOR_STATEMENT: u32 = 1 << 31;
/// Flag of the first word: something in an expression may be coarse by its value alone.
const ROUNDS: u32 = 1 << 30;
/// Flag of the first word: an expression is compared with a column.
const SPLITS: u32 = 1 << 29;
/// Part of the first word: the number of expressions.
const EXPRESSIONS: u32 = 0xFF;
/// Where in the first word the number of words begins.
const LENGTH: u32 = 8;
/// Most words. More would make a plan larger than what they stand for is worth.
const MOST_WORDS: usize = 512;

/// The clock expressions of a query. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct ClockProgram {
    words: *const u32,
    count: usize,
}

impl ClockProgram {
    /// The program of a query that does not ask for the time.
    pub const NONE: Self = Self { words: std::ptr::null(), count: 0 };

    /// Are there no clock expressions?
    pub fn is_none(&self) -> bool {
        self.words.is_null()
    }

    /// Makes the program for the clock expressions of a query, in the current memory context. `None` if they are too many, or too large.
    pub fn of(expressions: &ClockExpressions) -> Option<Self> {
        let mut words = Words { words: [0; MOST_WORDS], count: 0 };
        words.push(expressions.total() as u32)?;
        for (node, split) in expressions.all()? {
            // SAFETY: a node of the query that the expressions were found in, which is there as long as it is planned.
            let node = unsafe { Tree::enter(node) }?;
            let shifted = split.filter(|split| split.shift != Shift::None);
            let (expression, by) = match shifted {
                None => (node, None),
                Some(_) => Comparison::shifted_sides(node.as_a::<pg_sys::OpExpr>()?)?,
            };
            if let Some(by) = by {
                words.add(by, 0)?;
            }
            if split.is_some_and(|split| split.fixed[0] != 0) {
                words.add_fixed(expressions.fixed())?;
            }
            words.add(expression, 0)?;
            words.end(split)?;
        }
        if expressions.reads_day() {
            for word in [LEAF | (Leaf::Date as u32) << 8, (-1i32).cast_unsigned(), END] {
                words.push(word)?;
            }
        }
        let Words { mut words, count } = words;
        words[0] |= (count as u32) << LENGTH;
        Some(Self::from_words(words.into_iter().take(count)))
    }

    /// Keeps words that `words` has returned, in the current memory context. What stands behind them is left out.
    pub fn read(words: impl ExactSizeIterator<Item = u32> + Clone) -> Self {
        let length = words.clone().next().map_or(0, |first| (first & !(ASKS_FOR_STATEMENT | ROUNDS | SPLITS)) >> LENGTH)
            as usize;
        Self::from_words(words.take(length))
    }

    fn from_words(words: impl ExactSizeIterator<Item = u32>) -> Self {
        let count = words.len().min(MOST_WORDS);
        // SAFETY: as many words as are allocated. What is allocated is aligned for any value. What it raises unwinds as a panic.
        unsafe {
            let place: *mut u32 = pg_sys::palloc(count.max(1) * size_of::<u32>()).cast();
            for (index, word) in words.take(count).enumerate() {
                place.add(index).write(word);
            }
            Self { words: place, count }
        }
    }

    /// The words to be carried; none if there are no clock expressions.
    ///
    /// # Safety
    /// The memory context in which the program was made must still be there.
    pub unsafe fn words<'p>(self) -> &'p [u32] {
        if self.is_none() {
            return &[];
        }
        // SAFETY: as many words as were written; the caller promises that they are still there.
        unsafe { std::slice::from_raw_parts(self.words, self.count) }
    }

    /// How many expressions there are.
    ///
    /// # Safety
    /// As `words`.
    pub unsafe fn expressions(self) -> usize {
        // SAFETY: the caller promises the same.
        let first = unsafe { self.words() }.first().copied().unwrap_or(0);
        (first & EXPRESSIONS) as usize
    }

    /// Does an expression ask for the arrival of the message?
    ///
    /// # Safety
    /// As `words`.
    pub unsafe fn asks_for_statement(self) -> bool {
        // SAFETY: the caller promises the same.
        unsafe { self.words() }.first().is_some_and(|first| first & ASKS_FOR_STATEMENT != 0)
    }

    /// Is an expression compared with a column, so that a canonical bound may stand for it?
    ///
    /// # Safety
    /// As `words`.
    pub unsafe fn splits(self) -> bool {
        // SAFETY: the caller promises the same.
        unsafe { self.words() }.first().is_some_and(|first| first & SPLITS != 0)
    }

    /// May a value be coarse for which the words do not show it?
    ///
    /// # Safety
    /// As `words`.
    pub unsafe fn rounds(self) -> bool {
        // SAFETY: the caller promises the same.
        unsafe { self.words() }.first().is_some_and(|first| first & ROUNDS != 0)
    }
}

/// Does the constant, which decides on it, tell of a function of this kind that its result changes by the minute at most?
fn is_coarse_by(coarse: Coarse, constant: &pg_sys::Const) -> bool {
    if constant.constisnull {
        // The result is NULL, whatever time it is.
        return true;
    }
    // SAFETY: a constant that is not null, of the type that such functions take in this place.
    unsafe {
        if coarse == Coarse::Stride {
            return coarse::is_stride(&*constant.constvalue.cast_mut_ptr::<pg_sys::Interval>());
        }
        let text = pg_sys::pg_detoast_datum_packed(constant.constvalue.cast_mut_ptr());
        coarse::is_told(coarse, pgrx::varlena_to_byte_slice(text))
    }
}

/// Words of a program that outlive the memory context in which it was made. At most 2 kB.
pub struct KeptProgram {
    /// Two words each, so that they are aligned as those of a program are.
    pairs: Vec<u64>,
    count: usize,
}

impl KeptProgram {
    /// A copy of a program; `None` if there is no memory for it.
    ///
    /// # Safety
    /// As `ClockProgram::words`.
    pub unsafe fn of(program: ClockProgram) -> Option<Self> {
        // SAFETY: the caller promises the same.
        let words = unsafe { program.words() };
        let mut pairs = Vec::new();
        pairs.lengthen(words.len().div_ceil(2), 0).ok()?;
        // SAFETY: as many words as there is room for.
        unsafe { pairs.as_mut_ptr().cast::<u32>().copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        Some(Self { pairs, count: words.len() })
    }

    /// The program, which lives as long as this.
    pub fn as_program(&self) -> ClockProgram {
        ClockProgram { words: self.pairs.as_ptr().cast(), count: self.count }
    }
}

/// Words that are being gathered. No more than a plan may carry.
struct Words {
    words: [u32; MOST_WORDS],
    count: usize,
}

/// What the operand of `SPLIT`, the word behind it, and the numbers of fixed columns say; `None` if the program is none of ours.
pub(super) fn split_of(operand: u32, relation: u32, numbers: &[u32]) -> Option<Split> {
    let column = (operand & (BELOW - 1)) as u16;
    let mut fixed = [0; MOST_FIXED];
    for (place, number) in fixed.iter_mut().zip(numbers.iter().flat_map(|word| [*word as u16, (*word >> 16) as u16])) {
        *place = number.cast_signed();
    }
    let (relation, column) = (pg_sys::Oid::from(relation), column.cast_signed());
    let kind = *COLUMN_KINDS.get((operand >> COLUMN_KIND & 3) as usize)?;
    let shift = Shift::numbered(operand >> SHIFT)?;
    Some(Split { relation, column, kind, below: operand & BELOW != 0, shift, fixed })
}

/// What the operand of `GATHER` says: the function, and how many values it is given. `None` if the program is none of
/// ours.
pub(super) fn gathering(operand: u32) -> Option<(u32, usize)> {
    let function = *GATHERING.get((operand & ((1 << GATHERED) - 1)) as usize)?;
    Some((function, (operand >> GATHERED) as usize))
}

/// Each function returns `None` if that is too much.
impl Words {
    /// Ends an expression.
    fn end(&mut self, split: Option<Split>) -> Option<()> {
        let Some(Split { relation, column, kind, below, shift, fixed }) = split else { return self.push(END) };
        self.words[0] |= SPLITS;
        let has_fixed = fixed[0] != 0;
        let kind = COLUMN_KINDS.iter().position(|listed| *listed == kind)? as u32;
        let is = |flag: u32, set: bool| if set { flag } else { 0 };
        let flags = is(BELOW, below) | is(HAS_FIXED, has_fixed) | kind << COLUMN_KIND | (shift as u32) << SHIFT;
        self.push(SPLIT | (u32::from(column.cast_unsigned()) | flags) << 8)?;
        self.push(relation.to_u32())?;
        for pair in fixed.chunks(2).filter(|_| has_fixed) {
            let [low, high] = pair else { return None };
            self.push(u32::from(low.cast_unsigned()) | u32::from(high.cast_unsigned()) << 16)?;
        }
        Some(())
    }

    /// Adds the values of fixed columns.
    fn add_fixed(&mut self, fixed: &Fixed) -> Option<()> {
        for (_, value) in fixed.columns.iter().zip(fixed.values).filter(|(column, _)| **column != 0) {
            // SAFETY: a node of the query that the expressions were found in, which is there as long as it is planned.
            self.add(unsafe { Tree::enter(value) }?, 0)?;
        }
        Some(())
    }

    fn push(&mut self, word: u32) -> Option<()> {
        *self.words.get_mut(self.count)? = word;
        self.count += 1;
        Some(())
    }

    /// Adds an expression.
    fn add(&mut self, node: Tree<'_, pg_sys::Node>, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match part(node)? {
            Part::Leaf(leaf, modifier) => {
                if leaf == Leaf::Statement {
                    self.words[0] |= ASKS_FOR_STATEMENT;
                }
                self.push(LEAF | (leaf as u32) << 8)?;
                self.push(modifier.cast_unsigned())
            }
            Part::Constant(kind, constant) => self.add_constant(kind, &constant),
            Part::Parameter(kind, parameter) => {
                self.push(PARAMETER | (kind as u32) << 8)?;
                self.push(parameter.paramid.cast_unsigned())?;
                self.push(parameter.paramtype.to_u32())
            }
            Part::Call(place, collation, arguments) => self.add_call(place, collation, arguments, depth),
            Part::First(choices) => self.add_choices(choices, depth),
            Part::Converted(value, kind) => {
                self.add(value, depth + 1)?;
                self.push(WRITING)?;
                if kind == Kind::Text { Some(()) } else { self.push(READING | (kind as u32) << 8) }
            }
            Part::Gathered(place, collation, values) => {
                for value in values.items() {
                    self.add(value?, depth + 1)?;
                }
                let operand = place as u32 | (values.length() as u32) << GATHERED;
                self.push(GATHER | operand << 8)?;
                self.push(collation.to_u32())
            }
            Part::Joined(both, collation) => {
                for one in both.items() {
                    self.add(one?, depth + 1)?;
                    self.push(WRITING)?;
                }
                self.push(CALL | (PLACE_OF_TEXTCAT as u32) << 8)?;
                self.push(collation.to_u32())
            }
            Part::Extreme { greatest, kind, of } => {
                self.words[0] |= ROUNDS;
                let head = if greatest { GREATER } else { SMALLER };
                for (number, one) in of.items().enumerate() {
                    self.add(one?, depth + 1)?;
                    if number > 0 {
                        self.push(head | (kind as u32) << 8)?;
                    }
                }
                Some(())
            }
        }
    }

    fn add_call(&mut self, place: usize, collation: pg_sys::Oid, arguments: Arguments<'_>, depth: usize) -> Option<()> {
        let function = FUNCTIONS.get(place)?;
        let mut flag = 0;
        for (number, argument) in arguments.ordered()?.enumerate() {
            if function.coarse.decided_by() == Some(number)
                && let Some(Part::Constant(_, constant)) = argument.and_then(part)
                && is_coarse_by(function.coarse, &constant)
            {
                flag = COARSE;
            }
            match argument {
                Some(argument) => self.add(argument, depth + 1)?,
                None => self.push(ZERO)?,
            }
        }
        if function.coarse == Coarse::Rounds {
            self.words[0] |= ROUNDS;
        }
        self.push(CALL | (place as u32) << 8 | flag)?;
        self.push(collation.to_u32())
    }

    fn add_choices(&mut self, choices: Tree<'_, pg_sys::List>, depth: usize) -> Option<()> {
        // Each `CHOICE` goes on at the next one, which finds the same value, and the last at the end.
        let mut open = None;
        for (number, choice) in choices.items().enumerate() {
            if number > 0 {
                self.push(CHOICE)?;
                self.end_choice(open.replace(self.count - 1), self.count - 1);
            }
            self.add(choice?, depth + 1)?;
        }
        self.end_choice(open, self.count);
        Some(())
    }

    /// The words go on at `target` behind the `CHOICE` at this place, if it has a value.
    fn end_choice(&mut self, choice: Option<usize>, target: usize) {
        if let Some(word) = choice.and_then(|place| self.words.get_mut(place)) {
            *word = CHOICE | (target as u32) << 8;
        }
    }

    fn add_constant(&mut self, kind: Kind, constant: &pg_sys::Const) -> Option<()> {
        let head = CONSTANT | (kind as u32) << 8;
        if constant.constisnull {
            return self.push(head | NULL);
        }
        let value = constant.constvalue;
        let word = (value.value() as u64).to_ne_bytes();
        // SAFETY: a constant that is not null holds a value of its type: the value itself, or a pointer to as many bytes as that type has.
        let bytes = unsafe {
            match kind.form() {
                (_, true) => word.as_slice(),
                (-1, false) => {
                    let flat = pg_sys::pg_detoast_datum_packed(value.cast_mut_ptr());
                    std::slice::from_raw_parts(flat.cast::<u8>(), pgrx::varsize_any(flat))
                }
                (-2, false) => CStr::from_ptr(value.cast_mut_ptr()).to_bytes_with_nul(),
                (length, false) => std::slice::from_raw_parts(value.cast_mut_ptr::<u8>(), length as usize),
            }
        };
        self.push(head)?;
        self.push(u32::try_from(bytes.len()).ok()?)?;
        if self.count % 2 == 1 {
            self.push(0)?;
        }
        for part in bytes.chunks(4) {
            let mut word = [0; 4];
            word[..part.len()].copy_from_slice(part);
            self.push(u32::from_ne_bytes(word))?;
        }
        Some(())
    }
}
