//! The types of values in clock expressions, and the server's functions that read, write and compare their values. A
//! client test compares the table with pg_type.

use pgrx::pg_sys;

use Kind::{
    Bool, Date, Float8, Int2, Int4, Int8, Interval, Name, Numeric, Text, Time, TimeTz, Timestamp, TimestampTz, Unknown,
};

/// A type of values in clock expressions, or several types with the same values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// date
    Date,
    /// time without time zone
    Time,
    /// time with time zone
    TimeTz,
    /// timestamp without time zone
    Timestamp,
    /// timestamp with time zone
    TimestampTz,
    /// interval
    Interval,
    /// smallint
    Int2,
    /// integer
    Int4,
    /// bigint
    Int8,
    /// double precision
    Float8,
    /// numeric
    Numeric,
    /// boolean
    Bool,
    /// text, varchar and char(n): a value of one is a value of the other, unless a function is called that changes it
    Text,
    /// name
    Name,
    /// A literal beside which nothing tells its type, as an argument of `concat`.
    Unknown,
}

/// What is known of a type.
#[derive(Clone, Copy, Debug)]
pub struct Handled {
    /// The kind of its values.
    pub kind: Kind,
    type_oid: pg_sys::Oid,
    /// pg_type.typlen and typbyval
    length: i16,
    by_value: bool,
    /// Its input function.
    pub reads: u32,
    /// Its output function.
    pub writes: u32,
    /// The comparison of its default operator class. Texts are compared by a collation.
    pub compares: Option<u32>,
}

/// The types. The first of each kind stands at the kind's number.
#[rustfmt::skip]
const TYPES: [Handled; 17] = [
    of(Date, pg_sys::DATEOID, 4, true, 1084, 1085, Some(1092)),
    of(Time, pg_sys::TIMEOID, 8, true, 1143, 1144, Some(1107)),
    of(TimeTz, pg_sys::TIMETZOID, 12, false, 1350, 1351, Some(1358)),
    of(Timestamp, pg_sys::TIMESTAMPOID, 8, true, 1312, 1313, Some(2045)),
    of(TimestampTz, pg_sys::TIMESTAMPTZOID, 8, true, 1150, 1151, Some(1314)),
    of(Interval, pg_sys::INTERVALOID, 16, false, 1160, 1161, Some(1315)),
    of(Int2, pg_sys::INT2OID, 2, true, 38, 39, Some(350)),
    of(Int4, pg_sys::INT4OID, 4, true, 42, 43, Some(351)),
    of(Int8, pg_sys::INT8OID, 8, true, 460, 461, Some(842)),
    of(Float8, pg_sys::FLOAT8OID, 8, true, 214, 215, Some(355)),
    of(Numeric, pg_sys::NUMERICOID, -1, false, 1701, 1702, Some(1769)),
    of(Bool, pg_sys::BOOLOID, 1, true, 1242, 1243, Some(1693)),
    of(Text, pg_sys::TEXTOID, -1, false, 46, 47, None),
    of(Name, pg_sys::NAMEOID, 64, false, 34, 35, None),
    of(Unknown, pg_sys::UNKNOWNOID, -2, false, 109, 110, None),
    of(Text, pg_sys::VARCHAROID, -1, false, 1046, 1047, None),
    of(Text, pg_sys::BPCHAROID, -1, false, 1044, 1045, None),
];

const fn of(
    kind: Kind,
    type_oid: pg_sys::Oid,
    length: i16,
    by_value: bool,
    reads: u32,
    writes: u32,
    compares: Option<u32>,
) -> Handled {
    Handled { kind, type_oid, length, by_value, reads, writes, compares }
}

/// What is known of a type; `None` for a type that clock expressions do not have.
pub fn handled(type_oid: pg_sys::Oid) -> Option<&'static Handled> {
    TYPES.iter().find(|known| known.type_oid == type_oid)
}

impl Kind {
    /// The kind of a type; `None` for a type that clock expressions do not have.
    pub fn of(type_oid: pg_sys::Oid) -> Option<Self> {
        handled(type_oid).map(|known| known.kind)
    }

    /// The kind with this number.
    pub fn numbered(number: u32) -> Option<Self> {
        TYPES.get(number as usize).map(|known| known.kind)
    }

    /// What is known of the first type of this kind.
    pub fn handled(self) -> &'static Handled {
        &TYPES[self as usize]
    }

    /// The first type of this kind.
    pub fn type_oid(self) -> pg_sys::Oid {
        self.handled().type_oid
    }

    /// The length of its values as pg_type has it, and whether they are passed by value.
    pub fn form(self) -> (i16, bool) {
        let Handled { length, by_value, .. } = *self.handled();
        (length, by_value)
    }
}

/// Returns true if each kind up to the last one stands at its number.
const fn are_numbered() -> bool {
    let mut number = 0;
    while number <= Unknown as usize {
        if TYPES[number].kind as usize != number {
            return false;
        }
        number += 1;
    }
    true
}

const _: () = assert!(are_numbered());
