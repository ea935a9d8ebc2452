//! Values of clock expressions, one by one: what a leaf says, constants, parameters, what functions make of them. All of it is what the executor
//! would compute; what the server's functions raise jumps over every frame here. Keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Datum};

use super::coarse;
use super::expression::Leaf;
use super::functions::{self, Coarse, FUNCTIONS, Function, MOST_ARGUMENTS};
use super::kinds::Kind;
use crate::pg::error_passing::direct;
use crate::pg::server;
use crate::pg::tree::Tree;

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
    pub(super) settled: bool,
}

pub(super) const NOTHING: Value = Value { datum: Datum::null(), is_null: true, kind: Kind::Date, settled: false };

impl Value {
    /// Is it the same value, byte for byte?
    ///
    /// # Safety
    /// Both must still be there.
    pub(super) unsafe fn equals(&self, other: &Self) -> bool {
        let (length, by_value) = self.kind.form();
        self.kind == other.kind
            && self.is_null == other.is_null
            && (self.is_null
                // SAFETY: two values of a type of this length and passing, which are not NULL.
                || unsafe { direct!(server::datumIsEqual(self.datum, other.datum, by_value, length.into())) })
    }
}

/// Which moment a leaf tells: the present, or the first or last microsecond of the minute around it. The latter are asked about only to find
/// out whether a value moves; none of them gets into a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// The present.
    Now,
    /// The start of the minute.
    MinuteStart,
    /// The end of the minute.
    MinuteEnd,
}

impl Moment {
    fn around(self, time: pg_sys::TimestampTz) -> pg_sys::TimestampTz {
        /// In microseconds.
        const MINUTE: i64 = 60_000_000;
        let start = time - time.rem_euclid(MINUTE);
        match self {
            Self::Now => time,
            Self::MinuteStart => start,
            Self::MinuteEnd => start + MINUTE - 1,
        }
    }
}

/// What a leaf says; `None` for another moment than the present if it rounds.
///
/// # Safety
/// The functions that are called allocate, and what they raise jumps over this frame.
pub(super) unsafe fn time(leaf: Leaf, modifier: i32, moment: Moment) -> Option<Value> {
    let value = Value { datum: Datum::null(), is_null: false, kind: leaf.kind(), settled: leaf == Leaf::Date };
    let start = moment.around(server::GetCurrentTransactionStartTimestamp());
    let other = moment != Moment::Now;
    // SAFETY: functions of the server that return the time of the present transaction or message, or take a part of a time; some allocate.
    let datum = unsafe {
        match leaf {
            Leaf::Transaction => Datum::from(start),
            Leaf::Statement => Datum::from(moment.around(server::GetCurrentStatementStartTimestamp())),
            // It settles by itself.
            Leaf::Date => Datum::from(direct!(server::GetSQLCurrentDate())),
            _ if other && modifier >= 0 => return None,
            Leaf::Timestamp if other => Datum::from(start),
            Leaf::Time | Leaf::LocalTime | Leaf::LocalTimestamp if other => {
                let part = FUNCTIONS.get(functions::place_of(pg_sys::Oid::from(part_of_time(leaf)))?)?;
                let whole = Value { datum: Datum::from(start), kind: Kind::TimestampTz, ..value };
                call(part, 0, &[whole], false)?.datum
            }
            Leaf::Time => Datum::from(direct!(server::GetSQLCurrentTime(modifier))),
            Leaf::Timestamp => Datum::from(direct!(server::GetSQLCurrentTimestamp(modifier))),
            Leaf::LocalTime => Datum::from(direct!(server::GetSQLLocalTime(modifier))),
            Leaf::LocalTimestamp => Datum::from(direct!(server::GetSQLLocalTimestamp(modifier))),
        }
    };
    Some(Value { datum, ..value })
}

