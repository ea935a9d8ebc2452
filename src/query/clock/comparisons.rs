//! Operators that compare dates and timestamps, also of two types, and what a value of one type is as a limit of values of another. Reads the
//! session's time zone; keeps nothing.

use pgrx::pg_sys::{self, Datum};

use super::kinds::Kind;
use crate::pg::index_search::{Limit, TimeOrder};
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

    /// Does a column on the left of it belong to the values above when it is equal to the right side? `col > E` and `col <= E` split behind E; so do
    /// `E < col` and `E >= col`.
    pub(super) fn splits_below(self) -> bool {
        matches!(self, Less | GreaterOrEqual)
    }
}

use Kind::{Date, Timestamp, TimestampTz};
use Operator::{Greater, GreaterOrEqual, Less, LessOrEqual};

/// An operator: its OID, that of the function behind it, the types of both sides, and what it says.
pub(super) type Listed = (u32, u32, Kind, Kind, Operator);

#[rustfmt::skip]
const OPERATORS: [Listed; 36] = [
    (1095, 1087, Date, Date, Less),
    (1096, 1088, Date, Date, LessOrEqual),
    (1097, 1089, Date, Date, Greater),
    (1098, 1090, Date, Date, GreaterOrEqual),
    (2062, 2054, Timestamp, Timestamp, Less),
    (2063, 2055, Timestamp, Timestamp, LessOrEqual),
    (2064, 2057, Timestamp, Timestamp, Greater),
    (2065, 2056, Timestamp, Timestamp, GreaterOrEqual),
    (1322, 1154, TimestampTz, TimestampTz, Less),
    (1323, 1155, TimestampTz, TimestampTz, LessOrEqual),
    (1324, 1157, TimestampTz, TimestampTz, Greater),
    (1325, 1156, TimestampTz, TimestampTz, GreaterOrEqual),
    (2345, 2338, Date, Timestamp, Less),
    (2346, 2339, Date, Timestamp, LessOrEqual),
    (2349, 2341, Date, Timestamp, Greater),
    (2348, 2342, Date, Timestamp, GreaterOrEqual),
    (2371, 2364, Timestamp, Date, Less),
    (2372, 2365, Timestamp, Date, LessOrEqual),
    (2375, 2367, Timestamp, Date, Greater),
    (2374, 2368, Timestamp, Date, GreaterOrEqual),
    (2358, 2351, Date, TimestampTz, Less),
    (2359, 2352, Date, TimestampTz, LessOrEqual),
    (2362, 2354, Date, TimestampTz, Greater),
    (2361, 2355, Date, TimestampTz, GreaterOrEqual),
    (2384, 2377, TimestampTz, Date, Less),
    (2385, 2378, TimestampTz, Date, LessOrEqual),
    (2388, 2380, TimestampTz, Date, Greater),
    (2387, 2381, TimestampTz, Date, GreaterOrEqual),
    (2534, 2520, Timestamp, TimestampTz, Less),
    (2535, 2521, Timestamp, TimestampTz, LessOrEqual),
    (2538, 2523, Timestamp, TimestampTz, Greater),
    (2537, 2524, Timestamp, TimestampTz, GreaterOrEqual),
    (2540, 2527, TimestampTz, Timestamp, Less),
    (2541, 2528, TimestampTz, Timestamp, LessOrEqual),
    (2544, 2530, TimestampTz, Timestamp, Greater),
    (2543, 2531, TimestampTz, Timestamp, GreaterOrEqual),
];

/// The operator with this OID, if it is listed.
pub(super) fn listed(operator: pg_sys::Oid) -> Option<&'static Listed> {
    OPERATORS.iter().find(|(number, ..)| *number == operator.to_u32())
}

impl Kind {
    /// How values are ordered, for a kind that is compared here.
    pub fn order(self) -> Option<TimeOrder> {
        let function = |wanted: Operator| {
            let is_it = |found: &&Listed| found.2 == self && found.3 == self && found.4 == wanted;
            OPERATORS.iter().find(is_it).map(|found| found.1)
        };
        Some(TimeOrder {
            type_oid: self.type_oid(),
            comparison: self.handled().compares?,
            less: function(Less)?,
            less_or_equal: function(LessOrEqual)?,
        })
    }

    /// Is a column of this kind that is compared with a value of another kind split like one that is compared with a limit of its own?
    pub(super) fn has_limits_of(self, value: Kind) -> bool {
        self == value || matches!((self, value), (Date | Timestamp, TimestampTz) | (Date | TimestampTz, Timestamp))
    }

    /// What a value of another kind is as a limit of values of this one: each value is greater than the limit if it is greater than the value, as the
    /// server compares both. `None` if there is no telling: the value is infinite, or the offset of the time zone changes near it.
    pub(super) fn limit(self, (kind, value): (Kind, Datum), excluded: bool) -> Option<Limit> {
        if self == kind {
            return Some(Limit { value, excluded });
        }
        if !self.has_limits_of(kind) {
            return None;
        }
        let micros = value.value() as i64;
        let local = match (self, kind) {
            (TimestampTz, _) => micros.checked_sub(steady_offset(micros)?)?,
            (_, TimestampTz) => micros.checked_add(steady_offset(micros)?)?,
            _ => Some(micros).filter(|micros| is_finite(*micros))?,
        };
        if self != Date {
            return Some(Limit { value: Datum::from(local), excluded });
        }
        // The date is taken for its first moment.
        let (day, rest) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        Some(Limit { value: Datum::from(i32::try_from(day).ok()?), excluded: excluded && rest == 0 })
    }
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

/// The offset of the session's time zone around a time, local or not, in microseconds. `None` if it is not the same for some days before and behind it.
///
/// With such an offset, a local time near this one comes after another in UTC as it does locally. One that is further away does so as well, since it is further
/// away than any two offsets differ.
pub(super) fn steady_offset(micros: i64) -> Option<i64> {
    if !is_finite(micros) || !session_zone::has_sane_offsets() {
        return None;
    }
    let second = |micros: i64| micros.div_euclid(SECOND) + EPOCH;
    let span = session_zone::offset_at(session_zone::identity(), second(micros - STEADY));
    let offset = i64::from(span.offset) * SECOND;
    (span.end > second(micros + STEADY) && offset.abs() <= LARGEST_OFFSET).then_some(offset)
}
