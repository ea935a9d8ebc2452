//! Clock expressions are computed here, as the executor would compute them for the statement that asks: the same functions with the same
//! arguments, under the same settings, at the same time.
//!
//! The functions are the server's own, and may raise: a date may be out of range, a zone unknown. Such an ERROR is dropped, without a
//! subtransaction, and the statement is bypassed; if it needs the value, it raises the ERROR itself. That is sound because these functions
//! take no lock, pin nothing and change nothing: they compute, and allocate in a context that is emptied afterwards.

use std::cell::Cell;
use std::mem::MaybeUninit;

use arrow_cache_core::{Hash128, HashBuffer, Reason};
use pgrx::pg_sys::{self, Datum};

use super::expression::{ClockExpressions, Leaf, MOST, closed};
use super::functions::FUNCTIONS;
use super::kinds::Kind;
use super::program::{
    CALL, CHOICE, COARSE, CONSTANT, ClockProgram, END, FIXED_WORDS, GATHER, GREATER, HAS_FIXED, LEAF, NULL, PARAMETER,
    READING, SMALLER, SPLIT, WRITING, ZERO, gathering, split_of,
};
use super::shifted::Shift;
use super::sight::Sight;
use super::split::{MOST_FIXED, Split};
use super::values::{Moment, NOTHING, Value, call, constant, extreme, gather, parameter, read, time, written};
use crate::pg::backend_local::Local;
use crate::pg::error_passing::{caught, direct};
use crate::pg::server;
use crate::pg::tree::Tree;
use crate::query::parameters;

/// What the clock expressions of a statement are computed with.
#[derive(Clone, Copy)]
pub struct Clock<'q> {
    /// The expressions.
    pub program: ClockProgram,
    /// The values of the statement's parameters. Without any, a parameter counts as NULL: such a statement is only asked about.
    pub params: Option<Tree<'q, pg_sys::ParamListInfoData>>,
    /// The statement is started, and all its rows are read, within one message of the client.
    pub one_message: bool,
    /// What canonical bounds are found with. Without it, no value may move.
    pub sight: Option<Sight<'q>>,
}

impl Clock<'_> {
    /// Is an expression compared with a column, so that a canonical bound may stand for it?
    pub fn splits(&self) -> bool {
        // SAFETY: as in `with_computed`: the program was made in a context that is still there, since the statement that carries it is being planned or started.
        unsafe { self.program.splits() }
    }
}

/// What a clock expression came to.
#[derive(Clone, Copy)]
pub struct Computed {
    /// Its value.
    pub value: Value,
    /// What its value splits, if it moves all the time: the canonical bound is to stand in its place.
    pub split: Option<Split>,
    /// The interval that the column is away from it, if the split has one.
    pub by: Value,
    /// The values of the fixed columns of that.
    pub fixed: [Value; MOST_FIXED],
}

impl Computed {
    /// The canonical bound for the value, which is not NULL and splits this.
    ///
    /// # Errors
    /// As `Split::canonical_bound`.
    pub fn canonical_bound(&self, split: &Split, sight: &Sight<'_>) -> Result<Option<Datum>, Reason> {
        let fixed = self.fixed.map(|value| (value.kind, (!value.is_null).then_some(value.datum)));
        let by = (split.shift != Shift::None && self.by.kind == Kind::Interval && !self.by.is_null)
            // SAFETY: a value of that type that is not NULL, which lives as long as the values do.
            .then(|| unsafe { &*self.by.datum.cast_mut_ptr::<pg_sys::Interval>() });
        split.canonical_bound((self.value.kind, self.value.datum), by, fixed, sight)
    }
}

/// What the clock adds to a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ClockHash {
    /// A hash of all values and canonical bounds.
    pub hash: Hash128,
    /// There are canonical bounds among them.
    pub has_bounds: bool,
}

/// Most values that wait for their function at one time.
const STACK: usize = 32;

/// The memory of one computation, emptied after it.
static CONTEXT: Local<Cell<pg_sys::MemoryContext>> = Local::new(Cell::new(std::ptr::null_mut()));

/// Flag of the word before a value: a canonical bound stands in its place.
const IS_BOUND: u8 = 1 << 6;
/// Flag of the word before a value: there is no value.
const IS_NULL: u8 = 1 << 7;

static BUFFER: Local<Cell<HashBuffer>> = Local::new(Cell::new(HashBuffer::new()));

