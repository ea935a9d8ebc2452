//! Operators of the server that compare intervals, dates and timestamps, also of two types, or lengths of time; those
//! that compute with them; and where a value of one type cuts the values of another. Reads the session's time zone;
//! keeps nothing.

use pgrx::pg_sys::{self, DATEOID, Datum, FLOAT8OID, INTERVALOID, NUMERICOID, Oid, TIMESTAMPOID, TIMESTAMPTZOID};

use super::cuts::rank;
use super::expression::behind;
use crate::pg::neighbour_search::TimeColumn;
use crate::pg::session_zone;
use crate::pg::tree::Tree;

/// What the left side of a comparison is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    /// The same with both sides exchanged.
    pub(super) fn turned(self) -> Self {
        match self {
            Less => Greater,
            LessOrEqual => GreaterOrEqual,
            Greater => Less,
            GreaterOrEqual => LessOrEqual,
        }
    }

    /// A column on the left of it belongs to the values above when it is equal to the right side. `col > E` and
    /// `col <= E` split behind E; so do `E < col` and `E >= col`.
    pub(super) fn splits_below(self) -> bool {
        matches!(self, Less | GreaterOrEqual)
    }
}

use Operator::{Greater, GreaterOrEqual, Less, LessOrEqual};

/// What an operator computes of a time and another value, or of two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arithmetic {
    /// How far two times lie apart.
    Difference,
    /// A time with an interval added to it.
    Sum,
    /// A time with an interval subtracted from it.
    Earlier,
    /// A number divided by another one.
    Quotient,
}

use Arithmetic::{Difference, Earlier, Quotient, Sum};

/// What the operators of a row say, in their order.
const ORDER: [Operator; 4] = [Less, LessOrEqual, Greater, GreaterOrEqual];

/// The operators that compare: the types of both sides, and the functions behind them.
#[rustfmt::skip]
const COMPARING: [(Oid, Oid, [u32; 4]); 12] = [
    (DATEOID, DATEOID, [1087, 1088, 1089, 1090]),
    (TIMESTAMPOID, TIMESTAMPOID, [2054, 2055, 2057, 2056]),
    (TIMESTAMPTZOID, TIMESTAMPTZOID, [1154, 1155, 1157, 1156]),
    (DATEOID, TIMESTAMPOID, [2338, 2339, 2341, 2342]),
    (TIMESTAMPOID, DATEOID, [2364, 2365, 2367, 2368]),
    (DATEOID, TIMESTAMPTZOID, [2351, 2352, 2354, 2355]),
    (TIMESTAMPTZOID, DATEOID, [2377, 2378, 2380, 2381]),
    (TIMESTAMPOID, TIMESTAMPTZOID, [2520, 2521, 2523, 2524]),
    (TIMESTAMPTZOID, TIMESTAMPOID, [2527, 2528, 2530, 2531]),
    (INTERVALOID, INTERVALOID, [1164, 1165, 1167, 1166]),
    (NUMERICOID, NUMERICOID, [1722, 1723, 1720, 1721]),
    (FLOAT8OID, FLOAT8OID, [295, 296, 297, 298]),
];

/// The operators that compute: the type of the left side, the function behind it, and what it gives.
#[rustfmt::skip]
const COMPUTING: [(Oid, u32, Arithmetic); 8] = [
    (TIMESTAMPTZOID, 1188, Difference), (TIMESTAMPOID, 2031, Difference),
    (TIMESTAMPTZOID, 1189, Sum), (TIMESTAMPOID, 2032, Sum),
    (TIMESTAMPTZOID, 1190, Earlier), (TIMESTAMPOID, 2033, Earlier),
    (NUMERICOID, 1727, Quotient), (FLOAT8OID, 217, Quotient),
];

/// What a listed operator says that compares, the types of both sides, and the function behind it.
pub(super) fn comparing(call: Tree<'_, pg_sys::OpExpr>) -> Option<(Operator, Oid, Oid, Oid)> {
    let function = behind(call);
    COMPARING.iter().find_map(|(left, right, functions)| {
        let place = functions.iter().position(|listed| *listed == function.to_u32())?;
        Some((ORDER[place], *left, *right, function))
    })
}

