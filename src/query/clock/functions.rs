//! The functions of which clock expressions are made: built-in ones that are strict, return the same for the same
//! arguments and settings, take no lock and keep nothing, so that an ERROR of theirs may be dropped. Each of them
//! stands on the lists in `volatility` as well. A client test compares the table with pg_proc.

use pgrx::pg_sys;

use Coarse::{Always, Never, Pattern, Rounds, Stride, Unit};

/// When the result of a function changes by the minute at most, however its arguments move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coarse {
    /// It does not by itself.
    Never,
    /// It does.
    Always,
    /// If the first argument is the word for a unit of a minute or more.
    Unit,
    /// If the first argument is an interval of a minute or more.
    Stride,
    /// If the second argument is a pattern without seconds.
    Pattern,
    /// It may be, as a number that is rounded. The values of the expression tell (`evaluation`).
    Rounds,
}

impl Coarse {
    /// The place of the argument that decides on it.
    pub fn decided_by(self) -> Option<usize> {
        match self {
            Self::Never | Self::Always | Self::Rounds => None,
            Self::Unit | Self::Stride => Some(0),
            Self::Pattern => Some(1),
        }
    }
}

/// A function that may stand in a clock expression.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its OID.
    pub oid: u32,
    /// How many arguments it has.
    pub arguments: usize,
    /// When its result is coarse.
    pub coarse: Coarse,
}

const fn of(oid: u32, arguments: usize, coarse: Coarse) -> Function {
    Function { oid, arguments, coarse }
}

/// Most arguments of a function in the table.
pub const MOST_ARGUMENTS: usize = 7;

