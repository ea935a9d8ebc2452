//! The functions and operators of which clock expressions are made: built-in ones that are called by number, strict, and return the same
//! for the same arguments and settings. Each of them stands on the lists in `volatility` as well. A client test compares the tables with
//! pg_proc and pg_operator.

use pgrx::pg_sys;

use Coarse::{Always, Never, Pattern, Rounds, Stride, Unit};
use Kind::{Bool, Date, Float8, Int2, Int4, Int8, Interval, Name, Numeric, Text, Time, TimeTz, Timestamp, TimestampTz};

use super::kinds::Kind;

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
    /// It may be, as a number that is rounded. The values of the function tell (`evaluation`).
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
    /// What it returns.
    pub result: Kind,
    /// When its result is coarse.
    pub coarse: Coarse,
}

const fn of(oid: u32, arguments: usize, result: Kind, coarse: Coarse) -> Function {
    Function { oid, arguments, result, coarse }
}

/// Most arguments of a function in the table.
pub const MOST_ARGUMENTS: usize = 7;

/// The functions, ascending.
#[rustfmt::skip]
pub const FUNCTIONS: &[Function] = &[
    of(141, 2, Int4, Never), // int4mul(integer,integer)
    of(154, 2, Int4, Rounds), // int4div(integer,integer)
    of(156, 2, Int4, Rounds), // int4mod(integer,integer)
    of(177, 2, Int4, Never), // int4pl(integer,integer)
    of(181, 2, Int4, Never), // int4mi(integer,integer)
    of(212, 1, Int4, Never), // int4um(integer)
    of(216, 2, Float8, Never), // float8mul(double precision,double precision)
    of(217, 2, Float8, Never), // float8div(double precision,double precision)
    of(218, 2, Float8, Never), // float8pl(double precision,double precision)
    of(219, 2, Float8, Never), // float8mi(double precision,double precision)
    of(220, 1, Float8, Never), // float8um(double precision)
    of(228, 1, Float8, Rounds), // dround(double precision)
    of(229, 1, Float8, Rounds), // dtrunc(double precision)
    of(235, 1, Float8, Never), // float8(smallint)
    of(313, 1, Int4, Never), // int4(smallint)
    of(314, 1, Int2, Never), // int2(integer)
    of(316, 1, Float8, Never), // float8(integer)
    of(317, 1, Int4, Rounds), // int4(double precision)
    of(401, 1, Text, Never), // text(character)
    of(406, 1, Text, Never), // text(name)
    of(407, 1, Name, Never), // name(text)
    of(408, 1, Text, Never), // bpchar(name)
    of(409, 1, Name, Never), // name(character)
    of(462, 1, Int8, Never), // int8um(bigint)
    of(463, 2, Int8, Never), // int8pl(bigint,bigint)
    of(464, 2, Int8, Never), // int8mi(bigint,bigint)
    of(465, 2, Int8, Never), // int8mul(bigint,bigint)
    of(466, 2, Int8, Rounds), // int8div(bigint,bigint)
    of(480, 1, Int4, Never), // int4(bigint)
    of(481, 1, Int8, Never), // int8(integer)
    of(482, 1, Float8, Never), // float8(bigint)
    of(483, 1, Int8, Rounds), // int8(double precision)
    of(714, 1, Int2, Never), // int2(bigint)
    of(754, 1, Int8, Never), // int8(smallint)
    of(941, 2, Int4, Rounds), // mod(integer,integer)
    of(945, 2, Int8, Rounds), // int8mod(bigint,bigint)
    of(947, 2, Int8, Rounds), // mod(bigint,bigint)
    of(1026, 2, Timestamp, Never), // timezone(interval,timestamp with time zone)
    of(1087, 2, Bool, Rounds), // date_lt(date,date)
    of(1088, 2, Bool, Rounds), // date_le(date,date)
    of(1089, 2, Bool, Rounds), // date_gt(date,date)
    of(1090, 2, Bool, Rounds), // date_ge(date,date)
    of(1102, 2, Bool, Rounds), // time_lt(time without time zone,time without time zone)
    of(1103, 2, Bool, Rounds), // time_le(time without time zone,time without time zone)
    of(1104, 2, Bool, Rounds), // time_gt(time without time zone,time without time zone)
    of(1105, 2, Bool, Rounds), // time_ge(time without time zone,time without time zone)
    of(1140, 2, Int4, Never), // date_mi(date,date)
    of(1141, 2, Date, Never), // date_pli(date,integer)
    of(1142, 2, Date, Never), // date_mii(date,integer)
    of(1154, 2, Bool, Rounds), // timestamptz_lt(timestamp with time zone,timestamp with time zone)
    of(1155, 2, Bool, Rounds), // timestamptz_le(timestamp with time zone,timestamp with time zone)
    of(1156, 2, Bool, Rounds), // timestamptz_ge(timestamp with time zone,timestamp with time zone)
    of(1157, 2, Bool, Rounds), // timestamptz_gt(timestamp with time zone,timestamp with time zone)
    of(1158, 1, TimestampTz, Never), // to_timestamp(double precision)
    of(1159, 2, Timestamp, Never), // timezone(text,timestamp with time zone)
    of(1164, 2, Bool, Rounds), // interval_lt(interval,interval)
    of(1165, 2, Bool, Rounds), // interval_le(interval,interval)
    of(1166, 2, Bool, Rounds), // interval_ge(interval,interval)
    of(1167, 2, Bool, Rounds), // interval_gt(interval,interval)
    of(1168, 1, Interval, Never), // interval_um(interval)
    of(1169, 2, Interval, Never), // interval_pl(interval,interval)
    of(1170, 2, Interval, Never), // interval_mi(interval,interval)
    of(1171, 2, Float8, Unit), // date_part(text,timestamp with time zone)
    of(1172, 2, Float8, Unit), // date_part(text,interval)
    of(1174, 1, TimestampTz, Never), // timestamptz(date)
    of(1175, 1, Interval, Never), // justify_hours(interval)
    of(1178, 1, Date, Always), // date(timestamp with time zone)
    of(1188, 2, Interval, Never), // timestamptz_mi(timestamp with time zone,timestamp with time zone)
    of(1189, 2, TimestampTz, Never), // timestamptz_pl_interval(timestamp with time zone,interval)
    of(1190, 2, TimestampTz, Never), // timestamptz_mi_interval(timestamp with time zone,interval)
    of(1199, 2, Interval, Never), // age(timestamp with time zone,timestamp with time zone)
    of(1200, 2, Interval, Never), // "interval"(interval,integer)
    of(1217, 2, TimestampTz, Unit), // date_trunc(text,timestamp with time zone)
    of(1218, 2, Interval, Unit), // date_trunc(text,interval)
    of(1258, 2, Text, Never), // textcat(text,text)
    of(1272, 2, Timestamp, Never), // datetime_pl(date,time without time zone)
    of(1273, 2, Float8, Unit), // date_part(text,time with time zone)
    of(1274, 2, Int8, Never), // int84pl(bigint,integer)
    of(1275, 2, Int8, Never), // int84mi(bigint,integer)
    of(1276, 2, Int8, Never), // int84mul(bigint,integer)
    of(1277, 2, Int8, Rounds), // int84div(bigint,integer)
    of(1278, 2, Int8, Never), // int48pl(integer,bigint)
    of(1279, 2, Int8, Never), // int48mi(integer,bigint)
    of(1280, 2, Int8, Never), // int48mul(integer,bigint)
    of(1281, 2, Int8, Rounds), // int48div(integer,bigint)
    of(1284, 3, TimestampTz, Unit), // date_trunc(text,timestamp with time zone,text)
    of(1295, 1, Interval, Never), // justify_days(interval)
    of(1297, 2, TimestampTz, Never), // datetimetz_pl(date,time with time zone)
    of(1316, 1, Time, Never), // "time"(timestamp without time zone)
    of(1326, 2, Interval, Never), // interval_div(interval,double precision)
    of(1342, 1, Float8, Rounds), // round(double precision)
    of(1343, 1, Float8, Rounds), // trunc(double precision)
    of(1354, 2, Bool, Rounds), // timetz_lt(time with time zone,time with time zone)
    of(1355, 2, Bool, Rounds), // timetz_le(time with time zone,time with time zone)
    of(1356, 2, Bool, Rounds), // timetz_ge(time with time zone,time with time zone)
    of(1357, 2, Bool, Rounds), // timetz_gt(time with time zone,time with time zone)
    of(1359, 2, TimestampTz, Never), // timestamptz(date,time with time zone)
    of(1370, 1, Interval, Never), // "interval"(time without time zone)
    of(1385, 2, Float8, Unit), // date_part(text,time without time zone)
    of(1388, 1, TimeTz, Never), // timetz(timestamp with time zone)
    of(1395, 1, Float8, Never), // abs(double precision)
    of(1396, 1, Int8, Never), // abs(bigint)
    of(1397, 1, Int4, Never), // abs(integer)
    of(1400, 1, Name, Never), // name(character varying)
    of(1401, 1, Text, Never), // "varchar"(name)
    of(1419, 1, Time, Never), // "time"(interval)
    of(1618, 2, Interval, Never), // interval_mul(interval,double precision)
    of(1624, 2, Interval, Never), // mul_d_interval(double precision,interval)
    of(1690, 2, Interval, Never), // time_mi_time(time without time zone,time without time zone)
    of(1703, 2, Numeric, Rounds), // "numeric"(numeric,integer)
    of(1705, 1, Numeric, Never), // abs(numeric)
    of(1707, 2, Numeric, Rounds), // round(numeric,integer)
    of(1709, 2, Numeric, Rounds), // trunc(numeric,integer)
    of(1711, 1, Numeric, Rounds), // ceil(numeric)
    of(1712, 1, Numeric, Rounds), // floor(numeric)
    of(1724, 2, Numeric, Never), // numeric_add(numeric,numeric)
    of(1725, 2, Numeric, Never), // numeric_sub(numeric,numeric)
    of(1726, 2, Numeric, Never), // numeric_mul(numeric,numeric)
    of(1727, 2, Numeric, Never), // numeric_div(numeric,numeric)
    of(1728, 2, Numeric, Rounds), // mod(numeric,numeric)
    of(1729, 2, Numeric, Rounds), // numeric_mod(numeric,numeric)
    of(1740, 1, Numeric, Never), // "numeric"(integer)
    of(1743, 1, Numeric, Never), // "numeric"(double precision)
    of(1744, 1, Int4, Rounds), // int4(numeric)
    of(1746, 1, Float8, Never), // float8(numeric)
    of(1747, 2, Time, Never), // time_pl_interval(time without time zone,interval)
    of(1748, 2, Time, Never), // time_mi_interval(time without time zone,interval)
    of(1749, 2, TimeTz, Never), // timetz_pl_interval(time with time zone,interval)
    of(1750, 2, TimeTz, Never), // timetz_mi_interval(time with time zone,interval)
    of(1768, 2, Text, Pattern), // to_char(interval,text)
    of(1770, 2, Text, Pattern), // to_char(timestamp with time zone,text)
    of(1771, 1, Numeric, Never), // numeric_uminus(numeric)
    of(1779, 1, Int8, Rounds), // int8(numeric)
    of(1781, 1, Numeric, Never), // "numeric"(bigint)
    of(1961, 2, Timestamp, Never), // "timestamp"(timestamp without time zone,integer)
    of(1967, 2, TimestampTz, Never), // timestamptz(timestamp with time zone,integer)
    of(1968, 2, Time, Never), // "time"(time without time zone,integer)
    of(1969, 2, TimeTz, Never), // timetz(time with time zone,integer)
    of(1973, 2, Numeric, Rounds), // div(numeric,numeric)
    of(2019, 1, Time, Never), // "time"(timestamp with time zone)
    of(2020, 2, Timestamp, Unit), // date_trunc(text,timestamp without time zone)
    of(2021, 2, Float8, Unit), // date_part(text,timestamp without time zone)
    of(2024, 1, Timestamp, Never), // "timestamp"(date)
    of(2025, 2, Timestamp, Never), // "timestamp"(date,time without time zone)
    of(2027, 1, Timestamp, Never), // "timestamp"(timestamp with time zone)
    of(2028, 1, TimestampTz, Never), // timestamptz(timestamp without time zone)
    of(2029, 1, Date, Always), // date(timestamp without time zone)
    of(2031, 2, Interval, Never), // timestamp_mi(timestamp without time zone,timestamp without time zone)
    of(2032, 2, Timestamp, Never), // timestamp_pl_interval(timestamp without time zone,interval)
    of(2033, 2, Timestamp, Never), // timestamp_mi_interval(timestamp without time zone,interval)
    of(2038, 2, TimeTz, Never), // timezone(interval,time with time zone)
    of(2046, 1, Time, Never), // "time"(time with time zone)
    of(2049, 2, Text, Pattern), // to_char(timestamp without time zone,text)
    of(2054, 2, Bool, Rounds), // timestamp_lt(timestamp without time zone,timestamp without time zone)
    of(2055, 2, Bool, Rounds), // timestamp_le(timestamp without time zone,timestamp without time zone)
    of(2056, 2, Bool, Rounds), // timestamp_ge(timestamp without time zone,timestamp without time zone)
    of(2057, 2, Bool, Rounds), // timestamp_gt(timestamp without time zone,timestamp without time zone)
    of(2058, 2, Interval, Never), // age(timestamp without time zone,timestamp without time zone)
    of(2069, 2, TimestampTz, Never), // timezone(text,timestamp without time zone)
    of(2070, 2, TimestampTz, Never), // timezone(interval,timestamp without time zone)
    of(2071, 2, Timestamp, Never), // date_pl_interval(date,interval)
    of(2072, 2, Timestamp, Never), // date_mi_interval(date,interval)
    of(2167, 1, Numeric, Rounds), // ceiling(numeric)
    of(2308, 1, Float8, Rounds), // ceil(double precision)
    of(2309, 1, Float8, Rounds), // floor(double precision)
    of(2320, 1, Float8, Rounds), // ceiling(double precision)
    of(2338, 2, Bool, Rounds), // date_lt_timestamp(date,timestamp without time zone)
    of(2339, 2, Bool, Rounds), // date_le_timestamp(date,timestamp without time zone)
    of(2341, 2, Bool, Rounds), // date_gt_timestamp(date,timestamp without time zone)
    of(2342, 2, Bool, Rounds), // date_ge_timestamp(date,timestamp without time zone)
    of(2351, 2, Bool, Rounds), // date_lt_timestamptz(date,timestamp with time zone)
    of(2352, 2, Bool, Rounds), // date_le_timestamptz(date,timestamp with time zone)
    of(2354, 2, Bool, Rounds), // date_gt_timestamptz(date,timestamp with time zone)
    of(2355, 2, Bool, Rounds), // date_ge_timestamptz(date,timestamp with time zone)
    of(2364, 2, Bool, Rounds), // timestamp_lt_date(timestamp without time zone,date)
    of(2365, 2, Bool, Rounds), // timestamp_le_date(timestamp without time zone,date)
    of(2367, 2, Bool, Rounds), // timestamp_gt_date(timestamp without time zone,date)
    of(2368, 2, Bool, Rounds), // timestamp_ge_date(timestamp without time zone,date)
    of(2377, 2, Bool, Rounds), // timestamptz_lt_date(timestamp with time zone,date)
    of(2378, 2, Bool, Rounds), // timestamptz_le_date(timestamp with time zone,date)
    of(2380, 2, Bool, Rounds), // timestamptz_gt_date(timestamp with time zone,date)
    of(2381, 2, Bool, Rounds), // timestamptz_ge_date(timestamp with time zone,date)
    of(2520, 2, Bool, Rounds), // timestamp_lt_timestamptz(timestamp without time zone,timestamp with time zone)
    of(2521, 2, Bool, Rounds), // timestamp_le_timestamptz(timestamp without time zone,timestamp with time zone)
    of(2523, 2, Bool, Rounds), // timestamp_gt_timestamptz(timestamp without time zone,timestamp with time zone)
    of(2524, 2, Bool, Rounds), // timestamp_ge_timestamptz(timestamp without time zone,timestamp with time zone)
    of(2527, 2, Bool, Rounds), // timestamptz_lt_timestamp(timestamp with time zone,timestamp without time zone)
    of(2528, 2, Bool, Rounds), // timestamptz_le_timestamp(timestamp with time zone,timestamp without time zone)
    of(2530, 2, Bool, Rounds), // timestamptz_gt_timestamp(timestamp with time zone,timestamp without time zone)
    of(2531, 2, Bool, Rounds), // timestamptz_ge_timestamp(timestamp with time zone,timestamp without time zone)
    of(2711, 1, Interval, Never), // justify_interval(interval)
    of(3461, 6, Timestamp, Never), // make_timestamp(integer,integer,integer,integer,integer,double precision)
    of(3462, 6, TimestampTz, Never), // make_timestamptz(integer,integer,integer,integer,integer,double precision)
    of(3463, 7, TimestampTz, Never), // make_timestamptz(integer,integer,integer,integer,integer,double precision,text)
    of(3464, 7, Interval, Never), // make_interval(integer,integer,integer,integer,integer,integer,double precision)
    of(3846, 3, Date, Never), // make_date(integer,integer,integer)
    of(3847, 3, Time, Never), // make_time(integer,integer,double precision)
    of(6177, 3, Timestamp, Stride), // date_bin(interval,timestamp without time zone,timestamp without time zone)
    of(6178, 3, TimestampTz, Stride), // date_bin(interval,timestamp with time zone,timestamp with time zone)
    of(6199, 2, Numeric, Unit), // "extract"(text,date)
    of(6200, 2, Numeric, Unit), // "extract"(text,time without time zone)
    of(6201, 2, Numeric, Unit), // "extract"(text,time with time zone)
    of(6202, 2, Numeric, Unit), // "extract"(text,timestamp without time zone)
    of(6203, 2, Numeric, Unit), // "extract"(text,timestamp with time zone)
    of(6204, 2, Numeric, Unit), // "extract"(text,interval)
];

