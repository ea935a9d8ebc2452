//! Operators that compare dates and timestamps, also of two types, and where a value of one type cuts the values of
//! another. Reads the session's time zone; keeps nothing.

use pgrx::pg_sys::{self, DATEOID, Datum, Oid, TIMESTAMPOID, TIMESTAMPTZOID};

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

/// An operator: its OID, that of the function behind it, the types of both sides, and what it says.
pub(super) type Listed = (u32, u32, Oid, Oid, Operator);

#[rustfmt::skip]
const OPERATORS: [Listed; 36] = [
    (1095, 1087, DATEOID, DATEOID, Less),
    (1096, 1088, DATEOID, DATEOID, LessOrEqual),
    (1097, 1089, DATEOID, DATEOID, Greater),
    (1098, 1090, DATEOID, DATEOID, GreaterOrEqual),
    (2062, 2054, TIMESTAMPOID, TIMESTAMPOID, Less),
    (2063, 2055, TIMESTAMPOID, TIMESTAMPOID, LessOrEqual),
    (2064, 2057, TIMESTAMPOID, TIMESTAMPOID, Greater),
    (2065, 2056, TIMESTAMPOID, TIMESTAMPOID, GreaterOrEqual),
    (1322, 1154, TIMESTAMPTZOID, TIMESTAMPTZOID, Less),
    (1323, 1155, TIMESTAMPTZOID, TIMESTAMPTZOID, LessOrEqual),
    (1324, 1157, TIMESTAMPTZOID, TIMESTAMPTZOID, Greater),
    (1325, 1156, TIMESTAMPTZOID, TIMESTAMPTZOID, GreaterOrEqual),
    (2345, 2338, DATEOID, TIMESTAMPOID, Less),
    (2346, 2339, DATEOID, TIMESTAMPOID, LessOrEqual),
    (2349, 2341, DATEOID, TIMESTAMPOID, Greater),
    (2348, 2342, DATEOID, TIMESTAMPOID, GreaterOrEqual),
    (2371, 2364, TIMESTAMPOID, DATEOID, Less),
    (2372, 2365, TIMESTAMPOID, DATEOID, LessOrEqual),
    (2375, 2367, TIMESTAMPOID, DATEOID, Greater),
    (2374, 2368, TIMESTAMPOID, DATEOID, GreaterOrEqual),
    (2358, 2351, DATEOID, TIMESTAMPTZOID, Less),
    (2359, 2352, DATEOID, TIMESTAMPTZOID, LessOrEqual),
    (2362, 2354, DATEOID, TIMESTAMPTZOID, Greater),
    (2361, 2355, DATEOID, TIMESTAMPTZOID, GreaterOrEqual),
    (2384, 2377, TIMESTAMPTZOID, DATEOID, Less),
    (2385, 2378, TIMESTAMPTZOID, DATEOID, LessOrEqual),
    (2388, 2380, TIMESTAMPTZOID, DATEOID, Greater),
    (2387, 2381, TIMESTAMPTZOID, DATEOID, GreaterOrEqual),
    (2534, 2520, TIMESTAMPOID, TIMESTAMPTZOID, Less),
    (2535, 2521, TIMESTAMPOID, TIMESTAMPTZOID, LessOrEqual),
    (2538, 2523, TIMESTAMPOID, TIMESTAMPTZOID, Greater),
    (2537, 2524, TIMESTAMPOID, TIMESTAMPTZOID, GreaterOrEqual),
    (2540, 2527, TIMESTAMPTZOID, TIMESTAMPOID, Less),
    (2541, 2528, TIMESTAMPTZOID, TIMESTAMPOID, LessOrEqual),
    (2544, 2530, TIMESTAMPTZOID, TIMESTAMPOID, Greater),
    (2543, 2531, TIMESTAMPTZOID, TIMESTAMPOID, GreaterOrEqual),
];

/// The operator with this OID, if it is listed.
pub(super) fn listed(operator: pg_sys::Oid) -> Option<&'static Listed> {
    OPERATORS.iter().find(|(number, ..)| *number == operator.to_u32())
}

/// A column, with the operators by which its values are sought.
pub(super) fn time_column(table: Oid, number: i16, type_oid: Oid) -> Option<TimeColumn> {
    /// `=` of two values of a type, and the length of its values.
    const EQUALITIES: [(Oid, u32, i32); 3] = [(DATEOID, 1093, 4), (TIMESTAMPOID, 2060, 8), (TIMESTAMPTZOID, 1320, 8)];
    let (_, equal, length) = *EQUALITIES.iter().find(|(listed, ..)| *listed == type_oid)?;
    let operator = |wanted: Operator| {
        let is_it = |found: &&Listed| found.2 == type_oid && found.3 == type_oid && found.4 == wanted;
        OPERATORS.iter().find(is_it).map(|found| Oid::from(found.0))
    };
    Some(TimeColumn {
        table,
        number,
        type_oid,
        length,
        less: operator(Less)?,
        greater: operator(Greater)?,
        not_less: operator(GreaterOrEqual)?,
        equal: equal.into(),
    })
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
