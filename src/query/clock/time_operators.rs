//! Operators that compare intervals, dates and timestamps, also of two types, and where a value of one type cuts the
//! values of another. Reads the session's time zone; keeps nothing.

use pgrx::pg_sys::{DATEOID, Datum, INTERVALOID, Oid, TIMESTAMPOID, TIMESTAMPTZOID};

use super::cuts::rank;
use crate::pg::neighbour_search::TimeColumn;
use crate::pg::session_zone;

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

/// An operator: the function behind it, the types of both sides, and what it says.
pub(super) type Listed = (u32, Oid, Oid, Operator);

/// What the operators of a row say, in their order.
const ORDER: [Operator; 4] = [Less, LessOrEqual, Greater, GreaterOrEqual];

/// The types of both sides, and the operators, each with the function behind it.
type Row = (Oid, Oid, [(u32, u32); 4]);

#[rustfmt::skip]
const OPERATORS: [Row; 10] = [
    (DATEOID, DATEOID, [(1095, 1087), (1096, 1088), (1097, 1089), (1098, 1090)]),
    (TIMESTAMPOID, TIMESTAMPOID, [(2062, 2054), (2063, 2055), (2064, 2057), (2065, 2056)]),
    (TIMESTAMPTZOID, TIMESTAMPTZOID, [(1322, 1154), (1323, 1155), (1324, 1157), (1325, 1156)]),
    (DATEOID, TIMESTAMPOID, [(2345, 2338), (2346, 2339), (2349, 2341), (2348, 2342)]),
    (TIMESTAMPOID, DATEOID, [(2371, 2364), (2372, 2365), (2375, 2367), (2374, 2368)]),
    (DATEOID, TIMESTAMPTZOID, [(2358, 2351), (2359, 2352), (2362, 2354), (2361, 2355)]),
    (TIMESTAMPTZOID, DATEOID, [(2384, 2377), (2385, 2378), (2388, 2380), (2387, 2381)]),
    (TIMESTAMPOID, TIMESTAMPTZOID, [(2534, 2520), (2535, 2521), (2538, 2523), (2537, 2524)]),
    (TIMESTAMPTZOID, TIMESTAMPOID, [(2540, 2527), (2541, 2528), (2544, 2530), (2543, 2531)]),
    (INTERVALOID, INTERVALOID, [(1332, 1164), (1333, 1165), (1334, 1167), (1335, 1166)]),
];

/// The operator with this OID, if it is listed.
pub(super) fn listed(operator: Oid) -> Option<Listed> {
    OPERATORS.iter().find_map(|(left, right, operators)| {
        let (says, (_, function)) =
            ORDER.iter().zip(operators).find(|(_, (number, _))| *number == operator.to_u32())?;
        Some((*function, *left, *right, *says))
    })
}

/// A column, with the operators by which its values are sought.
pub(super) fn time_column(table: Oid, number: i16, type_oid: Oid) -> Option<TimeColumn> {
    /// `=` of two values of a type, and the length of its values.
    const EQUALITIES: [(Oid, u32, i32); 3] = [(DATEOID, 1093, 4), (TIMESTAMPOID, 2060, 8), (TIMESTAMPTZOID, 1320, 8)];
    let (_, equal, length) = *EQUALITIES.iter().find(|(listed, ..)| *listed == type_oid)?;
    let (_, _, operators) = OPERATORS.iter().find(|(left, right, _)| *left == type_oid && *right == type_oid)?;
    let [less, _, greater, not_less] = operators.map(|(operator, _)| Oid::from(operator));
    Some(TimeColumn { table, number, type_oid, length, less, greater, not_less, equal: equal.into() })
}

/// Returns true if a column of one type that is compared with a value of another one is split like one that is compared
/// with a limit of its own.
pub(super) fn has_limits_of(column: Oid, value: Oid) -> bool {
    column == value
        || matches!(
            (column, value),
            (DATEOID | TIMESTAMPOID, TIMESTAMPTZOID) | (DATEOID | TIMESTAMPTZOID, TIMESTAMPOID)
        )
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
