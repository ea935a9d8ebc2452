//! Clock expressions are computed here, as the executor would compute them for the statement that asks: the same functions with the same
//! arguments, under the same settings, at the same time.
//!
//! The functions are the server's own, and may raise: a date may be out of range, a zone unknown. Such an ERROR is dropped, without a
//! subtransaction, and the statement is bypassed; if it needs the value, it raises the ERROR itself. That is sound because these functions
//! take no lock, pin nothing and change nothing: they compute, and allocate in a context that is emptied afterwards.

use std::cell::Cell;

use arrow_cache_core::{HashBuffer, Reason};
use pgrx::pg_sys::{self, Datum};

use super::coarse;
use super::expression::{Leaf, MOST};
use super::functions::{Coarse, FUNCTIONS, Function, Kind, MOST_ARGUMENTS};
use super::program::{CALL, CHOICE, COARSE, CONSTANT, ClockProgram, END, LEAF, NULL, PARAMETER, READING, ZERO};
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
}

/// A value of a clock expression.
#[derive(Clone, Copy)]
pub struct Value {
    /// The value; of a type that is passed by reference, in the context of the computation.
    pub datum: Datum,
    /// It is NULL.
    pub is_null: bool,
    /// Its type.
    pub kind: Kind,
    /// All in it that asks for the time lies below something coarse.
    settled: bool,
}

const NOTHING: Value = Value { datum: Datum::null(), is_null: true, kind: Kind::Date, settled: false };

/// Most values that wait for their function at one time.
const STACK: usize = 32;

/// The memory of one computation, emptied after it.
static CONTEXT: Local<Cell<pg_sys::MemoryContext>> = Local::new(Cell::new(std::ptr::null_mut()));

/// Adds the values of all clock expressions to a key.
///
/// # Errors
/// `MovingClock` if one of them changes by less than a minute, asks for the arrival of a message that is not the only one, or cannot be
/// computed.
pub fn add_values(key: &mut HashBuffer, clock: &Clock<'_>) -> Result<(), Reason> {
    if clock.program.is_none() {
        return Ok(());
    }
    with_values(clock, |values| {
        for value in values {
            key.u8(value.kind as u8 | u8::from(value.is_null) << 7);
            if !value.is_null {
                let (length, by_value) = value.kind.form();
                // SAFETY: a value that was just computed, of the type that its function returns.
                unsafe { parameters::add_datum(key, value.datum, by_value, length) };
            }
        }
    })
}