/// The operators, ascending, each with the function behind it.
#[rustfmt::skip]
const OPERATORS: &[(u32, u32)] = &[
    (439, 945), // %(bigint,bigint)
    (484, 462), // -(NONE,bigint)
    (514, 141), // *(integer,integer)
    (528, 154), // /(integer,integer)
    (530, 156), // %(integer,integer)
    (551, 177), // +(integer,integer)
    (555, 181), // -(integer,integer)
    (558, 212), // -(NONE,integer)
    (585, 220), // -(NONE,double precision)
    (591, 218), // +(double precision,double precision)
    (592, 219), // -(double precision,double precision)
    (593, 217), // /(double precision,double precision)
    (594, 216), // *(double precision,double precision)
    (654, 1258), // 
    (684, 463), // +(bigint,bigint)
    (685, 464), // -(bigint,bigint)
    (686, 465), // *(bigint,bigint)
    (687, 466), // /(bigint,bigint)
    (688, 1274), // +(bigint,integer)
    (689, 1275), // -(bigint,integer)
    (690, 1276), // *(bigint,integer)
    (691, 1277), // /(bigint,integer)
    (692, 1278), // +(integer,bigint)
    (693, 1279), // -(integer,bigint)
    (694, 1280), // *(integer,bigint)
    (695, 1281), // /(integer,bigint)
    (1076, 2071), // +(date,interval)
    (1077, 2072), // -(date,interval)
    (1095, 1087), // <(date,date)
    (1096, 1088), // <=(date,date)
    (1097, 1089), // >(date,date)
    (1098, 1090), // >=(date,date)
    (1099, 1140), // -(date,date)
    (1100, 1141), // +(date,integer)
    (1101, 1142), // -(date,integer)
    (1110, 1102), // <(time without time zone,time without time zone)
    (1111, 1103), // <=(time without time zone,time without time zone)
    (1112, 1104), // >(time without time zone,time without time zone)
    (1113, 1105), // >=(time without time zone,time without time zone)
    (1322, 1154), // <(timestamp with time zone,timestamp with time zone)
    (1323, 1155), // <=(timestamp with time zone,timestamp with time zone)
    (1324, 1157), // >(timestamp with time zone,timestamp with time zone)
    (1325, 1156), // >=(timestamp with time zone,timestamp with time zone)
    (1327, 1189), // +(timestamp with time zone,interval)
    (1328, 1188), // -(timestamp with time zone,timestamp with time zone)
    (1329, 1190), // -(timestamp with time zone,interval)
    (1332, 1164), // <(interval,interval)
    (1333, 1165), // <=(interval,interval)
    (1334, 1167), // >(interval,interval)
    (1335, 1166), // >=(interval,interval)
    (1336, 1168), // -(NONE,interval)
    (1337, 1169), // +(interval,interval)
    (1338, 1170), // -(interval,interval)
    (1360, 1272), // +(date,time without time zone)
    (1361, 1297), // +(date,time with time zone)
    (1399, 1690), // -(time without time zone,time without time zone)
    (1552, 1354), // <(time with time zone,time with time zone)
    (1553, 1355), // <=(time with time zone,time with time zone)
    (1554, 1357), // >(time with time zone,time with time zone)
    (1555, 1356), // >=(time with time zone,time with time zone)
    (1583, 1618), // *(interval,double precision)
    (1584, 1624), // *(double precision,interval)
    (1585, 1326), // /(interval,double precision)
    (1751, 1771), // -(NONE,numeric)
    (1758, 1724), // +(numeric,numeric)
    (1759, 1725), // -(numeric,numeric)
    (1760, 1726), // *(numeric,numeric)
    (1761, 1727), // /(numeric,numeric)
    (1762, 1729), // %(numeric,numeric)
    (1800, 1747), // +(time without time zone,interval)
    (1801, 1748), // -(time without time zone,interval)
    (1802, 1749), // +(time with time zone,interval)
    (1803, 1750), // -(time with time zone,interval)
    (2062, 2054), // <(timestamp without time zone,timestamp without time zone)
    (2063, 2055), // <=(timestamp without time zone,timestamp without time zone)
    (2064, 2057), // >(timestamp without time zone,timestamp without time zone)
    (2065, 2056), // >=(timestamp without time zone,timestamp without time zone)
    (2066, 2032), // +(timestamp without time zone,interval)
    (2067, 2031), // -(timestamp without time zone,timestamp without time zone)
    (2068, 2033), // -(timestamp without time zone,interval)
    (2345, 2338), // <(date,timestamp without time zone)
    (2346, 2339), // <=(date,timestamp without time zone)
    (2348, 2342), // >=(date,timestamp without time zone)
    (2349, 2341), // >(date,timestamp without time zone)
    (2358, 2351), // <(date,timestamp with time zone)
    (2359, 2352), // <=(date,timestamp with time zone)
    (2361, 2355), // >=(date,timestamp with time zone)
    (2362, 2354), // >(date,timestamp with time zone)
    (2371, 2364), // <(timestamp without time zone,date)
    (2372, 2365), // <=(timestamp without time zone,date)
    (2374, 2368), // >=(timestamp without time zone,date)
    (2375, 2367), // >(timestamp without time zone,date)
    (2384, 2377), // <(timestamp with time zone,date)
    (2385, 2378), // <=(timestamp with time zone,date)
    (2387, 2381), // >=(timestamp with time zone,date)
    (2388, 2380), // >(timestamp with time zone,date)
    (2534, 2520), // <(timestamp without time zone,timestamp with time zone)
    (2535, 2521), // <=(timestamp without time zone,timestamp with time zone)
    (2537, 2524), // >=(timestamp without time zone,timestamp with time zone)
    (2538, 2523), // >(timestamp without time zone,timestamp with time zone)
    (2540, 2527), // <(timestamp with time zone,timestamp without time zone)
    (2541, 2528), // <=(timestamp with time zone,timestamp without time zone)
    (2543, 2531), // >=(timestamp with time zone,timestamp without time zone)
    (2544, 2530), // >(timestamp with time zone,timestamp without time zone)
];