/// What a listed operator gives that computes, the type of the left side, and the function behind it.
pub(super) fn computing(call: Tree<'_, pg_sys::OpExpr>) -> Option<(Arithmetic, Oid, Oid)> {
    let function = behind(call);
    let (left, _, gives) = COMPUTING.iter().find(|(_, listed, _)| *listed == function.to_u32())?;
    Some((*gives, *left, function))
}

/// A column, with the operators by which its values are sought.
pub(super) fn time_column(table: Oid, number: i16, type_oid: Oid) -> Option<TimeColumn> {
    /// `<`, `>`, `>=` and `=` of two values of a type, and the length of its values.
    const SEEKING: [(Oid, [u32; 4], i32); 3] = [
        (DATEOID, [1095, 1097, 1098, 1093], 4),
        (TIMESTAMPOID, [2062, 2064, 2065, 2060], 8),
        (TIMESTAMPTZOID, [1322, 1324, 1325, 1320], 8),
    ];
    let (_, operators, length) = *SEEKING.iter().find(|(listed, ..)| *listed == type_oid)?;
    let [less, greater, not_less, equal] = operators.map(Oid::from);
    Some(TimeColumn { table, number, type_oid, length, less, greater, not_less, equal })
}

/// Returns true if a column of times that is compared with a value is split like one that is compared with a limit of
/// its own type.
pub(super) fn has_limits_of(column: Oid, value: Oid) -> bool {
    match column {
        DATEOID => matches!(value, DATEOID | TIMESTAMPOID | TIMESTAMPTZOID),
        TIMESTAMPOID | TIMESTAMPTZOID => matches!(value, TIMESTAMPOID | TIMESTAMPTZOID),
        _ => false,
    }
}

/// The last value of the column's type that is not greater than a value of another type, as the server compares both,
/// and whether it is equal to it. `None` if there is no telling: the value is infinite, or the offset of the time zone
/// changes near it.
pub(super) fn last_up_to(column: Oid, (type_oid, value): (Oid, Datum)) -> Option<(i64, bool)> {
    if column == type_oid {
        return Some((rank(type_oid, value), true));
    }
    if !has_limits_of(column, type_oid) {
        return None;
    }
    let micros = value.value() as i64;
    let local = match (column, type_oid) {
        (TIMESTAMPTZOID, _) => micros.checked_sub(steady_offset(micros)?)?,
        (_, TIMESTAMPTZOID) => micros.checked_add(steady_offset(micros)?)?,
        _ => Some(micros).filter(|micros| is_finite(*micros))?,
    };
    if column != DATEOID {
        return Some((local, true));
    }
    // The date is taken for its first moment.
    let (day, rest) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    Some((day, rest == 0))
}

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
/// In microseconds.
pub(super) const DAY: i64 = 24 * HOUR;
/// Seconds from 1970, where the time zones count from, to 2000, where the server does.
const EPOCH: i64 = 946_684_800;
/// The largest offset of a time zone that is named after a place, and more.
const LARGEST_OFFSET: i64 = 24 * HOUR;
/// For so long before and behind a time, the offset has to be the same.
const STEADY: i64 = 4 * DAY;

/// Not the words for infinity, nor near the ends of what timestamps can be.
fn is_finite(micros: i64) -> bool {
    micros.unsigned_abs() < i64::MAX.unsigned_abs() / 4
}

/// The offset of the session's time zone around a time, local or not, in microseconds. `None` if it is not the same for
/// some days before and behind it.
///
/// With such an offset, a local time near this one comes after another in UTC as it does locally. One that is further
/// away does so as well, since it is further away than any two offsets differ.
pub(super) fn steady_offset(micros: i64) -> Option<i64> {
    if !is_finite(micros) || !session_zone::has_sane_offsets() {
        return None;
    }
    let second = |micros: i64| micros.div_euclid(SECOND) + EPOCH;
    let span = session_zone::offset_at(session_zone::identity(), second(micros - STEADY));
    let offset = i64::from(span.offset) * SECOND;
    (span.end > second(micros + STEADY) && offset.abs() <= LARGEST_OFFSET).then_some(offset)
}