/// The values of all clock expressions as one hash, under a secret.
///
/// # Errors
/// `MovingClock` if one of them changes by less than a minute and no canonical bound can stand for it, if it asks for the arrival of a message
/// that is not the only one, or if it cannot be computed.
pub fn hash_values(clock: &Clock<'_>, seed: u64) -> Result<ClockHash, Reason> {
    if clock.program.is_none() {
        return Ok(ClockHash { hash: Hash128::NONE, has_bounds: false });
    }
    let mut key = BUFFER.take();
    key.clear();
    key.u64(seed);
    let has_bounds = with_values(clock, |values| {
        let mut has_bounds = false;
        for computed in values {
            has_bounds |= add(&mut key, computed, clock.sight.as_ref())?;
        }
        Ok::<bool, Reason>(has_bounds)
    })??;
    let hash = key.is_complete().then(|| key.finish()).ok_or(Reason::OutOfMemory)?;
    BUFFER.set(key);
    Ok(ClockHash { hash, has_bounds })
}

/// Adds a value, or its canonical bound; tells whether it was the latter.
///
/// # Errors
/// `MovingClock` if there is no telling the canonical bound.
fn add(key: &mut HashBuffer, computed: &Computed, sight: Option<&Sight<'_>>) -> Result<bool, Reason> {
    let Computed { value, split, .. } = computed;
    let head = value.kind as u8;
    if value.is_null {
        // Comparing anything with it gives NULL.
        key.u8(head | IS_NULL);
        return Ok(false);
    }
    let (datum, has_bound) = match split {
        None => (Some(value.datum), false),
        Some(split) => (computed.canonical_bound(split, sight.ok_or(Reason::MovingClock)?)?, true),
    };
    key.u8(head | if has_bound { IS_BOUND } else { 0 } | if datum.is_none() { IS_NULL } else { 0 });
    if let Some(datum) = datum {
        let (length, by_value) = split.map_or(value.kind, |split| split.kind).form();
        // SAFETY: a value that was just computed, of the type that its function returns; or one of a column of its type, which is passed by
        // value.
        unsafe { parameters::add_datum(key, datum, by_value, length) };
    }
    Ok(has_bound)
}

/// The value that an expression which asks for the time has now, as a constant in the current memory context. `None` if it is no clock expression, asks for the
/// arrival of a message, has parameters, is NULL, cannot be computed, or is of a type that is passed by reference.
pub fn constant_now(expression: Tree<'_, pg_sys::Node>) -> Option<*mut pg_sys::Const> {
    if !closed(expression)?.asks {
        return None;
    }
    let mut expressions = ClockExpressions::NONE;
    expressions.leave(expression, 0);
    let program = ClockProgram::of(&expressions)?;
    let clock = Clock { program, params: None, one_message: false, sight: None };
    let value = with_computed(&clock, false, |values| values.first().copied()).ok()??.value;
    let (length, by_value) = value.kind.form();
    if value.is_null || !by_value {
        return None;
    }
    let none = pg_sys::InvalidOid;
    // SAFETY: a new node, for a value of this type.
    Some(unsafe { pg_sys::makeConst(value.kind.type_oid(), -1, none, length.into(), value.datum, false, true) })
}

/// Computes the values of all clock expressions, and does something with them.
///
/// # Errors
/// As `hash_values`.
pub fn with_values<R>(clock: &Clock<'_>, act: impl FnOnce(&[Computed]) -> R) -> Result<R, Reason> {
    with_computed(clock, true, act)
}

/// As `with_values`; `must_settle` says that no value may change by less than a minute, unless it splits something.
fn with_computed<R>(clock: &Clock<'_>, must_settle: bool, act: impl FnOnce(&[Computed]) -> R) -> Result<R, Reason> {
    let context = context();
    // SAFETY: the context is ours, and nothing in it is used after this. The program was made in a context that is still there, since the
    // statement that carries it is being planned or started.
    unsafe {
        if clock.program.asks_for_statement() && !clock.one_message {
            return Err(Reason::MovingClock);
        }
        let caller = pg_sys::MemoryContextSwitchTo(context);
        let mut values = UNWRITTEN;
        let place = &raw mut values;
        let clock = *clock;
        let compute = || if must_settle { settled(&clock, place) } else { run(&clock, Moment::Now, place) };
        let count = caught(compute).flatten();
        let result = count.map(|count| written_ones(&mut values, count) as &[_]).ok_or(Reason::MovingClock).map(act);
        pg_sys::MemoryContextSwitchTo(caller);
        // That cannot raise: the context has no callbacks.
        direct!(server::MemoryContextReset(context));
        result
    }
}

fn context() -> pg_sys::MemoryContext {
    if CONTEXT.get().is_null() {
        // SAFETY: the parent lives as long as the backend; a literal name.
        CONTEXT.set(unsafe {
            pg_sys::AllocSetContextCreateInternal(
                pg_sys::TopMemoryContext,
                c"pg_arrow_cache clock".as_ptr(),
                pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
                pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            )
        });
    }
    CONTEXT.get()
}