/// Computes the values of all clock expressions, and does something with them.
///
/// # Errors
/// As `add_values`.
pub fn with_values<R>(clock: &Clock<'_>, act: impl FnOnce(&[Value]) -> R) -> Result<R, Reason> {
    let context = context();
    // SAFETY: the context is ours, and nothing in it is used after this. The program was made in a context that is still there, since the
    // statement that carries it is being planned or started.
    unsafe {
        if clock.program.asks_for_statement() && !clock.one_message {
            return Err(Reason::MovingClock);
        }
        let caller = pg_sys::MemoryContextSwitchTo(context);
        let mut values = [NOTHING; MOST];
        let place = &raw mut values;
        let clock = *clock;
        let count = caught(|| run(&clock, place)).flatten();
        let result = count.and_then(|count| values.get(..count)).ok_or(Reason::MovingClock).map(act);
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

/// Values that wait for their function. Plain data, because an ERROR may jump over it.
struct Stack {
    values: [Value; STACK],
    height: usize,
}

impl Stack {
    fn push(&mut self, value: Value) -> Option<()> {
        *self.values.get_mut(self.height)? = value;
        self.height += 1;
        Some(())
    }

    /// Takes the last values off.
    fn pop(&mut self, count: usize) -> Option<&[Value]> {
        let height = self.height;
        self.height = height.checked_sub(count)?;
        self.values.get(self.height..height)
    }

    /// Takes the last value off if it is NULL; says whether it was.
    fn drops_null(&mut self) -> Option<bool> {
        let last = self.height.checked_sub(1)?;
        let is_null = self.values.get(last)?.is_null;
        self.height -= usize::from(is_null);
        Some(is_null)
    }

    /// Takes the last value off, which must not move.
    fn settled(&mut self) -> Option<Value> {
        let value = self.pop(1)?[0];
        value.settled.then_some(value)
    }
}

/// Runs the program; `None` if a value moves, or the program is none that `ClockProgram::of` has made. Returns how many values it has
/// written. What the functions raise jumps over this frame.
///
/// # Safety
/// The program must be in memory, `results` valid, and no frame between here and `caught` may have pending destructors.
unsafe fn run(clock: &Clock<'_>, results: *mut [Value; MOST]) -> Option<usize> {
    // SAFETY: the caller promises that the program is there.
    let words = unsafe { clock.program.words() };
    let mut stack = Stack { values: [NOTHING; STACK], height: 0 };
    let (mut next, mut count) = (1, 0);
    while next < words.len() {
        let head = *words.get(next)?;
        let operand = (head & !(NULL | COARSE)) >> 8;
        let second = words.get(next + 1).copied();
        next += 2;
        match head & 0xFF {
            LEAF => {
                // SAFETY: the caller promises that an ERROR may jump.
                let value = unsafe { time(Leaf::numbered(operand)?, second?.cast_signed()) };
                stack.push(value)?;
            }
            CONSTANT => {
                let kind = Kind::numbered(operand)?;
                let (value, after) = constant(words, next, kind, head & NULL != 0)?;
                stack.push(value)?;
                next = after;
            }
            PARAMETER => stack.push(parameter(clock, Kind::numbered(operand)?, second?)?)?,
            CALL => {
                let function = FUNCTIONS.get(operand as usize)?;
                // SAFETY: the arguments are of the types that the function takes, since the parser has chosen it for them.
                let value = unsafe { call(function, second?, stack.pop(function.arguments)?, head & COARSE != 0) }?;
                stack.push(value)?;
            }
            ZERO => {
                next -= 1;
                // Whether it is an integer or a floating-point number, its bits are the same.
                stack.push(Value { datum: Datum::from(0), is_null: false, kind: Kind::Int4, settled: true })?;
            }
            READING => {
                next -= 1;
                // SAFETY: the expression below is a text; the caller promises the rest.
                let value = unsafe { interval(stack.pop(1)?[0]) };
                stack.push(value)?;
            }
            CHOICE => {
                next -= 1;
                if stack.drops_null()? {
                    continue;
                }
                next = (operand as usize).max(next);
            }
            END => {
                next -= 1;
                // SAFETY: the caller promises that the results are valid.
                *unsafe { &mut *results }.get_mut(count)? = stack.settled()?;
                count += 1;
            }
            _ => return None,
        }
    }
    Some(count)
}

/// What a leaf says.
///
/// # Safety
/// As `run`.
unsafe fn time(leaf: Leaf, modifier: i32) -> Value {
    // SAFETY: functions of the server that return the time of the present transaction or message; two of them allocate.
    let datum = unsafe {
        match leaf {
            Leaf::Transaction => Datum::from(server::GetCurrentTransactionStartTimestamp()),
            Leaf::Statement => Datum::from(server::GetCurrentStatementStartTimestamp()),
            Leaf::Date => Datum::from(direct!(server::GetSQLCurrentDate())),
            Leaf::Time => Datum::from(direct!(server::GetSQLCurrentTime(modifier))),
            Leaf::Timestamp => Datum::from(direct!(server::GetSQLCurrentTimestamp(modifier))),
            Leaf::LocalTime => Datum::from(direct!(server::GetSQLLocalTime(modifier))),
            Leaf::LocalTimestamp => Datum::from(direct!(server::GetSQLLocalTimestamp(modifier))),
        }
    };
    Value { datum, is_null: false, kind: leaf.kind(), settled: leaf == Leaf::Date }
}

/// A constant whose length, if it has one, stands before `next`; and where the words go on.
fn constant(words: &[u32], next: usize, kind: Kind, is_null: bool) -> Option<(Value, usize)> {
    let value = Value { datum: Datum::null(), is_null, kind, settled: true };
    if is_null {
        return Some((value, next - 1));
    }
    let length = *words.get(next - 1)? as usize;
    let start = next.next_multiple_of(2);
    let after = start + length.div_ceil(4);
    let bytes = words.get(start..after)?.as_ptr();
    let datum = match kind.form() {
        // SAFETY: a value that is passed as such takes the eight bytes of a Datum; all words of it are there.
        (_, true) if length == 8 => Datum::from(unsafe { bytes.cast::<u64>().read_unaligned() }),
        (_, true) => return None,
        // Values stand at even places of words that are aligned for any value.
        (_, false) => Datum::from(bytes.cast_mut()),
    };
    Some((Value { datum, ..value }, after))
}

/// The value of a parameter.
fn parameter(clock: &Clock<'_>, kind: Kind, number: u32) -> Option<Value> {
    let none = Value { datum: Datum::null(), is_null: true, kind, settled: true };
    let Some(params) = clock.params else { return Some(none) };
    if params.paramFetch.is_some() || number == 0 || number > params.numParams.cast_unsigned() {
        return None;
    }
    let place = number as usize - 1;
    // SAFETY: the list ends with as many values as it says.
    let given: &pg_sys::ParamExternData =
        unsafe { &*(&raw const (*params.as_ptr()).params).cast::<pg_sys::ParamExternData>().add(place) };
    if given.ptype != kind.type_oid() {
        return None;
    }
    Some(Value { datum: given.value, is_null: given.isnull, ..none })
}

/// Calls a function as the executor does. `coarse`: a constant has told that its result is.
///
/// # Safety
/// The arguments must be of the types that the function takes; as `run`.
unsafe fn call(function: &Function, collation: u32, arguments: &[Value], coarse: bool) -> Option<Value> {
    let known = coarse || arguments.iter().all(|argument| argument.settled);
    // SAFETY: the caller promises that arguments are of the function's types.
    let settled = known || unsafe { is_coarse(function.coarse, arguments) };
    let mut value = Value { datum: Datum::null(), is_null: true, kind: function.result, settled };
    // All of these functions are strict.
    if arguments.iter().any(|argument| argument.is_null) {
        return Some(value);
    }
    // SAFETY: a call of one of the server's functions, with as many arguments as it takes; the caller promises the rest.
    unsafe {
        let mut info: pg_sys::FmgrInfo = std::mem::zeroed();
        direct!(server::fmgr_info(pg_sys::Oid::from(function.oid), &raw mut info));
        let mut frame: Frame = std::mem::zeroed();
        frame.call.flinfo = &raw mut info;
        frame.call.fncollation = pg_sys::Oid::from(collation);
        frame.call.nargs = arguments.len() as i16;
        let slots = (&raw mut frame.call.args).cast::<pg_sys::NullableDatum>();
        for (place, argument) in arguments.iter().enumerate() {
            slots.add(place).write(pg_sys::NullableDatum { value: argument.datum, isnull: false });
        }
        let code = info.fn_addr?;
        value.datum = direct!(code(&raw mut frame.call));
        value.is_null = frame.call.isnull;
    }
    Some(value)
}

/// A text, read as an interval.
///
/// # Safety
/// The value must be a text, or NULL; as `run`.
unsafe fn interval(text: Value) -> Value {
    /// interval_in(cstring, oid, int)
    const INTERVAL_IN: u32 = 1160;
    if text.is_null {
        return Value { kind: Kind::Interval, ..text };
    }
    // SAFETY: a text that is not NULL; the function takes any.
    let datum = unsafe {
        let words = direct!(server::text_to_cstring(text.datum.cast_mut_ptr()));
        direct!(server::OidInputFunctionCall(pg_sys::Oid::from(INTERVAL_IN), words, pg_sys::INTERVALOID, -1))
    };
    Value { datum, kind: Kind::Interval, ..text }
}

/// A call with room for its arguments.
#[repr(C)]
struct Frame {
    call: pg_sys::FunctionCallInfoBaseData,
    arguments: [pg_sys::NullableDatum; MOST_ARGUMENTS],
}

/// Does the result of a function change by the minute at most, with these arguments?
///
/// # Safety
/// As `call`.
unsafe fn is_coarse(coarse: Coarse, arguments: &[Value]) -> bool {
    let Some(place) = coarse.decided_by() else { return coarse == Coarse::Always };
    let Some(argument) = arguments.get(place).filter(|argument| argument.settled) else { return false };
    if argument.is_null {
        // So is the result, whatever time it is.
        return true;
    }
    // SAFETY: an argument that is not NULL, of the type that such functions take in this place.
    unsafe {
        if coarse == Coarse::Stride {
            return coarse::is_stride(&*argument.datum.cast_mut_ptr::<pg_sys::Interval>());
        }
        let text = direct!(server::pg_detoast_datum_packed(argument.datum.cast_mut_ptr()));
        coarse::is_told(coarse, pgrx::varlena_to_byte_slice(text))
    }
}