/// `||` of a text and a value, or the other way round, each with the function behind it: textanycat and anytextcat, which are written in SQL
/// and join the output of the value with the text.
const JOINING: [(u32, u32); 2] = [(2779, 2003), (2780, 2004)];

/// textcat(text,text)
const TEXTCAT: u32 = 1258;

/// Functions that make a text of any number of values of any type, some of which may be NULL: concat, concat_ws,
/// format, and format without values.
pub const GATHERING: [u32; 4] = [3058, 3059, 3539, 3540];

/// Does the operator join a text and a value?
pub fn joins(operator: pg_sys::Oid) -> bool {
    JOINING.iter().any(|(joining, _)| *joining == operator.to_u32())
}

/// The place of textcat in `FUNCTIONS`.
pub const PLACE_OF_TEXTCAT: usize = place_of_textcat();

const fn place_of_textcat() -> usize {
    let mut place = 0;
    while FUNCTIONS[place].oid != TEXTCAT {
        place += 1;
    }
    place
}

/// Is each number greater than the one before?
const fn are_ascending() -> bool {
    let mut place = 1;
    while place < FUNCTIONS.len() {
        if FUNCTIONS[place - 1].oid >= FUNCTIONS[place].oid || FUNCTIONS[place].arguments > MOST_ARGUMENTS {
            return false;
        }
        place += 1;
    }
    place = 1;
    while place < OPERATORS.len() {
        if OPERATORS[place - 1].0 >= OPERATORS[place].0 {
            return false;
        }
        place += 1;
    }
    true
}

const _: () = assert!(are_ascending());

/// The place of a function in the table.
pub fn place_of(function: pg_sys::Oid) -> Option<usize> {
    FUNCTIONS.binary_search_by_key(&function.to_u32(), |listed| listed.oid).ok()
}

/// The function behind an operator of the table.
pub fn behind(operator: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let number = operator.to_u32();
    let joining = JOINING.iter().find(|(joining, _)| *joining == number);
    let listed = || OPERATORS.binary_search_by_key(&number, |(listed, _)| *listed).ok().map(|place| &OPERATORS[place]);
    joining.or_else(listed).map(|(_, function)| pg_sys::Oid::from(*function))
}