/// The function that takes what a leaf tells out of a timestamp with time zone: timetz, time, timestamp.
fn part_of_time(leaf: Leaf) -> u32 {
    match leaf {
        Leaf::Time => 1388,
        Leaf::LocalTime => 2019,
        _ => 2027,
    }
}

/// A constant whose length, if it has one, stands before `next`; and where the words go on.
pub(super) fn constant(words: &[u32], next: usize, kind: Kind, is_null: bool) -> Option<(Value, usize)> {
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

/// The value of a parameter of a type whose values are of this kind.
pub(super) fn parameter(
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
    kind: Kind,
    number: u32,
    type_oid: u32,
) -> Option<Value> {
    let none = Value { datum: Datum::null(), is_null: true, kind, settled: true };
    let Some(params) = params else { return Some(none) };
    if params.paramFetch.is_some() || number == 0 || number > params.numParams.cast_unsigned() {
        return None;
    }
    let place = number as usize - 1;
    // SAFETY: the list ends with as many values as it says.
    let given: &pg_sys::ParamExternData =
        unsafe { &*(&raw const (*params.as_ptr()).params).cast::<pg_sys::ParamExternData>().add(place) };
    if given.ptype.to_u32() != type_oid {
        return None;
    }
    Some(Value { datum: given.value, is_null: given.isnull, ..none })
}

/// Calls a function as the executor does. `coarse`: a constant has told that its result is.
///
/// # Safety
/// The arguments must be of the types that the function takes; what it raises jumps over this frame.
pub(super) unsafe fn call(function: &Function, collation: u32, arguments: &[Value], coarse: bool) -> Option<Value> {
    let known = coarse || arguments.iter().all(|argument| argument.settled);
    // SAFETY: the caller promises that arguments are of the function's types.
    let settled = known || unsafe { is_coarse(function.coarse, arguments) };
    let value = Value { datum: Datum::null(), is_null: true, kind: function.result, settled };
    // All of these functions are strict.
    if arguments.iter().any(|argument| argument.is_null) {
        return Some(value);
    }
    // SAFETY: the caller promises that arguments are of the function's types; there are as many as it takes.
    let (datum, is_null) = unsafe { invoke(function.oid, collation, arguments, std::ptr::null_mut()) }?;
    Some(Value { datum, is_null, ..value })
}

/// A text, read as a value of a kind.
///
/// # Safety
/// The value must be a text, or NULL; what is called may raise and jump over this frame.
pub(super) unsafe fn read(text: Value, kind: Kind) -> Option<Value> {
    if text.is_null {
        return Some(Value { kind, ..text });
    }
    let reader = pg_sys::Oid::from(kind.handled().reads);
    // SAFETY: a text that is not NULL, of which a copy is made that ends with NUL; the function takes any.
    unsafe {
        let words = direct!(server::text_to_cstring(text.datum.cast_mut_ptr()));
        let settled = text.settled && !names_present(CStr::from_ptr(words).to_bytes());
        let datum = direct!(server::OidInputFunctionCall(reader, words, kind.type_oid(), -1));
        Some(Value { datum, kind, settled, ..text })
    }
}

/// Is the word `now` in a text? Then what is read moves all the time, which decides about nothing but whether it is worth storing.
fn names_present(text: &[u8]) -> bool {
    text.windows(3).any(|word| word.eq_ignore_ascii_case(b"now"))
}

/// A value, written as a text. A text is one already.
///
/// # Safety
/// What is called may raise and jump over this frame.
pub(super) unsafe fn written(value: Value) -> Value {
    if value.is_null || value.kind == Kind::Text {
        return Value { kind: Kind::Text, ..value };
    }
    // SAFETY: a value of the kind whose output function this is.
    let datum = unsafe {
        let words = direct!(server::OidOutputFunctionCall(pg_sys::Oid::from(value.kind.handled().writes), value.datum));
        Datum::from(direct!(server::cstring_to_text(words)))
    };
    Value { datum, kind: Kind::Text, ..value }
}

/// Calls a function that makes a text of any values, by their types: these it learns from the call that it stands in.
///
/// # Safety
/// What is called may raise and jump over this frame.
pub(super) unsafe fn gather(function: u32, collation: u32, values: &[Value]) -> Option<Value> {
    if values.len() > MOST_ARGUMENTS {
        return None;
    }
    let settled = values.iter().all(|value| value.settled);
    // SAFETY: nodes of these types are plain data that may be zero. The list and its cells live as long as the call,
    // which reads the types of the constants alone. The function takes any values, NULL too, of the types that it is
    // told.
    unsafe {
        let mut types: [pg_sys::Const; MOST_ARGUMENTS] = std::mem::zeroed();
        let mut cells: [pg_sys::ListCell; MOST_ARGUMENTS] = std::mem::zeroed();
        for ((one, cell), value) in types.iter_mut().zip(&mut cells).zip(values) {
            one.xpr.type_ = pg_sys::NodeTag::T_Const;
            one.consttype = value.kind.type_oid();
            cell.ptr_value = std::ptr::from_mut(one).cast();
        }
        let mut list: pg_sys::List = std::mem::zeroed();
        (list.type_, list.length, list.elements) = (pg_sys::NodeTag::T_List, values.len() as i32, cells.as_mut_ptr());
        let mut expression: pg_sys::FuncExpr = std::mem::zeroed();
        (expression.xpr.type_, expression.args) = (pg_sys::NodeTag::T_FuncExpr, &raw mut list);
        let (datum, is_null) = invoke(function, collation, values, (&raw mut expression).cast())?;
        Some(Value { datum, is_null, kind: Kind::Text, settled })
    }
}

/// Calls a function with these values, as part of an expression that may be null.
///
/// # Safety
/// The function must be one of the server's, and take these values, of which there are at most `MOST_ARGUMENTS`; what
/// it raises jumps over this frame.
unsafe fn invoke(
    function: u32,
    collation: u32,
    values: &[Value],
    expression: *mut pg_sys::Node,
) -> Option<(Datum, bool)> {
    // SAFETY: a call of one of the server's functions, with no more arguments than there is room for; the caller
    // promises the rest.
    unsafe {
        let mut info: pg_sys::FmgrInfo = std::mem::zeroed();
        direct!(server::fmgr_info(pg_sys::Oid::from(function), &raw mut info));
        info.fn_expr = expression;
        let mut frame: Frame = std::mem::zeroed();
        frame.call.flinfo = &raw mut info;
        frame.call.fncollation = pg_sys::Oid::from(collation);
        frame.call.nargs = values.len() as i16;
        let slots = (&raw mut frame.call.args).cast::<pg_sys::NullableDatum>();
        for (place, value) in values.iter().enumerate() {
            slots.add(place).write(pg_sys::NullableDatum { value: value.datum, isnull: value.is_null });
        }
        let code = info.fn_addr?;
        let datum = direct!(code(&raw mut frame.call));
        Some((datum, frame.call.isnull))
    }
}

/// The greater or smaller one of two values, as the executor chooses: NULL counts if both are, and of equal values the first one stays.
///
/// # Safety
/// Both values must be of the kind; what is called may raise and jump over this frame.
pub(super) unsafe fn extreme(one: Value, other: Value, kind: Kind, greater: bool) -> Option<Value> {
    let settled = one.settled && other.settled;
    if one.is_null || other.is_null {
        return Some(Value { settled, kind, ..if one.is_null { other } else { one } });
    }
    let comparison = pg_sys::Oid::from(kind.handled().compares?);
    // SAFETY: two values of the type that the function compares.
    let order =
        unsafe { direct!(server::OidFunctionCall2Coll(comparison, pg_sys::InvalidOid, one.datum, other.datum)) };
    let order = order.value() as u32 as i32;
    let takes_other = if greater { order < 0 } else { order > 0 };
    Some(Value { settled, kind, ..if takes_other { other } else { one } })
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