/// The functions, ascending.
#[rustfmt::skip]
pub const FUNCTIONS: &[Function] = &[
    of(141, 2, Never), // int4mul(integer,integer)
    of(154, 2, Rounds), // int4div(integer,integer)
    of(156, 2, Rounds), // int4mod(integer,integer)
    of(177, 2, Never), // int4pl(integer,integer)
    of(181, 2, Never), // int4mi(integer,integer)
    of(212, 1, Never), // int4um(integer)
    of(216, 2, Never), // float8mul(double precision,double precision)
    of(217, 2, Never), // float8div(double precision,double precision)
    of(218, 2, Never), // float8pl(double precision,double precision)
    of(219, 2, Never), // float8mi(double precision,double precision)
    of(220, 1, Never), // float8um(double precision)
    of(228, 1, Rounds), // dround(double precision)
    of(229, 1, Rounds), // dtrunc(double precision)
    of(235, 1, Never), // float8(smallint)
    of(313, 1, Never), // int4(smallint)
    of(314, 1, Never), // int2(integer)
    of(316, 1, Never), // float8(integer)
    of(317, 1, Rounds), // int4(double precision)
    of(401, 1, Never), // text(character)
    of(406, 1, Never), // text(name)
    of(407, 1, Never), // name(text)
    of(408, 1, Never), // bpchar(name)
    of(409, 1, Never), // name(character)
    of(462, 1, Never), // int8um(bigint)
    of(463, 2, Never), // int8pl(bigint,bigint)
    of(464, 2, Never), // int8mi(bigint,bigint)
    of(465, 2, Never), // int8mul(bigint,bigint)
    of(466, 2, Rounds), // int8div(bigint,bigint)
    of(480, 1, Never), // int4(bigint)
    of(481, 1, Never), // int8(integer)
    of(482, 1, Never), // float8(bigint)
    of(483, 1, Rounds), // int8(double precision)
    of(714, 1, Never), // int2(bigint)
    of(754, 1, Never), // int8(smallint)
    of(941, 2, Rounds), // mod(integer,integer)
    of(945, 2, Rounds), // int8mod(bigint,bigint)
    of(947, 2, Rounds), // mod(bigint,bigint)
    of(1026, 2, Never), // timezone(interval,timestamp with time zone)
    of(1087, 2, Rounds), // date_lt(date,date)
    of(1088, 2, Rounds), // date_le(date,date)
    of(1089, 2, Rounds), // date_gt(date,date)
    of(1090, 2, Rounds), // date_ge(date,date)
    of(1102, 2, Rounds), // time_lt(time without time zone,time without time zone)
    of(1103, 2, Rounds), // time_le(time without time zone,time without time zone)
    of(1104, 2, Rounds), // time_gt(time without time zone,time without time zone)
    of(1105, 2, Rounds), // time_ge(time without time zone,time without time zone)
    of(1140, 2, Never), // date_mi(date,date)
    of(1141, 2, Never), // date_pli(date,integer)
    of(1142, 2, Never), // date_mii(date,integer)
    of(1154, 2, Rounds), // timestamptz_lt(timestamp with time zone,timestamp with time zone)
    of(1155, 2, Rounds), // timestamptz_le(timestamp with time zone,timestamp with time zone)
    of(1156, 2, Rounds), // timestamptz_ge(timestamp with time zone,timestamp with time zone)
    of(1157, 2, Rounds), // timestamptz_gt(timestamp with time zone,timestamp with time zone)
    of(1158, 1, Never), // to_timestamp(double precision)
    of(1159, 2, Never), // timezone(text,timestamp with time zone)
    of(1164, 2, Rounds), // interval_lt(interval,interval)
    of(1165, 2, Rounds), // interval_le(interval,interval)
    of(1166, 2, Rounds), // interval_ge(interval,interval)
    of(1167, 2, Rounds), // interval_gt(interval,interval)
    of(1168, 1, Never), // interval_um(interval)
    of(1169, 2, Never), // interval_pl(interval,interval)
    of(1170, 2, Never), // interval_mi(interval,interval)
    of(1171, 2, Unit), // date_part(text,timestamp with time zone)
    of(1172, 2, Unit), // date_part(text,interval)
    of(1174, 1, Never), // timestamptz(date)
    of(1175, 1, Never), // justify_hours(interval)
    of(1178, 1, Always), // date(timestamp with time zone)
    of(1188, 2, Never), // timestamptz_mi(timestamp with time zone,timestamp with time zone)
    of(1189, 2, Never), // timestamptz_pl_interval(timestamp with time zone,interval)
    of(1190, 2, Never), // timestamptz_mi_interval(timestamp with time zone,interval)
    of(1199, 2, Never), // age(timestamp with time zone,timestamp with time zone)
    of(1200, 2, Never), // "interval"(interval,integer)
    of(1217, 2, Unit), // date_trunc(text,timestamp with time zone)
    of(1218, 2, Unit), // date_trunc(text,interval)
    of(1258, 2, Never), // textcat(text,text)
    of(1272, 2, Never), // datetime_pl(date,time without time zone)
    of(1273, 2, Unit), // date_part(text,time with time zone)
    of(1274, 2, Never), // int84pl(bigint,integer)
    of(1275, 2, Never), // int84mi(bigint,integer)
    of(1276, 2, Never), // int84mul(bigint,integer)
    of(1277, 2, Rounds), // int84div(bigint,integer)
    of(1278, 2, Never), // int48pl(integer,bigint)
    of(1279, 2, Never), // int48mi(integer,bigint)
    of(1280, 2, Never), // int48mul(integer,bigint)
    of(1281, 2, Rounds), // int48div(integer,bigint)
    of(1284, 3, Unit), // date_trunc(text,timestamp with time zone,text)
    of(1295, 1, Never), // justify_days(interval)
    of(1297, 2, Never), // datetimetz_pl(date,time with time zone)
    of(1316, 1, Never), // "time"(timestamp without time zone)
    of(1326, 2, Never), // interval_div(interval,double precision)
    of(1342, 1, Rounds), // round(double precision)
    of(1343, 1, Rounds), // trunc(double precision)
    of(1354, 2, Rounds), // timetz_lt(time with time zone,time with time zone)
    of(1355, 2, Rounds), // timetz_le(time with time zone,time with time zone)
    of(1356, 2, Rounds), // timetz_ge(time with time zone,time with time zone)
    of(1357, 2, Rounds), // timetz_gt(time with time zone,time with time zone)
    of(1359, 2, Never), // timestamptz(date,time with time zone)
    of(1370, 1, Never), // "interval"(time without time zone)
    of(1385, 2, Unit), // date_part(text,time without time zone)
    of(1388, 1, Never), // timetz(timestamp with time zone)
    of(1395, 1, Never), // abs(double precision)
    of(1396, 1, Never), // abs(bigint)
    of(1397, 1, Never), // abs(integer)
    of(1400, 1, Never), // name(character varying)
    of(1401, 1, Never), // "varchar"(name)
    of(1419, 1, Never), // "time"(interval)
    of(1618, 2, Never), // interval_mul(interval,double precision)
    of(1624, 2, Never), // mul_d_interval(double precision,interval)
    of(1690, 2, Never), // time_mi_time(time without time zone,time without time zone)
    of(1703, 2, Rounds), // "numeric"(numeric,integer)
    of(1705, 1, Never), // abs(numeric)
    of(1707, 2, Rounds), // round(numeric,integer)
    of(1709, 2, Rounds), // trunc(numeric,integer)
    of(1711, 1, Rounds), // ceil(numeric)
    of(1712, 1, Rounds), // floor(numeric)
    of(1724, 2, Never), // numeric_add(numeric,numeric)
    of(1725, 2, Never), // numeric_sub(numeric,numeric)
    of(1726, 2, Never), // numeric_mul(numeric,numeric)
    of(1727, 2, Never), // numeric_div(numeric,numeric)
    of(1728, 2, Rounds), // mod(numeric,numeric)
    of(1729, 2, Rounds), // numeric_mod(numeric,numeric)
    of(1740, 1, Never), // "numeric"(integer)
    of(1743, 1, Never), // "numeric"(double precision)
    of(1744, 1, Rounds), // int4(numeric)
    of(1746, 1, Never), // float8(numeric)
    of(1747, 2, Never), // time_pl_interval(time without time zone,interval)
    of(1748, 2, Never), // time_mi_interval(time without time zone,interval)
    of(1749, 2, Never), // timetz_pl_interval(time with time zone,interval)
    of(1750, 2, Never), // timetz_mi_interval(time with time zone,interval)
    of(1768, 2, Pattern), // to_char(interval,text)
    of(1770, 2, Pattern), // to_char(timestamp with time zone,text)
    of(1771, 1, Never), // numeric_uminus(numeric)
    of(1779, 1, Rounds), // int8(numeric)
    of(1781, 1, Never), // "numeric"(bigint)
    of(1961, 2, Never), // "timestamp"(timestamp without time zone,integer)
    of(1967, 2, Never), // timestamptz(timestamp with time zone,integer)
    of(1968, 2, Never), // "time"(time without time zone,integer)
    of(1969, 2, Never), // timetz(time with time zone,integer)
    of(1973, 2, Rounds), // div(numeric,numeric)
    of(2019, 1, Never), // "time"(timestamp with time zone)
    of(2020, 2, Unit), // date_trunc(text,timestamp without time zone)
    of(2021, 2, Unit), // date_part(text,timestamp without time zone)
    of(2024, 1, Never), // "timestamp"(date)
    of(2025, 2, Never), // "timestamp"(date,time without time zone)
    of(2027, 1, Never), // "timestamp"(timestamp with time zone)
    of(2028, 1, Never), // timestamptz(timestamp without time zone)
    of(2029, 1, Always), // date(timestamp without time zone)
    of(2031, 2, Never), // timestamp_mi(timestamp without time zone,timestamp without time zone)
    of(2032, 2, Never), // timestamp_pl_interval(timestamp without time zone,interval)
    of(2033, 2, Never), // timestamp_mi_interval(timestamp without time zone,interval)
    of(2038, 2, Never), // timezone(interval,time with time zone)
    of(2046, 1, Never), // "time"(time with time zone)
    of(2049, 2, Pattern), // to_char(timestamp without time zone,text)
    of(2054, 2, Rounds), // timestamp_lt(timestamp without time zone,timestamp without time zone)
    of(2055, 2, Rounds), // timestamp_le(timestamp without time zone,timestamp without time zone)
    of(2056, 2, Rounds), // timestamp_ge(timestamp without time zone,timestamp without time zone)
    of(2057, 2, Rounds), // timestamp_gt(timestamp without time zone,timestamp without time zone)
    of(2058, 2, Never), // age(timestamp without time zone,timestamp without time zone)
    of(2069, 2, Never), // timezone(text,timestamp without time zone)
    of(2070, 2, Never), // timezone(interval,timestamp without time zone)
    of(2071, 2, Never), // date_pl_interval(date,interval)
    of(2072, 2, Never), // date_mi_interval(date,interval)
    of(2167, 1, Rounds), // ceiling(numeric)
    of(2308, 1, Rounds), // ceil(double precision)
    of(2309, 1, Rounds), // floor(double precision)
    of(2320, 1, Rounds), // ceiling(double precision)
    of(2338, 2, Rounds), // date_lt_timestamp(date,timestamp without time zone)
    of(2339, 2, Rounds), // date_le_timestamp(date,timestamp without time zone)
    of(2341, 2, Rounds), // date_gt_timestamp(date,timestamp without time zone)
    of(2342, 2, Rounds), // date_ge_timestamp(date,timestamp without time zone)
    of(2351, 2, Rounds), // date_lt_timestamptz(date,timestamp with time zone)
    of(2352, 2, Rounds), // date_le_timestamptz(date,timestamp with time zone)
    of(2354, 2, Rounds), // date_gt_timestamptz(date,timestamp with time zone)
    of(2355, 2, Rounds), // date_ge_timestamptz(date,timestamp with time zone)
    of(2364, 2, Rounds), // timestamp_lt_date(timestamp without time zone,date)
    of(2365, 2, Rounds), // timestamp_le_date(timestamp without time zone,date)
    of(2367, 2, Rounds), // timestamp_gt_date(timestamp without time zone,date)
    of(2368, 2, Rounds), // timestamp_ge_date(timestamp without time zone,date)
    of(2377, 2, Rounds), // timestamptz_lt_date(timestamp with time zone,date)
    of(2378, 2, Rounds), // timestamptz_le_date(timestamp with time zone,date)
    of(2380, 2, Rounds), // timestamptz_gt_date(timestamp with time zone,date)
    of(2381, 2, Rounds), // timestamptz_ge_date(timestamp with time zone,date)
    of(2520, 2, Rounds), // timestamp_lt_timestamptz(timestamp without time zone,timestamp with time zone)
    of(2521, 2, Rounds), // timestamp_le_timestamptz(timestamp without time zone,timestamp with time zone)
    of(2523, 2, Rounds), // timestamp_gt_timestamptz(timestamp without time zone,timestamp with time zone)
    of(2524, 2, Rounds), // timestamp_ge_timestamptz(timestamp without time zone,timestamp with time zone)
    of(2527, 2, Rounds), // timestamptz_lt_timestamp(timestamp with time zone,timestamp without time zone)
    of(2528, 2, Rounds), // timestamptz_le_timestamp(timestamp with time zone,timestamp without time zone)
    of(2530, 2, Rounds), // timestamptz_gt_timestamp(timestamp with time zone,timestamp without time zone)
    of(2531, 2, Rounds), // timestamptz_ge_timestamp(timestamp with time zone,timestamp without time zone)
    of(2711, 1, Never), // justify_interval(interval)
    of(3461, 6, Never), // make_timestamp(integer,integer,integer,integer,integer,double precision)
    of(3462, 6, Never), // make_timestamptz(integer,integer,integer,integer,integer,double precision)
    of(3463, 7, Never), // make_timestamptz(integer,integer,integer,integer,integer,double precision,text)
    of(3464, 7, Never), // make_interval(integer,integer,integer,integer,integer,integer,double precision)
    of(3846, 3, Never), // make_date(integer,integer,integer)
    of(3847, 3, Never), // make_time(integer,integer,double precision)
    of(6177, 3, Stride), // date_bin(interval,timestamp without time zone,timestamp without time zone)
    of(6178, 3, Stride), // date_bin(interval,timestamp with time zone,timestamp with time zone)
    of(6199, 2, Unit), // "extract"(text,date)
    of(6200, 2, Unit), // "extract"(text,time without time zone)
    of(6201, 2, Unit), // "extract"(text,time with time zone)
    of(6202, 2, Unit), // "extract"(text,timestamp without time zone)
    of(6203, 2, Unit), // "extract"(text,timestamp with time zone)
    of(6204, 2, Unit), // "extract"(text,interval)
];