/// Room for results, of which only as many are written as there are expressions: writing all of them would take longer than computing one.
type Results = [MaybeUninit<Computed>; MOST];

const UNWRITTEN: Results = [const { MaybeUninit::uninit() }; MOST];

/// The first results.
///
/// # Safety
/// So many were written.
unsafe fn written_ones(results: &mut Results, count: usize) -> &mut [Computed] {
    // SAFETY: the caller promises that these were written; there are no more than there is room for.
    unsafe { std::slice::from_raw_parts_mut(results.as_mut_ptr().cast(), count.min(MOST)) }
}

/// Values that wait for their function: those below the height are written. Plain data, because an ERROR may jump over it.
struct Stack {
    values: [MaybeUninit<Value>; STACK],
    height: usize,
}

impl Stack {
    fn push(&mut self, value: Value) -> Option<()> {
        self.values.get_mut(self.height)?.write(value);
        self.height += 1;
        Some(())
    }

    /// Takes the last values off.
    fn pop(&mut self, count: usize) -> Option<&[Value]> {
        let height = self.height;
        self.height = height.checked_sub(count)?;
        let popped = self.values.get(self.height..height)?;
        // SAFETY: what lies below the height was written by `push`.
        Some(unsafe { std::slice::from_raw_parts(popped.as_ptr().cast(), popped.len()) })
    }

    /// Takes the last value off if it is NULL; says whether it was.
    fn drops_null(&mut self) -> Option<bool> {
        let is_null = self.pop(1)?[0].is_null;
        self.height += usize::from(!is_null);
        Some(is_null)
    }

    /// Puts another value in the place of the last one.
    fn replace(&mut self, with: impl FnOnce(Value) -> Option<Value>) -> Option<()> {
        let value = self.pop(1)?[0];
        self.push(with(value)?)
    }
}

/// Computes the values; `None` if one of them moves that splits nothing. If the program does not show whether one does, it is computed for the
/// start and the end of the present minute, too. What the functions raise jumps over this frame.
///
/// # Safety
/// As `run`.
unsafe fn settled(clock: &Clock<'_>, results: *mut Results) -> Option<usize> {
    // SAFETY: the caller promises the same; the results are read after they were written.
    unsafe {
        let count = run(clock, Moment::Now, results)?;
        let values = written_ones(&mut *results, count);
        let rounds = clock.program.rounds() && values.iter().any(|one| !one.value.settled);
        if rounds && let Some(stays) = stay(clock, values) {
            for (one, stays) in values.iter_mut().zip(stays) {
                one.value.settled |= stays;
            }
        }
        for one in values {
            if one.value.settled {
                one.split = None;
            } else if one.split.is_none() {
                return None;
            }
        }
        Some(count)
    }
}

/// Which values are the same at the start and at the end of the present minute? `None` if there is no telling.
///
/// # Safety
/// As `run`.
unsafe fn stay(clock: &Clock<'_>, values: &[Computed]) -> Option<[bool; MOST]> {
    let mut stay = [true; MOST];
    for moment in [Moment::MinuteStart, Moment::MinuteEnd] {
        let mut others = UNWRITTEN;
        // SAFETY: the caller promises the same; all values are those of the same program.
        unsafe {
            let count = run(clock, moment, &raw mut others)?;
            let others = written_ones(&mut others, count);
            for (stays, (one, other)) in stay.iter_mut().zip(values.iter().zip(others)) {
                *stays &= one.value.equals(&other.value);
            }
        }
    }
    Some(stay)
}