/// Functions in SQL behind `||`, which join the output of a value with a text: textanycat, anytextcat. What they are
/// made of: textcat(text,text).
pub const JOINING: [u32; 2] = [2003, 2004];
pub const TEXTCAT: u32 = 1258;

/// Functions that make a text of any number of values of any type, some of which may be NULL: concat, concat_ws,
/// format, and format without values.
pub const GATHERING: [u32; 4] = [3058, 3059, 3539, 3540];

/// Functions of the table that read settings and are marked IMMUTABLE: timezone(text, timestamptz), age(timestamptz,
/// timestamptz), date_trunc(text, timestamptz, text), timezone(text, timestamp). A kept plan has what they gave for
/// constants under the settings of planning, which may not be those of now. So they stand in a clock expression only
/// where they are asked about the time.
pub const FOLDED_BY_SETTINGS: [u32; 4] = [1159, 1199, 1284, 2069];

/// make_interval(int, int, int, int, int, int, double precision), whose arguments are zero where they are left out.
pub const MAKE_INTERVAL: u32 = 3464;

/// Returns true if each number is greater than the one before.
const fn are_ascending() -> bool {
    let mut place = 1;
    while place < FUNCTIONS.len() {
        if FUNCTIONS[place - 1].oid >= FUNCTIONS[place].oid || FUNCTIONS[place].arguments > MOST_ARGUMENTS {
            return false;
        }
        place += 1;
    }
    true
}

const _: () = assert!(are_ascending());

/// The function with this OID, if it is listed.
pub fn listed(function: pg_sys::Oid) -> Option<&'static Function> {
    FUNCTIONS.binary_search_by_key(&function.to_u32(), |listed| listed.oid).ok().map(|place| &FUNCTIONS[place])
}

/// Returns true if it joins a text and a value.
pub fn joins(function: pg_sys::Oid) -> bool {
    JOINING.contains(&function.to_u32())
}