/// Runs the program for a moment; `None` if it is none that `ClockProgram::of` has made. Returns how many values it has
/// written. What the functions raise jumps over this frame.
///
/// # Safety
/// The program must be in memory, `results` valid, and no frame between here and `caught` may have pending destructors.
unsafe fn run(clock: &Clock<'_>, moment: Moment, results: *mut Results) -> Option<usize> {
    // SAFETY: the caller promises that the program is there.
    let words = unsafe { clock.program.words() };
    let mut stack = Stack { values: [const { MaybeUninit::uninit() }; STACK], height: 0 };
    let (mut next, mut count) = (1, 0);
    while next < words.len() {
        let head = *words.get(next)?;
        let operand = (head & !(NULL | COARSE)) >> 8;
        let second = words.get(next + 1).copied();
        next += 2;
        match head & 0xFF {
            LEAF => {
                // SAFETY: the caller promises that an ERROR may jump.
                let value = unsafe { time(Leaf::numbered(operand)?, second?.cast_signed(), moment) };
                stack.push(value?)?;
            }
            CONSTANT | PARAMETER => {
                let (value, after) = given(clock, words, next, head)?;
                stack.push(value)?;
                next = after;
            }
            CALL | GATHER => {
                // SAFETY: the caller promises that an ERROR may jump.
                let value = unsafe { called(&mut stack, head, operand, second?) }?;
                stack.push(value)?;
            }
            ZERO => {
                next -= 1;
                // Whether it is an integer or a floating-point number, its bits are the same.
                stack.push(Value { datum: Datum::from(0), is_null: false, kind: Kind::Int4, settled: true })?;
            }
            READING | WRITING | GREATER | SMALLER => {
                next -= 1;
                // SAFETY: the caller promises that an ERROR may jump.
                unsafe { change(&mut stack, head & 0xFF, operand) }?;
            }
            CHOICE => {
                next -= 1;
                if stack.drops_null()? {
                    continue;
                }
                next = (operand as usize).max(next);
            }
            END | SPLIT => {
                let (split, after) = split_at(words, next, head & 0xFF == SPLIT, operand)?;
                next = after;
                let value = stack.pop(1)?[0];
                let (fixed, by) = values_beside(&mut stack, split.as_ref())?;
                // SAFETY: the caller promises that the results are valid.
                unsafe { &mut *results }.get_mut(count)?.write(Computed { value, split, by, fixed });
                count += 1;
            }
            _ => return None,
        }
    }
    Some(count)
}

/// The value of a constant or a parameter whose first word stands two words before `next`, and where the words go on.
fn given(clock: &Clock<'_>, words: &[u32], next: usize, head: u32) -> Option<(Value, usize)> {
    let kind = Kind::numbered((head & !NULL) >> 8)?;
    if head & 0xFF == CONSTANT {
        return constant(words, next, kind, head & NULL != 0);
    }
    Some((parameter(clock.params, kind, *words.get(next - 1)?, *words.get(next)?)?, next + 1))
}

/// What a function makes of the last values, which it takes off.
///
/// # Safety
/// The program must be one that `ClockProgram::of` has made; as `run`.
unsafe fn called(stack: &mut Stack, head: u32, operand: u32, collation: u32) -> Option<Value> {
    if head & 0xFF == GATHER {
        let (function, count) = gathering(operand)?;
        // SAFETY: the function takes any values; the caller promises the rest.
        return unsafe { gather(function, collation, stack.pop(count)?) };
    }
    let function = FUNCTIONS.get(operand as usize)?;
    // SAFETY: the arguments are of the types that the function takes, since the parser has chosen it for them.
    unsafe { call(function, collation, stack.pop(function.arguments)?, head & COARSE != 0) }
}

/// What an expression splits that ends two words before `next`, and where the words go on.
fn split_at(words: &[u32], next: usize, is_split: bool, operand: u32) -> Option<(Option<Split>, usize)> {
    if !is_split {
        return Some((None, next - 1));
    }
    let after = next + if operand & HAS_FIXED != 0 { FIXED_WORDS } else { 0 };
    Some((Some(split_of(operand, *words.get(next - 1)?, words.get(next..after)?)?), after))
}

/// Takes the values of the fixed columns of a split off, and the interval before them.
fn values_beside(stack: &mut Stack, split: Option<&Split>) -> Option<([Value; MOST_FIXED], Value)> {
    let count = split.map_or(0, |split| split.fixed.iter().filter(|column| **column != 0).count());
    let mut values = [NOTHING; MOST_FIXED];
    values.get_mut(..count)?.copy_from_slice(stack.pop(count)?);
    let is_shifted = split.is_some_and(|split| split.shift != Shift::None);
    Some((values, if is_shifted { stack.pop(1)?[0] } else { NOTHING }))
}

/// Runs a word that is followed by no other: it reads or writes a text, or chooses one of two values.
///
/// # Safety
/// The program must be one that `ClockProgram::of` has made; as `run`.
unsafe fn change(stack: &mut Stack, what: u32, operand: u32) -> Option<()> {
    let kind = Kind::numbered(operand)?;
    // SAFETY: what is read is a text, and the parser has given both values of a choice the same type; the caller promises the rest.
    unsafe {
        match what {
            READING => stack.replace(|text| read(text, kind)),
            WRITING => stack.replace(|value| Some(written(value))),
            _ => {
                let [one, other] = *stack.pop(2)? else { return None };
                stack.push(extreme(one, other, kind, what == GREATER)?)
            }
        }
    }
}
